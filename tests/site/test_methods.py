"""The pages of the methods: complete, taken from the library, and with the numbers of the records."""

import importlib.util
import json
import re
import statistics
import sys
from pathlib import Path

import pytest

from course.experiments.scoreboard import shown
from tutorial_lib import encodings
from tutorial_lib.explorers.scoreboard import rows
from tutorial_lib.readability import alt_fault
from workshop import summary

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workshop" / "site"))
spec = importlib.util.spec_from_file_location("site_methods", ROOT / "workshop" / "site" / "methods.py")
methods = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = methods
spec.loader.exec_module(methods)
PAGES = list(methods.METHODS)


def test_each_method_of_the_board_and_of_the_summary_has_one_page():
    on_pages = [name for page in methods.METHODS.values() for name in page["board"]]
    assert sorted(on_pages) == sorted(rows())
    on_pages = [name for page in methods.METHODS.values() for name in page.get("rows", ())]
    assert sorted(on_pages) == sorted(row["name"] for row in summary.table()["methods"])


@pytest.mark.parametrize("name", PAGES)
def test_code_is_that_of_the_library_and_short(name):
    page = methods.METHODS[name]
    lines = [line for line in methods.code(page["code"]).splitlines() if line]
    source = "\n".join(
        (ROOT / f"tutorial_lib/encodings/{module}.py").read_text(encoding="utf-8")
        for module in methods.modules(page)
    ).splitlines()
    assert 5 <= len(lines) <= 32 and set(lines) <= set(source)
    assert '"""' not in "".join(lines)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(name):
    page = methods.METHODS[name]
    text = methods.text(name, "PICTURE OF IT")
    assert "```{math}" in methods.equation(page) and re.search(r"\*.*\b20\d\d.*\*", methods.equation(page))
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert [one for one in headings if one != "Move it"] == [
        "The equation",
        "The code",
        "What it costs",
        "Who uses it",
        "What was measured",
        "Go on",
    ]
    assert ("Move it" in headings) == ("data-live=" in text) == ("live" in page)
    assert not re.search(r"^[A-Z]+$", text, re.M) and not alt_fault(methods.alt(page))


def mean(record, name, key):
    """The mean over the seeds, from the file itself."""
    runs = json.loads((ROOT / "results" / f"{record}-full.json").read_text(encoding="utf-8"))["runs"]
    return statistics.fmean(run["values"][key] for run in runs if run["cell"] == {"encoding": name})


@pytest.mark.parametrize("name", PAGES)
def test_numbers_are_those_of_the_record(name):
    page = methods.METHODS[name]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in methods.board(page).splitlines()
        if line.startswith("|")
    ]
    assert table[0] == ["", *page["board"]]
    found = {line[0]: line[1:] for line in table[2:]}
    for n, encoding in enumerate(page["board"]):
        if " + " in encoding:
            continue  # RoPE with scaled angles: measured for its lengths only
        for key, words in (
            ("time", "times as long as no position"),
            ("parameters", "parameters"),
            ("apart", "places told apart"),
            ("shift", "shift error"),
        ):
            value = shown(key, mean("scoreboard", encoding, key))
            assert found[words][n].startswith(f"{value} ("), (encoding, key)


def test_a_place_on_the_board_counts_those_that_are_better(monkeypatch):
    board = {"a": {"time": 1.0, "won": 3}, "b": {"time": 1.5, "won": 3}, "c": {"time": 1.5, "won": 5}}
    board["d"] = {}
    monkeypatch.setattr(methods, "rows", lambda: board)
    assert [methods.place_on_board("time", name) for name in "abc"] == ["1st of 3", "2nd of 3", "2nd of 3"]
    assert [methods.place_on_board("won", name) for name in "abc"] == ["2nd of 3", "2nd of 3", "1st of 3"]


def test_without_its_record_a_method_has_no_page(monkeypatch):
    left = {name: row for name, row in rows().items() if name != "alibi"}
    monkeypatch.setattr(methods, "rows", lambda: left)
    with pytest.raises(KeyError, match="alibi"):
        methods.text("alibi", "")


@pytest.mark.parametrize("name", PAGES)
def test_the_picture_is_what_the_alternative_text_says(name):
    z = methods.equal_scores(methods.METHODS[name])
    assert z.shape == (methods.HEADS, methods.LENGTH, methods.LENGTH) and z.isfinite().all()
    words = methods.alt(methods.METHODS[name])
    assert ("changes none of them" in words) == (name == "nope")
    relative = all(rows()[one].get("shift", 0) == 0 for one in methods.METHODS[name]["board"])
    if name not in ("nope", "swin", "two-axes"):  # two axes have no diagonals; fire hardly changes along them
        assert ("they are the same" in words) == (relative or name == "fire")


def test_a_word_of_the_search_means_one_method():
    words = [word for page in methods.METHODS.values() for word in page["words"]]
    assert len(words) == len(set(words)) and all(word == word.lower() for word in words)
    for lesson, page in methods.search_words().values():
        assert (ROOT / f"{lesson}.ipynb").exists() and page in methods.NAMES


def test_each_page_says_how_its_method_is_built():
    for name, page in methods.METHODS.items():
        assert isinstance(methods.made(page), encodings.PositionalEncoding), name
        assert f"`{page['make']}`" in methods.text(name, "")
