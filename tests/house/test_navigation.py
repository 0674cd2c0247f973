"""Strips, minutes and the titles of terms: what a command writes into each notebook."""

import copy
import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from workshop import authoring, navigation

YARN = "[YaRN](../docs/glossary.md#yarn)"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of three notebooks, two with an exercise, and a record that knows one of them."""
    for number, title in (("00", "Start"), ("01", "Waves: the first"), ("02", "Which one?")):
        head = f"# {number} · {title}\n\n*Reading: about 99 minutes. Running: an hour. More.*"
        cells = [
            new_markdown_cell(head),
            new_markdown_cell(f"## A puzzle\n\nSee {YARN}."),
            new_code_cell('lesson.predict("01.x")'),
        ]
        path = tmp_path / "notebooks" / f"{number}_file.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(new_notebook(cells=cells), path)
        for folder in ("solutions", "exercises") if number != "00" else ():
            path = tmp_path / folder / f"ex{number}_file" / f"ex{number}_file.ipynb"
            path.parent.mkdir(parents=True)
            nbformat.write(new_notebook(cells=[new_markdown_cell(f"# Exercise {number}")]), path)
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"cores": 2, "notebooks": {"01_file": {"seconds": 44}}}))
    monkeypatch.setattr(navigation, "RECORD", record)
    return tmp_path


def signed(path):
    return navigation.sign(nbformat.read(path, as_version=4), path)


def test_the_strip_of_a_notebook(course):
    strips = [navigation.strip(path) for path in navigation.notebooks(course)]
    tail = "[overview](00_file.ipynb#The-map) · [glossary](../docs/glossary.md)"
    one, two = (f"[exercise {n}](../exercises/ex{n}_file/ex{n}_file.ipynb)" for n in ("01", "02"))
    assert strips == [
        f"**00 of 02** · [01 Waves →](01_file.ipynb) · {tail}",
        f"[← 00 Start](00_file.ipynb) · **01 of 02** · [02 Which one? →](02_file.ipynb) · {one} · {tail}",
        f"[← 01 Waves](01_file.ipynb) · **02 of 02** · {two} · {tail}",
    ]


def test_the_strip_of_an_exercise_holds_for_the_students_version_too(course):
    first, last = sorted(course.glob("solutions/ex*/*.ipynb"))
    assert navigation.strip(first) == (
        "**exercise 01 of 02** · [exercise 02 →](../ex02_file/ex02_file.ipynb) · "
        "[01 Waves](../../notebooks/01_file.ipynb) · [glossary](../../docs/glossary.md)"
    )
    assert navigation.strip(last).startswith(
        "[← exercise 01](../ex01_file/ex01_file.ipynb) · **exercise 02 of 02** · [02 Which one?]"
    )
    assert [cell.source for cell in signed(first).cells] == ["# Exercise 01", navigation.strip(first)]


def test_a_notebook_that_is_only_text_yet_has_its_place(course):
    new = course / "notebooks" / "03_new.ipynb"
    assert navigation.strip(new).startswith("[← 02 Which one?](02_file.ipynb) · **03 of 03** · [overview]")


def test_sign_writes_and_unsign_takes_off(course):
    path = navigation.notebooks(course)[1]
    notebook = nbformat.read(path, as_version=4)
    new = signed(path)
    strips = [n for n, cell in enumerate(new.cells) if "strip" in cell.metadata.get("tags", [])]
    assert strips == [1, len(new.cells) - 1]
    assert {new.cells[n].source for n in strips} == {navigation.strip(path)}
    assert len({cell.id for cell in new.cells}) == 5
    term = navigation.terms()["yarn"]
    assert f'(../docs/glossary.md#yarn "{term.chinese}: {term.sentence}").' in new.cells[2].source
    assert navigation.sign(copy.deepcopy(new), path) == new  # once more changes nothing
    bare = navigation.unsign(new)
    assert [cell.id for cell in bare.cells] == [cell.id for cell in notebook.cells]
    assert [cell.source for cell in bare.cells[1:]] == [cell.source for cell in notebook.cells[1:]]


def test_the_minutes_come_from_the_rule_and_the_record(course):
    zero, one, _ = (signed(path).cells[0].source.split("\n")[-1] for path in navigation.notebooks(course))
    assert one == "*Time: about 5 minutes. Running: under a minute on two cores. More.*"
    assert zero == "*Time: about 5 minutes. Running: an hour. More.*"  # not measured yet


@pytest.mark.parametrize(
    "seconds, words",
    [
        (3, "under half a minute"),
        (29.9, "under half a minute"),
        (30, "under a minute"),
        (59.9, "under a minute"),
        (60, "under 2 minutes"),
        (119, "under 2 minutes"),
        (120, "under 3 minutes"),
    ],
)
def test_running(seconds, words):
    assert navigation.running(seconds) == words


FIRST_EDITION = """
00 40    1681 3 4 0 3 3 2 1
01 65–70 2016 7 4 0 6 5 2 1
02 70–75 2067 7 4 0 8 5 1 3
03 65–70 2113 4 5 0 9 5 2 1
04 70    1760 6 4 0 10 5 1 3
05 50    2049 7 4 0 2 5 2 5
06 60    2085 6 5 0 5 5 1 3
07 60    2443 7 4 0 7 5 1 2
08 70    2618 6 4 0 5 5 2 3
09 60    2762 5 4 0 5 5 1 0
10 70    2606 7 4 0 7 5 2 1
"""
"""A lesson, its honest minutes as a reader judged them, and what is counted in it, in the order of ``CALLS``.

