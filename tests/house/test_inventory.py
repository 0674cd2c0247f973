"""What the reader believes before the course, and after it."""

import re
from collections import Counter

import nbformat
import pytest

from course import lesson
from course.lesson.inventory import load, score
from course.places import DEEPER
from course.progress import log_file, read, record
from workshop import authoring, coverage

ASKED = load()
WRONG = {name: next(c for c in q["choices"] if c != q["answer"]) for name, q in ASKED.items()}
RIGHT = {name: q["answer"] for name, q in ASKED.items()}
NAMES = list(ASKED)


@pytest.fixture(autouse=True)
def log(tmp_path, monkeypatch):
    path = tmp_path / "progress.json"
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(path))
    return path


def answer(box, choices):
    """Call the choices, as clicks do; not clicks, because widgets hide what a callback raises."""
    for item in box.questions:
        if item.name in choices:
            item.choose(choices[item.name])


def shown(box):
    """All that a reader can read but the questions themselves."""
    return " ".join([box.result.value, *(item.status.value for item in box.questions)])


def secrets():
    """What must not be read before the course."""
    return [text for q in ASKED.values() for kind in ("why", "misconception") for text in q[kind].values()]


# ---- the questions ----


def plain(text):
    return not re.search(r"</?[a-z]+>|&[a-z]+;|\$", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_question_is_complete(name):
    q = ASKED[name]
    assert set(q) == {"question", "answer", "choices", "why", "misconception", "notebook", "section"}
    assert 3 <= len(q["choices"]) <= 4 and len(set(q["choices"].values())) == len(q["choices"])
    assert q["answer"] in q["choices"] and set(q["why"]) == set(q["choices"])
    assert set(q["misconception"]) == set(q["choices"]) - {q["answer"]}
    assert len(set(q["why"].values())) == len(q["why"])
    for text in (*q["choices"].values(), *q["misconception"].values()):
        assert plain(text), f"{name}: plain text only"
    for text in (q["question"], *q["why"].values()):
        assert plain(re.sub(r"<(sub|i)>[^<]*</\1>", "", text)), f"{name}: unknown or open tag"


@pytest.mark.parametrize("name", NAMES)
def test_each_question_is_settled_in_a_section_that_there_is(name):
    _, headings = coverage.headings(ASKED[name]["notebook"])
    assert ASKED[name]["section"] in headings


def test_the_set():
    assert len(ASKED) == 18
    beliefs = [text for q in ASKED.values() for text in q["misconception"].values()]
    assert len(set(beliefs)) == len(beliefs)
    numbers = {q["notebook"].removeprefix("deeper/")[:2] for q in ASKED.values()}
    assert numbers == {f"0{n}" for n in range(1, 10)}


def test_the_right_answer_has_no_fixed_place_and_no_typical_length():
    places = Counter(list(q["choices"]).index(q["answer"]) for q in ASKED.values())
    assert set(places) == {0, 1, 2, 3} and max(places.values()) <= len(ASKED) / 2
    for extreme in (min, max):
        tells = [
            extreme(q["choices"], key=lambda c, q=q: len(q["choices"][c])) == q["answer"]
            for q in ASKED.values()
        ]
        assert sum(tells) <= len(ASKED) / 2


@pytest.mark.parametrize("path", authoring.known(), ids=lambda path: path.stem)
def test_no_notebook_gives_an_answer_away(path):
    """Neither an explanation nor the file of the questions stands in a notebook."""
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    page = "\n".join(
        [cell.source for cell in notebook.cells]
        + [str(text) for o in outputs for text in (o.get("text"), *o.get("data", {}).values())]
    )
    assert "inventory.toml" not in page
    assert not [why for q in ASKED.values() for why in q["why"].values() if why in page]
    calls = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    of_lessons = {"00": ["before"], "09": ["after"]}
    wanted = [] if path.parent.name == DEEPER else of_lessons.get(path.stem[:2], [])
    assert re.findall(r'lesson\.inventory\("(\w+)"\)', calls) == wanted


# ---- before ----


def test_before_the_course_nothing_is_said_until_all_is_answered(log):
    box = lesson.inventory("before")
    assert not log.exists() and box.result.value == ""
    answer(box, {name: WRONG[name] for name in NAMES[:-1]})
    assert set(shown(box).split()) == {"Noted."}
    assert {button.icon for item in box.questions for button in item.buttons.values()} <= {"", "check"}
    answer(box, {NAMES[-1]: RIGHT[NAMES[-1]]})
    assert f"Before the course: 1 of {len(NAMES)} right.</b>" in box.result.value
    assert box.result.value.count("<li>") == len(NAMES) - 1
    assert (
        f"<li>Question 1: notebook {ASKED[NAMES[0]]['notebook']}, <i>{ASKED[NAMES[0]]['section']}</i></li>"
    ) in box.result.value
    assert not [text for text in secrets() if text in shown(box)]
    assert not [text for q in ASKED.values() for text in q["choices"].values() if text in shown(box)]
    assert read() == {
        f"inventory.before.{name}": {"choice": c, "right": c == RIGHT[name]}
        for name, c in {**WRONG, NAMES[-1]: RIGHT[NAMES[-1]]}.items()
    }


def test_or_until_the_reader_asks():
    box = lesson.inventory("before")
    answer(box, {NAMES[0]: RIGHT[NAMES[0]], NAMES[1]: WRONG[NAMES[1]]})
    assert box.result.value == ""
    box.button.click()
    assert "1 of 18 right (16 not answered)" in box.result.value
    assert re.findall(r"<li>(Question \d+)", box.result.value) == ["Question 2"]
    answer(box, {NAMES[2]: RIGHT[NAMES[2]]})
    assert "2 of 18 right (15 not answered)" in box.result.value


def test_with_nothing_missed_no_notebook_is_listed():
    box = lesson.inventory("before")
    answer(box, RIGHT)
    assert box.result.value == "<b>Before the course: 18 of 18 right.</b>"


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_first_click_counts_also_in_another_view_and_after_a_restart(when):
    name = NAMES[0]
    box, other = lesson.inventory(when), lesson.inventory(when)
    box.questions[0].buttons[WRONG[name]].click()
    before = read()
    assert before == {f"inventory.{when}.{name}": {"choice": WRONG[name], "right": False}}
    box.questions[0].choose(RIGHT[name])
    other.questions[0].choose(RIGHT[name])
    again = lesson.inventory(when)
    assert read() == before
    for each in (box, other, again):
        assert each.questions[0].first == WRONG[name] and each.score() == "0 of 18 right (17 not answered)"
    disabled = {button.disabled for button in again.questions[0].buttons.values()}
    assert disabled == {when == "before"}  # after the course, every choice can be read up


def test_a_choice_that_has_been_renamed_since_is_no_answer():
    record(f"inventory.before.{NAMES[0]}", choice="gone", right=True)
    box = lesson.inventory("before")
    assert box.questions[0].first is None
    answer(box, {NAMES[0]: RIGHT[NAMES[0]]})
    assert box.questions[0].first == RIGHT[NAMES[0]] == read()[f"inventory.before.{NAMES[0]}"]["choice"]


# ---- after ----


def test_after_the_course_each_click_is_explained():
    box = lesson.inventory("after")
    for item in box.questions:
        for choice in item.buttons:
            item.choose(choice)
            verdict = "Right." if choice == RIGHT[item.name] else "Not quite."
            assert item.status.value == f"<b>{verdict}</b> {ASKED[item.name]['why'][choice]}"
            assert item.buttons[choice].icon == ("check" if choice == RIGHT[item.name] else "times")


def test_the_two_scores_stand_side_by_side_with_what_remains():
    answer(lesson.inventory("before"), {name: WRONG[name] for name in NAMES[:-2]})
    box = lesson.inventory("after")
    assert box.result.value == ""
    answer(box, {**RIGHT, NAMES[3]: WRONG[NAMES[3]]})
    assert "After the course: 17 of 18 right. Before: 0 of 18 right (2 not answered).</b>" in box.result.value
    q = ASKED[NAMES[3]]
    assert re.findall("<li>.*?</li>", box.result.value) == [
        f"<li>“{q['misconception'][WRONG[NAMES[3]]]}”: notebook {q['notebook']}, <i>{q['section']}</i></li>"
    ]


def test_after_without_before():
    box = lesson.inventory("after")
    answer(box, RIGHT)
    assert box.result.value == "<b>After the course: 18 of 18 right. Before: not answered.</b>"


# ---- both ----


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_disk_that_cannot_be_written_to_keeps_the_score(when, log, monkeypatch):
    blocked = log.with_name("file")
    blocked.write_text("a file where the folder should be")
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(blocked / "progress.json"))
    assert log_file().parent == blocked
    box = lesson.inventory(when)
    answer(box, {**RIGHT, NAMES[0]: WRONG[NAMES[0]]})
    assert "17 of 18 right" in box.result.value and read() == {}


@pytest.mark.parametrize("when", ["Before", "", None, "both"])
def test_another_time_is_an_error_that_says_what_is_allowed(when):
    with pytest.raises(ValueError, match=f"inventory\\({when!r}\\).*allowed are 'before' and 'after'"):
        lesson.inventory(when)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_stored_text_stands_without_a_kernel_and_gives_nothing_away(when):
    answer(lesson.inventory(when), RIGHT)
    data, _ = lesson.inventory(when)._repr_mimebundle_()
    for q in ASKED.values():
        assert q["question"] in data["text/html"]
        assert re.sub("<.*?>", "", q["question"]) in data["text/plain"]
    assert data["text/html"].count("<li>") == sum(len(q["choices"]) for q in ASKED.values())
    assert "right" not in data["text/plain"] and not [t for t in secrets() if t in data["text/html"]]
    assert "Run this cell to answer" in data["text/html"]


def test_score_counts_what_is_missing():
    assert score({NAMES[0]: RIGHT[NAMES[0]], NAMES[1]: None, NAMES[2]: WRONG[NAMES[2]]}) == (
        "1 of 3 right (1 not answered)"
    )
