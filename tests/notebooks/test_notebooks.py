"""What every stored notebook keeps to. That it runs, and prints what it printed, is nbval's to say."""

import ast
import json
import re
import statistics
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from course.lesson import questions
from tutorial_lib import readability
from workshop import authoring, exercises, navigation, pieces
from workshop.benchmarks import notebooks as benchmark

CORE = sorted(authoring.NOTEBOOKS.glob("*.ipynb"))
QUESTS = sorted(authoring.NOTEBOOKS.glob(f"{navigation.DEEPER}/*.ipynb"))
PATHS = CORE + QUESTS
HEADINGS = ("What you will be able to do", "Claims tested", "Concept check", "Summary", "References")
MACHINE = re.compile(r"/(home|root|tmp|work|Users|private|var|opt|mnt)/|site-packages|ipykernel_|\b[A-Z]:\\")
NOISE = re.compile(r"(?<!less than )(?<![\d.])0\.0{4,}[1-9]")
LONGEST_CELL = 20


@pytest.fixture(params=PATHS, ids=lambda path: path.stem, scope="module")
def path(request):
    return request.param


@pytest.fixture(scope="module")
def notebook(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture(scope="module")
def code(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def outputs(notebook):
    """Every ``(cell number, output)``."""
    return [(n, o) for n, cell in enumerate(notebook.cells) for o in cell.get("outputs", ())]


class Images(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.alts = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.alts.append(dict(attrs).get("alt") or "")


def noise(notebook):
    """Printed numbers that are rounding and no more: another processor finds other ones."""
    return [
        found[0]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for text in (output.get("text", ""), output.get("data", {}).get("text/html", ""))
        for found in NOISE.finditer(re.sub(r'src="data:[^"]*"', "", text))
    ]


def test_no_rounding_noise_is_printed(notebook):
    assert not noise(notebook)


def test_rounding_noise_is_found():
    said = [nbformat.v4.new_output("stream", text=f"by {number} nats") for number in ("0.000002", "0.0000")]
    assert noise(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=said)])) == ["0.000002"]


def test_it_is_in_normal_form(path):
    assert authoring.check(path) == ""


def test_no_path_of_a_machine_is_in_it(notebook):
    for n, cell in enumerate(notebook.cells):
        shown = [cell.source]
        for output in cell.get("outputs", ()):
            texts = {"text": output.get("text", ""), **output.get("data", {})}
            shown += [json.dumps(text) for mime, text in texts.items() if not mime.startswith("image/")]
        for text in shown:
            text = re.sub(r"data:[\w/+-]+;base64,[\w+/=]*", "", text)
            text = re.sub(r"https?://\S+", "", text)
            assert not MACHINE.search(text), f"cell {n}: {MACHINE.search(text)}"


def test_every_picture_has_an_alternative_text(notebook, prose):
    seen = set()
    for n, output in outputs(notebook):
        data = output.get("data", {})
        alts = Images(data.get("text/html", "")).alts
        explorer = "live" in output.get("metadata", {})
        if explorer or any(mime.startswith("image/") for mime in data):
            assert alts, f"cell {n} shows a picture without alternative text: use plots.show(fig, alt)"
        for alt in alts:
            fault = readability.alt_fault(alt, "explorer" if explorer else "")
            assert not fault, f"cell {n}: alt={alt!r}: {fault}"
            assert alt not in seen, f"cell {n}: another picture has this text too, alt={alt!r}"
            seen.add(alt)
    for text in prose:
        for alt in re.findall(r"!\[(.*?)\]\(", text) + Images(text).alts:
            assert len(alt.split()) >= 4, f"alt={alt!r}"


def test_no_cell_is_long(code):
    for source in code:
        lines = len(source.removeprefix(navigation.MEASURES).strip().splitlines())
        assert lines <= LONGEST_CELL, f"{lines} lines: {source[:60]!r}; plumbing belongs in the library"


def test_no_text_hides_from_translation_in_another(code):
    for source in code:
        for text in pieces.texts(source):
            holes = [part for part in getattr(text, "values", ()) if isinstance(part, ast.FormattedValue)]
            inner = [
                each for hole in holes for each in ast.walk(hole.value) if isinstance(each, ast.JoinedStr)
            ]
            assert not inner, f"give print {ast.unparse(inner[0])} as an argument of its own"


def test_it_follows_the_template(path, prose):
    number, text = path.stem[:2], re.sub(r"```.*?```", "", "\n\n".join(prose), flags=re.DOTALL)
    headings = re.findall(r"^#+ +(.+?)\s*$", text, re.MULTILINE)
    assert prose[0].startswith("# ") and number in headings[0], "the first cell is the title, with the number"
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    if path in QUESTS:
        assert headings[-1] == "References" and text.count(f"](../{number}_"), "it leads back to its lesson"
    elif number != "00":
        places = [
            next((n for n, h in enumerate(headings) if h.lower().startswith(wanted.lower())), None)
            for wanted in HEADINGS
        ]
        missing = [wanted for wanted, place in zip(HEADINGS, places, strict=True) if place is None]
        assert not missing, f"{missing} not among {headings}"
        assert places == sorted(places)