Of 09 the main lesson; its capstone and its inventory take 40 more. This table does not change.
"""


@pytest.mark.parametrize("row", FIRST_EDITION.split("\n")[1:-1])
def test_the_minutes_of_the_first_edition_are_honest(row):
    _number, said, *found = row.split()
    honest = [int(end) for end in said.split("–")]
    counted = dict(zip(("words", *navigation.CALLS, "formulas"), map(int, found), strict=True))
    assert min(honest) - 5 <= round(navigation.minutes(counted)) <= max(honest) + 5


@pytest.mark.parametrize("number", [f"{n:02}" for n in range(11)])
def test_a_lesson_takes_45_minutes(number):
    found = navigation.counted(nbformat.read(authoring.find(number), as_version=4))
    assert navigation.minutes(found) <= 45, found


def test_what_takes_time_is_counted():
    cells = [
        new_markdown_cell("word " * 400 + "\n<details><summary>Why?</summary> hidden </details> $$x$$"),
        new_code_cell('lesson.predict("01.a")'),
        new_code_cell('f = lesson.your_turn("01.f", f)\ng = lesson.your_turn("01.g", g, build=True)'),
        new_code_cell('WaveExplorer()\nPlayground("a")\nplots.show(f, "x")', metadata={"tags": ["reveal"]}),
        new_code_cell('museum.visit("a")'),
        new_code_cell(
            'claims.test(\n    "a",\nPlayground("a", small=True)', metadata={"tags": ["hide-input"]}
        ),
        new_markdown_cell("# Capstone, ten minutes more", metadata={"tags": ["side"]}),
        new_code_cell("OtherExplorer()"),
        new_markdown_cell("### Still in it"),
        new_markdown_cell("## Back"),
    ]
    found = navigation.counted(new_notebook(cells=cells))
    assert found == {
        "words": 404,
        "predictions": 1,
        "turns": 1,
        "builds": 1,
        "figures": 2,
        "claims": 1,
        "toys": 2,
        "formulas": 1,
    }
    effort = 1 + 1.5 + 12 + 2 * 3.5 + 0.5 + 2 * 5.5 + 1.5
    assert navigation.minutes(found) == pytest.approx(404 / 150 + effort)


@pytest.mark.parametrize(
    "text, count",
    [
        ("Two words", 2),
        ("# *One*", 1),
        ("a $x$ I 3 猫", 2),
        ("before $$\\text{not these}$$ after", 2),
        ('the [KV cache](../docs/glossary.md#kv-cache "键值缓存: Keys and values, kept.") is', 4),
        ("one\n\n## References\n\nand none of these", 1),
        ("[two words](https://example.org/a_b)", 2),
    ],
)
def test_words_are_those_that_are_read(text, count):
    cells = [
        new_markdown_cell("**not** these", metadata={"tags": ["strip"]}),
        new_markdown_cell(text),
        new_code_cell("nor this"),
    ]
    assert navigation.words(new_notebook(cells=cells)) == count


@pytest.mark.parametrize(
    "old, new, stale",
    [
        ("01 of 02", "01 of 03", ["strip"]),
        ("about 5 minutes", "about 10 minutes", ["minutes"]),
        ("Interpolates slow", "Interpolates quick", ["glossary"]),
        ("A puzzle", "Another", []),
    ],
)
def test_stale_names_what_is_not_as_it_would_be_written(course, old, new, stale):
    path = navigation.notebooks(course)[1]
    notebook = signed(path)
    assert navigation.stale(notebook, path) == []
    for cell in notebook.cells:
        cell.source = cell.source.replace(old, new)
    assert navigation.stale(notebook, path) == stale
    notebook = signed(path)
    notebook.cells.pop()
    assert navigation.stale(notebook, path) == ["strip"]


def test_a_term_that_the_glossary_has_not(course):
    path = navigation.notebooks(course)[1]
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].source = "[x](../docs/glossary.md#yarm)"
    with pytest.raises(KeyError, match="no #yarm; it has .*yarn"):
        navigation.sign(notebook, path)


def test_the_glossary_is_read_whole():
    text = navigation.GLOSSARY.read_text(encoding="utf-8")
    assert len(navigation.terms()) == text.count("\n| <a id=") >= 60
    term = navigation.terms()["kv-cache"]
    assert (term.name, term.chinese, term.notebook) == ("KV cache", "键值缓存（KV 缓存）", "06")


def test_the_command_renews_without_running(course, monkeypatch, capsys):
    monkeypatch.setattr(authoring, "NOTEBOOKS", course / "notebooks")
    monkeypatch.setattr(authoring, "SOLUTIONS", course / "solutions")
    guide = course / "guide.md"
    guide.write_text("| [01 Waves](#01-waves) | 99 | no |\n\n[Notebook 01](01.ipynb) · an hour\n")
    monkeypatch.setattr(navigation, "GUIDE", guide)
    monkeypatch.setattr(navigation, "notebooks", lambda root=course, real=navigation.notebooks: real(course))
    monkeypatch.setattr(authoring, "execute", lambda *_: pytest.fail("it runs"))
    for path in authoring.known():
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = 1
        nbformat.write(notebook, path)
    assert authoring.main(["sign", "01"]) == 0 and capsys.readouterr().out == "01_file.ipynb\n"
    assert guide.read_text() == (
        "| [01 Waves](#01-waves) | 5 | no |\n\n"
        "[Notebook 01](01.ipynb) · 5 min · runs in under a minute · no exercise\n"
    )
    assert authoring.main(["sign"]) == 0 and len(capsys.readouterr().out.split()) == 4
    assert authoring.main(["sign"]) == 0 and capsys.readouterr().out == ""
