"""docs/instructor/: every notebook has its section, with every part and minutes that hold."""

import re
from pathlib import Path

import nbformat
import pytest

from workshop import inventory_key, navigation

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "instructor"
NOTEBOOKS = {path.name[:2]: path for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))}
PARTS = (
    "Goals",
    "Misconception to bring out",
    "Discussion",
    "On the board",
    "Where students get stuck",
    "Short of time",
    "Graded exercise",
)
GUIDE = (FOLDER / "notebooks.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\d\d) (.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL))


def markdown(number):
    cells = nbformat.read(NOTEBOOKS[number], as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def parts(number):
    """``{"Goals": text, …}`` of a notebook's section, in its order."""
    found = re.split(r"^\*\*([^*]+?)\.?\*\*", SECTIONS[number], flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_every_notebook_has_its_section_in_order():
    assert list(SECTIONS) == list(NOTEBOOKS) and len(NOTEBOOKS) == 11


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_the_section_has_every_part(number):
    assert f"(../../notebooks/{NOTEBOOKS[number].name})" in SECTIONS[number]
    found = parts(number)
    assert tuple(found) == PARTS and all(len(text.split()) > 5 for text in found.values())
    assert len(re.findall(r"^\d\. ", found["Goals"], re.MULTILINE)) == 3
    asked = re.findall(r"^- .*\n.*", found["Discussion"], re.MULTILINE)
    assert 3 <= len(asked) <= 4
    assert all(re.fullmatch(r"- \*\*.+\?\*\*\\\n  \S.+\.\)?", question) for question in asked)
    assert found["On the board"].count("```") == 2
    assert len(re.findall(r"^- ", found["Where students get stuck"], re.MULTILINE)) >= 2


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_the_minutes_are_those_of_the_notebook(number):
    (row,) = re.findall(rf"^\[Notebook {number}\].* · (\d+) min · (?:(\d+) more)?", SECTIONS[number], re.M)
    (head,) = re.findall(r"^\*Time: about (\d+) minutes(?:, and (\d+) more)?", markdown(number), re.M)
    assert row == head and re.search(rf"^\| \[{number} .*?\| {row[0]} \|", GUIDE, re.M)


def test_the_minutes_are_those_of_the_record_and_of_the_rule():
    assert GUIDE == navigation.guide(), "run `python -m workshop.authoring sign`"


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_the_exercise_is_the_one_that_the_notebook_names(number):
    named = re.findall(r"^Graded exercise: \[(\w+)\]", markdown(number), re.MULTILINE)
    assert re.findall(r"`(ex\w+)`", parts(number)["Graded exercise"]) == named


def test_the_minutes_of_each_syllabus_add_up():
    text = (FOLDER / "README.md").read_text(encoding="utf-8").split("## Three syllabi")[1].split("\n## ")[0]
    tables = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert len(tables) == 3
    for table in tables:
        minutes = [int(n) for n in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
        assert [sum(minutes)] == [int(n) for n in re.findall(r"^\| \*\*(\d+)\*\* \|", table, re.MULTILINE)]
        known = {name for n in NOTEBOOKS for name in re.findall(r"\[(ex\d\d_\w+)\]\(", markdown(n))}
        assert set(re.findall(r"`(ex\w+)`", table)) <= known and "`ex" in table


NUMBERS = dict(zip("one two three four five six seven eight".split(), range(1, 9), strict=True))
LINK = re.compile(r"( to )?\[[^]]+\]\(\.\./\.\./(notebooks/[\w/]+\.ipynb)#((?:[^()]|\([^()]*\))+)\)")


def done(path, first, last):
    """How many predictions and blanks stand in the sections ``first`` to ``last``, with those below them."""
    found, level, inside, ended = {"prediction": 0, "blank": 0}, 0, False, False
    for cell in nbformat.read(ROOT / path, as_version=4).cells:
        if cell.cell_type == "code":
            found["prediction"] += inside * cell.source.count("lesson.predict(")
            found["blank"] += inside * cell.source.count("lesson.your_turn(")
            continue
        for marks, head in re.findall(r"^(##+) (.+?)\s*$", cell.source, re.MULTILINE):
            if ended and len(marks) <= level:
                return found
            if (anchor := head.replace(" ", "-")) == first:
                inside = True
            if anchor == last:
                ended, level = True, len(marks)
    assert ended, f"{path}: no {first} to {last}"
    return found


def test_students_do_as_many_things_as_a_syllabus_says():
    """Where it says how many predictions or blanks, these are all of the sections of its row."""
    text, told = (FOLDER / "README.md").read_text(encoding="utf-8"), 0
    for sections, doing in re.findall(r"^\| \d+ \| (.*?) \| (.*?) \|$", text, re.MULTILINE):
        spans = []
        for to, path, anchor in LINK.findall(sections):
            if to:
                spans[-1][2] = anchor
            else:
                spans.append([path, anchor, anchor])
        for number, what in re.findall(r"\b(\w+) (prediction|blank)s?\b", doing):
            found = [done(*span) for span in spans]
            assert NUMBERS[number] == sum(each[what] for each in found), (doing, sections, found)
            told += 1
    assert told > 12


def test_every_page_of_the_guide_is_listed():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"({page.name})" in text for page in FOLDER.glob("*.md") if page.name != "README.md")


def test_the_inventory_page_is_made_from_the_questions():
    text = inventory_key.PAGE.read_text(encoding="utf-8")
    assert text == inventory_key.page(), "run `python -m workshop.inventory_key`"
    questions = inventory_key.load()
    assert len(re.findall(r"^\*\*[A-Z]\. .* ✓\*\*\\$", text, re.MULTILINE)) == len(questions) == 18
    for asked in questions.values():
        right = asked["choices"][asked["answer"]]
        letter = "ABCD"[list(asked["choices"]).index(asked["answer"])]
        assert f"{asked['question']}\n\n" in text and f"\n**{letter}. {right} ✓**\\\n" in text
        assert all(f"*Belief: {belief}.*" in text for belief in asked["misconception"].values())
        assert asked["misconception"].keys() == asked["choices"].keys() - {asked["answer"]}


def test_the_number_of_questions_that_guessing_solves():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "Blind guessing gets five or six of eighteen right" in text
    assert 5 < sum(1 / len(asked["choices"]) for asked in inventory_key.load().values()) < 6
