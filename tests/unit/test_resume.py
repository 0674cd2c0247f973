"""Where to go on after a break, and what a question shows on the second day."""

import re

import pytest

from course import lesson
from course.lesson import questions, resume
from course.progress import read, record

KEYS = [place.key for place in resume.places()]


@pytest.fixture(autouse=True)
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))


def answered(*keys, day=None):
    """A log in which these questions were answered, one a minute; without a day, at no time."""
    return {
        key: {"choice": "x"} | ({"at": f"2026-03-{day:02}T09:{n:02}:00+00:00"} if day else {})
        for n, key in enumerate(keys)
    }


def go_on(log):
    what, place = resume.next_place(log)
    return what, place and place.key


def test_every_prediction_and_check_has_its_place_once():
    asked = {
        f"{number}.{kind}.{name}"
        for number in questions.notebooks()
        for kind in ("predict", "check")
        for name in questions.questions(number).get(kind, {})
    }
    assert len(KEYS) == len(set(KEYS)) and set(KEYS) == asked
    assert [key[:2] for key in KEYS] == sorted(key[:2] for key in KEYS)
    layouts = dict(zip(KEYS, resume.places(), strict=True))["06.predict.layout"]
    assert layouts == ("06.predict.layout", "06_rope.ipynb", "06 RoPE", "Two layouts")
    assert layouts.link() == '<a href="06_rope.ipynb#Two-layouts">06 RoPE, <i>Two layouts</i></a>'


def test_a_link_escapes_what_a_heading_may_hold():
    place = resume.Place("x", "99_x.ipynb", "99 <x>", 'A "b" & c')
    assert place.link() == (
        '<a href="99_x.ipynb#A-&quot;b&quot;-&amp;-c">99 &lt;x&gt;, <i>A &quot;b&quot; &amp; c</i></a>'
    )


AT = KEYS.index("06.predict.layout")
BEGIN = "Begin at the top: nothing has been predicted yet"
EARLY, LATE = "02.predict.repeat", "09.predict.won"


@pytest.mark.parametrize(
    "log, what, key",
    [
        ({}, BEGIN, None),
        (answered(*KEYS[:AT], day=3), "Go on", "06.predict.layout"),
        (answered(*KEYS[:AT]), "Go on", "06.predict.layout"),  # an old log, without times
        (answered(*KEYS[AT - 2 : AT], day=3), "Go on", "06.predict.layout"),  # begun in the middle
        # the reader went back from 09 to 02: there it goes on
        (answered(LATE, day=3) | answered(EARLY, day=4), "Go on", KEYS[KEYS.index(EARLY) + 1]),
        (answered(LATE) | answered(EARLY, day=4), "Go on", KEYS[KEYS.index(EARLY) + 1]),
        (answered(EARLY, day=3) | answered(LATE, day=4), "Go on", "09.predict.one_rate"),
        # what has been done is left out
        (answered(*KEYS[AT : AT + 2], day=3) | answered(KEYS[AT - 1], day=4), "Go on", KEYS[AT + 2]),
        # nothing is open after the last one: back to the first that is
        (answered(*KEYS[3:], day=3), "Go on", KEYS[0]),
        (answered(*KEYS, day=3), "All predictions are made, and all questions answered", None),
        # a notebook whose questions were renamed since, entries of other kinds, times that are none
        (answered(*KEYS[:4], day=3) | answered("03.predict.gone", "77.check.x", day=5), "Go on", KEYS[4]),
        (answered("03.predict.gone", day=5), BEGIN, None),
        ({KEYS[5]: {"right": True}, "01.exercise.a": {"passed": True}}, BEGIN, None),
        ({KEYS[0]: {"choice": "x", "at": 7}, KEYS[1]: {"choice": "x", "at": None}}, "Go on", KEYS[2]),
    ],
    ids=[
        "empty",
        "middle",
        "old",
        "begun-late",
        "went-back",
        "old-and-new",
        "went-on",
        "done-ahead",
        "gaps",
        "all",
        "renamed",
        "only-renamed",
        "no-answers",
        "odd-times",
    ],
)
def test_the_place_to_go_on(log, what, key):
    assert go_on(log) == (what, key)


def test_the_panel_names_and_links_the_place():
    assert lesson.progress()._repr_html_().startswith(f"<p>{BEGIN}.</p><table>")
    for key, entry in answered(*KEYS[:AT], day=3).items():
        record(key, **entry)
    panel = lesson.progress()
    assert repr(panel).startswith("Go on: 06 RoPE, Two layouts\n")
    assert panel._repr_html_().startswith(f"<p>Go on: {resume.places()[AT].link()}</p><table>")
    for key in KEYS:
        record(key, choice="x")
    assert (
        lesson.progress()
        ._repr_html_()
        .startswith("<p>All predictions are made, and all questions answered.</p><table>")
    )


def test_an_answer_has_its_time_and_running_the_next_cell_again_does_not_change_it():
    lesson.predict("00.shift").choose("much")
    entry = read()["00.predict.shift"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", entry["at"])
    lesson.reveal("00.shift", "same")
    assert read()["00.predict.shift"] == {**entry, "right": False}
    lesson.concept_check("00").questions[0].choose("sort")
    assert read()["00.check.softmax"]["at"] > entry["at"]
    assert resume.next_place(read())[1].key == "00.check.order"


# ---- the second day ----
def test_a_prediction_shows_the_earlier_choice_and_can_be_changed():
    lesson.predict("00.shift").choose("much")
    again = lesson.predict("00.shift")
    assert again.said == "much" and again.earlier
    again.choose("same")
    assert again.said == "same" and not again.earlier and read()["00.predict.shift"]["choice"] == "same"


def test_a_number_and_a_curve_are_shown_again(monkeypatch):
    asked = {
        "size": {"kind": "number", "question": "?", "unit": "nats", "within": 1},
        "curve": {
            "kind": "sketch",
            "question": "?",
            "x": [1, 2],
            "xlabel": "x",
            "ylabel": "y",
            "ylim": [0, 4],
            "within": 1,
        },
    }
    monkeypatch.setattr(questions, "questions", lambda number: {"predict": asked})
    lesson.predict("98.size").choose(2.5)
    lesson.predict("98.curve").choose([1, 3])
    for key, said in (("98.size", 2.5), ("98.curve", [1, 3])):
        assert (lesson.predict(key).said, lesson.predict(key).earlier) == (said, True)


@pytest.mark.parametrize("choice", ["gone", 3, ["same"], {"a": 1}, None])
def test_a_choice_that_is_none_any_more_is_not_shown(choice):
    record("00.predict.shift", choice=choice)
    record("00.check.softmax", choice=choice)
    assert lesson.predict("00.shift").said is None and not lesson.predict("00.shift").earlier
    question = lesson.concept_check("00").questions[0]
    assert question.status.value == "" and not any(b.icon for b in question.buttons.values())


def test_the_concept_check_explains_the_first_answer_again():
    one = lesson.concept_check("00").questions[0]
    one.choose("sort")
    said = one.status.value
    one.choose("weights")
    again, other = lesson.concept_check("00").questions[:2]
    assert again.status.value == said and again.buttons["sort"].icon == "times" and other.status.value == ""