def test_each_prediction_is_revealed_later(path, code):
    """And the questions that are asked are the questions that there are."""
    number, calls = path.stem[:2], "\n".join(code)
    asked, revealed = (re.findall(rf"\b{f}\(\s*[\"']([\w.]+)[\"']", calls) for f in ("predict", "reveal"))
    assert len(set(asked)) == len(asked) and sorted(asked) == sorted(revealed)
    for key in asked:
        cell = next(n for n, source in enumerate(code) if re.search(rf"predict\(\s*[\"']{key}[\"']", source))
        assert all(f'reveal("{key}"' not in source for source in code[: cell + 1]), f"{key} is given away"
    known = questions.questions(number) if number in questions.notebooks() else {}
    everywhere = [
        cell.source
        for one in PATHS
        if one.stem[:2] == number
        for cell in nbformat.read(one, as_version=4).cells
        if cell.cell_type == "code"
    ]
    asked = re.findall(r"\bpredict\(\s*[\"']([\w.]+)[\"']", "\n".join(everywhere))
    assert sorted(asked) == sorted(f"{number}.{name}" for name in known.get("predict", {}))
    if path in CORE:
        assert calls.count(f'concept_check("{number}")') == bool(known.get("check"))


def test_links_lead_somewhere(path, prose):
    for text in prose:
        links = re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", text)
        for target in links + re.findall(r"href=\"([^\"]+)\"", text):
            if not re.match(r"[a-z]+:|#", target):
                assert Path(path.parent, target.split("#")[0]).exists(), f"no such file: {target}"


# ---- what a command writes: strips, minutes, the titles of terms ----
EXERCISES = [exercises.path(name) for name in exercises.names()]


@pytest.mark.parametrize("path", PATHS + EXERCISES, ids=lambda path: path.stem)
def test_strip_minutes_and_glossary_titles_are_up_to_date(path):
    found = navigation.stale(nbformat.read(path, as_version=4), path)
    stale = ", ".join(found)
    assert not found, f"{path.name}: {stale} stale: run `python -m workshop.authoring sign`"


def test_terms_are_linked_where_they_are_treated(path, notebook):
    """There, or in a side quest; and not everywhere: no term twice in a notebook, at most twelve, none in a
    heading or a table."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    linked = [link[1] for link in navigation.TERM.findall(text)]
    if path in CORE:
        quests = " ".join(
            quest.read_text(encoding="utf-8") for quest in QUESTS if quest.stem[:2] == path.stem[:2]
        )
        treated = {anchor for anchor, term in navigation.terms().items() if term.notebook == path.stem[:2]}
        there = {*linked, *re.findall(r"glossary\.md#([\w-]+)", quests)}
        assert treated <= there, f"the glossary says that it treats {treated - there}"
    assert len(set(linked)) == len(linked) <= 12
    plain = [line for line in text.split("\n") if line.startswith(("#", "|"))]
    assert not [line for line in plain if navigation.TERM.search(line)]


def faults(record):
    """Of the recorded seconds: what is missing, was measured for other code, or costs more than it may."""
    found, paths = record["notebooks"], {path.stem: path for path in authoring.known()}
    wrong = [f"{name} has no record" for name in paths if name not in found]
    wrong += [f"{name} is no notebook" for name in found if name not in paths]
    for name in set(paths) & set(found):
        if found[name]["code"] != benchmark.code(nbformat.read(paths[name], as_version=4)):
            wrong.append(f"{name} has other code than when it was measured")
        limit = benchmark.EXERCISE if navigation.is_exercise(paths[name]) else benchmark.NOTEBOOK
        costs = {"": found[name]["seconds"] - limit + benchmark.CELL, **found[name]["cells"]}
        wrong += [f"{name} {cell} costs too much" for cell, s in costs.items() if s > benchmark.CELL]
    if statistics.fmean(one["seconds"] for one in found.values()) > benchmark.MEAN:
        wrong.append("on average they cost too much")
    return wrong


@pytest.fixture
def record():
    return json.loads(navigation.RECORD.read_text(encoding="utf-8"))


def test_no_cell_makes_a_reader_wait(record):
    assert not (wrong := faults(record)), (
        f"{wrong}: `python -m workshop.benchmarks.notebooks NUMBER`, then `… workshop.authoring sign`"
    )


def test_what_makes_a_reader_wait_is_found(record):
    found = record["notebooks"]
    del found["03_learnable"]
    found["04_relative"]["code"] = "other"
    found["05_hybrid"]["seconds"], found["ex05_hybrid"]["seconds"] = 60.1, 40.1
    found["06_rope"]["cells"]["beef"], found["77_x"] = 10.1, {"code": "", "seconds": 480, "cells": {}}
    assert sorted(faults(record)) == [
        "03_learnable has no record",
        "04_relative has other code than when it was measured",
        "05_hybrid  costs too much",
        "06_rope beef costs too much",
        "77_x is no notebook",
        "ex05_hybrid  costs too much",
        "on average they cost too much",
    ]


def test_numbers_are_used_once():
    numbers = [path.stem[:2] for path in CORE]
    assert {path.stem[:2] for path in QUESTS} <= set(numbers)
    assert len(set(numbers)) == len(numbers) and all(re.fullmatch(r"\d\d", n) for n in numbers)
