"""Questions, the reader's log, and the table of claims."""

import re
import sys
import time
from collections import namedtuple
from contextlib import ExitStack
from html.parser import HTMLParser
from pathlib import Path
from subprocess import PIPE, Popen
from types import ModuleType

import pytest
import torch

from course import lesson, progress, verdicts
from course.lesson import predictions, questions
from course.lesson.claims import Asked, Claims
from course.progress import forget, log_file, read, record
from tutorial_lib.stored_widgets import table

NUMBERS = questions.notebooks()
NUMBER = {
    "kind": "number",
    "question": "How <i>large</i>?",
    "unit": "nats",
    "within": 0.5,
    "why": {"low": "you forgot half"},
}
SKETCH = {
    "kind": "sketch",
    "question": "Draw it.",
    "x": [64, 128, 256],
    "xlabel": "length",
    "ylabel": "loss",
    "ylim": [0, 4],
    "within": 0.5,
}
ASKED = {
    "title": "99 A <test> & more",
    "predict": {
        "swap": {
            "question": "What <i>happens</i>?",
            "choices": {"same": "a < b & c", "other": "It changes.", "third": "Who knows?"},
            "why": {"same": "it stays", "other": "then it would move", "third": "you could"},
            "reasons": {"other": [["I saw it move.", "that was a mirror"], ["It often does.", "not here"]]},
        }
    },
    "check": {
        "one": {
            "question": "Is it <b>so</b>?",
            "answer": "yes",
            "choices": {"yes": "Yes & yes", "no": "No"},
            "why": {"yes": "It is <i>so</i>.", "no": "It is not not so."},
        },
        "two": {
            "question": "Which?",
            "answer": "b",
            "choices": {"a": "A", "b": "B"},
            "why": {"a": "not A", "b": "just B"},
        },
    },
}


PREDICT = {"98": {"title": "98", "predict": {"size": NUMBER, "curve": SKETCH}}, "99": ASKED}


@pytest.fixture(autouse=True)
def log(tmp_path, monkeypatch):
    """A log of its own, and one invented notebook, 99."""
    path = tmp_path / "folder" / "progress.json"
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(path))
    known = questions.load
    monkeypatch.setattr(questions, "load", lambda n: PREDICT[n] if n in PREDICT else known(n))
    monkeypatch.setattr(questions, "notebooks", lambda: ["99"])
    return path


def entries():
    """The log without the times of the answers."""
    return {
        key: {name: value for name, value in entry.items() if name != "at"} for key, entry in read().items()
    }


def click(question, choice):
    question.buttons[choice].click()


def commit(prediction, answer):
    """What the browser sends when the reader commits to ``answer``."""
    prediction._handle_custom_msg({"commit": answer}, [])


@pytest.fixture
def told(monkeypatch):
    """The cards that :func:`reveal` has shown."""
    shown = []
    monkeypatch.setattr(predictions, "display", shown.append)
    return shown


# ---- predict, reveal ----
def test_a_prediction_is_logged(log):
    question = lesson.predict("99.swap")
    assert not log.exists() and question.said is None
    commit(question, "other")
    assert entries() == {"99.predict.swap": {"choice": "other"}} and question.said == "other"


@pytest.mark.parametrize(
    "said, verdict, right, belief, others",
    [
        (None, "", None, "", [["It changes.", "then it would move"], ["Who knows?", "you could"]]),
        (
            "same",
            "You predicted this.",
            True,
            "",
            [["It changes.", "then it would move"], ["Who knows?", "you could"]],
        ),
        ("other", "You predicted: It changes.", False, "then it would move", [["Who knows?", "you could"]]),
    ],
)
def test_reveal_answers_the_belief_by_name(told, said, verdict, right, belief, others):
    question = lesson.predict("99.swap")
    if said:
        question.choose(said)
    lesson.reveal("99.swap", "same")
    [card] = told
    assert card.told == {
        "key": "99.swap",
        "measured": "same",
        "said": said,
        "right": right,
        "verdict": verdict,
        "words": "a &lt; b &amp; c",
        "belief": belief,
        "reasons": ASKED["predict"]["swap"]["reasons"]["other"] if right is False else [],
        "reason": "",
        "meaning": "it stays",
        "others": others,
    }
    assert question.told == card.told, "the card that asked says it, too"
    assert read().get("99.predict.swap", {}).get("right") is right


def test_who_was_wrong_is_asked_why_until_they_answer_anew(told):
    lesson.predict("99.swap").choose("other")
    lesson.reveal("99.swap", "same")
    told[0]._handle_custom_msg({"reason": "I saw it move."}, [])
    assert entries()["99.predict.swap"] == {"choice": "other", "right": False, "reason": "I saw it move."}
    lesson.reveal("99.swap", "same")
    assert told[1].told["reason"] == "I saw it move.", "it is not asked again"
    lesson.predict("99.swap").choose("third")
    lesson.reveal("99.swap", "same")
    assert (told[2].told["reason"], told[2].told["reasons"]) == ("", [])


def test_a_choice_that_is_gone_counts_as_none(told):
    record("99.predict.swap", choice="gone")
    assert lesson.predict("99.swap").said is None
    lesson.reveal("99.swap", "same")
    assert told[0].told["right"] is None and told[0].told["verdict"] == ""


@pytest.mark.parametrize(
    "measured, words, right",
    [(2.5, "close enough.", True), (4, "1.75 too low.", False), (1, "1.25 too high.", False)],
)
def test_a_number(told, measured, words, right):
    question = lesson.predict("98.size")
    commit(question, 2.25)
    assert entries() == {"98.predict.size": {"choice": 2.25}}
    lesson.reveal("98.size", torch.tensor(measured))
    assert told[0].told["verdict"] == f"You predicted 2.25 nats: {words}"
    assert told[0].told["words"] == f"{measured:.4g} nats"
    assert read()["98.predict.size"]["right"] is right
    assert told[0].told["belief"] == ("" if right else "you forgot half" if measured == 4 else "")


def test_a_curve(told):
    question = lesson.predict("98.curve")
    commit(question, [1.0, 1.5, 3.0])
    assert entries() == {"98.predict.curve": {"choice": [1.0, 1.5, 3.0]}}
    lesson.reveal("98.curve", [1.1, 1.5, 2.0])
    assert told[0].told["words"] == "loss 1.1 at 64, 1.5 at 128, 2 at 256"
    assert told[0].told["verdict"] == "Your curve is farthest away at 256: 3, measured 2."
    assert (told[0].told["said"], told[0].told["measured"]) == ([1, 1.5, 3], [1.1, 1.5, 2])
    assert read()["98.predict.curve"]["right"] is False
    lesson.reveal("98.curve", [1.1, 1.5, 2.6])
    assert read()["98.predict.curve"]["right"] is True


@pytest.mark.parametrize("key", ["98.size", "98.curve"])
def test_an_answer_to_another_kind_of_question_is_none(key, told):
    record(key.replace(".", ".predict."), choice="same")
    assert lesson.predict(key).said is None
    lesson.reveal(key, 1 if key == "98.size" else [1, 2, 3])
    assert told[0].told["right"] is None and told[0].told["said"] is None


# ---- concept check ----


def test_each_answer_is_explained_and_the_first_one_counts(log):
    one, two = lesson.concept_check("99").questions
    click(one, "no")
    assert one.status.value == "<b>Not quite.</b> It is not not so." and one.buttons["no"].icon == "times"
    click(one, "yes")
    assert one.status.value == "<b>Right.</b> It is <i>so</i>." and one.buttons["yes"].icon == "check"
    click(two, "b")
    assert entries() == {
        "99.check.one": {"choice": "no", "right": False},
        "99.check.two": {"choice": "b", "right": True},
    }
    assert (one.label, two.label) == ("Question 1", "Question 2")


def test_who_does_not_know_is_told(log):
    one = lesson.concept_check("99").questions[0]
    assert list(one.buttons) == ["yes", "no", "unsure"]
    click(one, "unsure")
    assert one.status.value == "<b>The answer: Yes &amp; yes</b> It is <i>so</i>."
    assert one.buttons["unsure"].icon == "question" and entries()["99.check.one"]["right"] is False
    hint = lesson.concept_check("01").questions[0]
    click(hint, "unsure")
    assert hint.status.value.startswith("<b>The answer: Invariant.</b> Try it with three rows")


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: lesson.predict("99.swop"), KeyError, "no question 'swop'; it has swap"),
        (lambda: lesson.predict("77.swap"), KeyError, "no questions for notebook '77'"),
        (lambda: lesson.reveal("99.swap", "sme"), ValueError, "'sme' is no choice.*same, other, third"),
        (lambda: lesson.reveal("98.size", "big"), ValueError, "the answer to 98.size: could not convert"),
        (lambda: lesson.reveal("98.curve", [1, 2]), ValueError, "2 values; there are 3 points: 64, 128, 256"),
        (lambda: lesson.reveal("99.one", "yes"), KeyError, "no question 'one'"),
        (lambda: lesson.concept_check("77"), KeyError, "no questions for notebook '77'"),
    ],
)
def test_errors_list_what_there_is(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ---- warm-up ----
MONDAY = "2026-11-23T12:00:00.000000+00:00"


def day(n):
    return MONDAY.replace("23T", f"{23 + n}T")


@pytest.fixture
def four(monkeypatch):
    """Four invented lessons of two questions each: 96 to 99."""
    monkeypatch.setattr(questions, "notebooks", lambda: ["96", "97", "98", "99"])
    monkeypatch.setattr(questions, "load", lambda number: {**ASKED, "title": number})


@pytest.mark.parametrize(
    "log, asked, due",
    [
        # never asked: the latest first, and never both of the lesson just before
        ({}, ["98.two", "97.two"], ""),
        # wrong before all, the older first; one of 98 alone would be too easy
        (
            {"97.check.one": ("no", day(0)), "96.check.two": ("unsure", day(1))},
            ["97.one", "96.two"],
            "2, of 96, 97",
        ),
        ({"98.check.one": ("no", day(0)), "98.check.two": ("a", day(1))}, ["98.one", "97.two"], "2, of 98"),
        # right rests for a day, then comes before what was never asked
        ({"97.check.two": ("b", day(3))}, ["98.two", "97.one"], ""),
        ({"97.check.two": ("b", day(2))}, ["97.two", "98.two"], "1, of 97"),
        # the warm-up counts before the check; two right ones rest for two days, three for four
        ({"97.check.two": ("a", day(0)), "97.again.two": (2, day(0))}, ["97.two", "98.two"], "1, of 97"),
        ({"97.check.two": ("a", day(0)), "97.again.two": (3, day(0))}, ["98.two", "97.one"], ""),
    ],
)
def test_what_is_asked_again(four, log, asked, due):
    from course.lesson.warm_up import due as say
    from course.lesson.warm_up import pick

    right = {"one": "yes", "two": "b"}
    read = {
        key: {"choice": "x", "right": True, "streak": said, "at": at}
        if isinstance(said, int)
        else {"choice": said, "right": said == right[key.split(".")[2]], "at": at}
        for key, (said, at) in log.items()
    }
    assert [".".join(each) for each in pick("99", read, day(3).replace("T12", "T13"))] == asked
    n, _, lessons = due.partition(", of ")
    assert say(read, day(3).replace("T12", "T13")) == (
        due and f"To be asked again in a warm-up: {n}, of lesson {lessons}."
    )


def test_the_only_lesson_before_is_asked_twice_and_the_first_has_none(four):
    asked = lesson.warm_up("97").questions
    assert [each.key for each in asked] == ["96.again.two", "96.again.one"]
    assert asked[0].label == "Warm-up 1, from lesson 96"
    with pytest.raises(ValueError, match="no lesson comes before it"):
        lesson.warm_up("96")


def test_a_warm_up_is_noted_beside_the_first_answer(four):
    lesson.concept_check("96").questions[0].choose("no")
    for n, choice in enumerate(("yes", "yes", "no"), 1):
        (one,) = (each for each in lesson.warm_up("97").questions if each.key == "96.again.one")
        click(one, choice)
        click(one, "no")  # the first click counts
        streak = (1, 2, 0)[n - 1]
        assert entries()["96.again.one"] == {"choice": choice, "right": bool(streak), "streak": streak}
    assert entries()["96.check.one"] == {"choice": "no", "right": False}
    assert "To be asked again in a warm-up: 1, of lesson 96." in repr(lesson.progress())


def test_the_concept_check_says_what_is_due():
    check = lesson.concept_check("99")
    below = check.children[-1]
    assert below.value == ""
    check.questions[1].choose("a")
    assert below.value == "To be asked again in a warm-up: 1, of lesson 99."


# ---- what stands without a kernel ----


def test_the_stored_question_stands_without_a_kernel():
    data, _ = lesson.predict("99.swap")._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"] == (
        "<p><b>Predict.</b> What <i>happens</i>?</p>"
        "<ul><li>a &lt; b &amp; c</li><li>It changes.</li><li>Who knows?</li></ul>"
    )
    assert data["text/plain"] == "Predict: What happens?"  # no tags in plain text


@pytest.mark.parametrize("key", ["98.size", "98.curve"])
def test_the_stored_question_of_another_kind_stands_too(key):
    data, _ = lesson.predict(key)._repr_mimebundle_()
    assert data["text/html"].startswith("<p><b>Predict.</b> ") and "<ul>" not in data["text/html"]


@pytest.mark.parametrize("key, measured", [("99.swap", "same"), ("98.size", 2), ("98.curve", [1, 2, 3])])
def test_the_stored_answer_is_folded_and_its_first_line_says_nothing(told, key, measured):
    """JupyterLab shows the first line of a folded output."""
    lesson.reveal(key, measured)
    data, _ = told[0]._repr_mimebundle_()
    for mime in ("text/html", "text/plain"):
        assert data[mime].split("\n")[0] == "What was measured:"
    assert data["text/html"].count("<details>") == 1 and "no prediction" not in data["text/html"]
    assert_html(data["text/html"])
    if key == "99.swap":
        assert "<p>Measured: <b>a &lt; b &amp; c</b></p><p>it stays</p>" in data["text/html"]
        assert "<li><i>It changes.</i> then it would move</li>" in data["text/html"]


def test_the_stored_concept_check_does_not_give_the_answers():
    data, _ = lesson.concept_check("99")._repr_mimebundle_()
    for bundle, first in ((data["text/html"], "Is it <b>so</b>?"), (data["text/plain"], "Is it so?")):
        assert first in bundle and "Which?" in bundle
        assert "not not" not in bundle and "Right" not in bundle
    assert "<li>Yes &amp; yes</li><li>No</li><li>I don't know.</li>" in data["text/html"]


# ---- the log ----


@pytest.mark.parametrize("broken", [b"{", b"\xff\xfe", b"[1, 2]", b'{"a": 3}', b""])
def test_a_broken_log_is_set_aside(log, broken):
    log.parent.mkdir()
    log.write_bytes(broken)
    assert entries() == {}
    assert log.with_name("progress.json.broken").read_bytes() == broken
    record("99.check.one", choice="no")
    assert entries() == {"99.check.one": {"choice": "no"}}


def test_a_disk_that_cannot_be_written_to_never_stops_the_lesson(log, told):
    log.parent.write_text("a file where the folder should be")
    lesson.predict("99.swap").choose("same")  # not a click: widgets hide what a callback raises
    lesson.concept_check("99").questions[0].choose("no")
    lesson.reveal("99.swap", "same")
    assert entries() == {} and told[0].told["right"] is True, "the card remembers what the disk could not"
    assert lesson.progress().rows()[0][1:] == ("0 of 1", "–", "0 of 2", "–", "–")


def test_entries_are_added_and_merged(log):
    record("a", choice="ü")
    record("b", choice="1")
    record("b", choice="2")
    record("a", right=True)
    assert entries() == {"a": {"choice": "ü", "right": True}, "b": {"choice": "2"}}
    assert "ü" in log.read_text(encoding="utf-8")  # a reader can read it
    left = {file.name for file in log.parent.iterdir()}
    assert left == {"progress.json", "progress.json.lock"}  # no temporary file


def test_forget_drops_what_begins_so(log):
    assert forget("01.") == 0 and not log.exists()
    for key in ("01.check.a", "01.check.b", "01.predict.a", "10.check.a"):
        record(key, choice="x")
    assert forget("01.check.") == 2 and sorted(read()) == ["01.predict.a", "10.check.a"]
    assert forget("01.check.") == 0
    assert forget("") == 2 and entries() == {}


def test_forgetting_a_broken_log_sets_it_aside(log):
    log.parent.mkdir()
    log.write_bytes(b"{")
    assert forget("") == 0 and log.with_name("progress.json.broken").read_bytes() == b"{"


def test_a_full_disk_loses_the_entry_and_leaves_nothing_behind(log, monkeypatch):
    record("a", choice="1")
    monkeypatch.setattr(progress.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    record("b", choice="2")
    assert forget("a") == 0 and entries() == {"a": {"choice": "1"}}
    assert {file.name for file in log.parent.iterdir()} == {"progress.json", "progress.json.lock"}


WRITER = """
import sys
from course import progress
progress.PATIENCE = 60
who = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
for n in range(40):
    progress.record(f"{who}.{n}", choice=n)
    progress.record("shared", **{f"{who}{n}": n})
"""


def test_two_kernels_lose_none_of_each_others_entries(log):
    command = [sys.executable, "-c", WRITER]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Popen([*command, who], stdin=PIPE, stdout=PIPE, text=True))
            for who in ("one", "two")
        ]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:  # both at once
            writer.stdin.write("go\n")
            writer.stdin.flush()
        assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    found = entries()
    assert len(found.pop("shared")) == 80 and len(found) == 80
    assert not log.with_name("progress.json.broken").exists()


def test_a_kernel_that_hangs_on_the_lock_stops_nobody(log, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.1)
    record("a", choice="1")
    with progress._alone():
        began = time.monotonic()
        record("b", choice="2")
        assert time.monotonic() - began > 0.1  # it did wait
        assert sorted(read()) == ["a", "b"] and forget("a") == 1
    monkeypatch.setattr(progress, "PATIENCE", 1000)
    record("c", choice="3")
    assert sorted(read()) == ["b", "c"]  # the lock is free again


def test_the_log_is_at_home_unless_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.delenv("TUTORIAL_PROGRESS")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert log_file() == tmp_path / ".tutorial_lib" / "progress.json"


def test_the_panel_counts():
    assert lesson.progress().rows() == [("99 A <test> & more", "0 of 1", "–", "0 of 2", "–", "–")]
    record("99.predict.swap", right=True)  # a reveal alone is no prediction
    record("99.check.gone", choice="x", right=True)
    assert lesson.progress().rows()[0][1:] == ("0 of 1", "–", "0 of 2", "–", "–")
    lesson.predict("99.swap").choose("same")
    one, two = lesson.concept_check("99").questions
    one.choose("no")
    assert lesson.progress().rows()[0][1:] == ("1 of 1", "–", "1 of 2", "0 of 1", "–")
    two.choose("b")
    assert lesson.progress().rows()[0][1:] == ("1 of 1", "–", "2 of 2", "1 of 2", "–")
    assert "99 A <test> & more | 1 of 1 | – | 2 of 2 | 1 of 2 | –" in repr(lesson.progress())
    page = lesson.progress()._repr_html_()
    assert ">99 A &lt;test&gt; &amp; more</td>" in page
    assert page.count("<th ") == 6 and page.count("<tr>") == 2


@pytest.fixture
def graded(monkeypatch):
    """Graded exercises: one, for the invented notebook 99; ``load`` raises KeyError for others."""
    Asked = namedtuple("Asked", "name bonus")
    exercises = {"99": (Asked("a", False), Asked("b", False), Asked("extra", True))}
    package, module = ModuleType("course.checks"), ModuleType("course.checks.questions")
    module.load = exercises.__getitem__
    package.questions = module
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(questions, "notebooks", lambda: ["00", "99"])


def test_the_panel_counts_what_is_passed_of_the_exercise(graded):
    def passed():
        return [row[-1] for row in lesson.progress().rows()]

    assert passed() == ["–", "0 of 2"]
    record("99.exercise.a", passed=True)
    record("99.exercise.b", passed=False)
    record("99.exercise.gone", passed=True)
    record("00.exercise.a", passed=True)
    assert passed() == ["–", "1 of 2"]
    record("99.exercise.extra", passed=True)
    assert passed() == ["–", "1 of 2 + bonus"]
    record("99.exercise.b", passed=True)
    assert passed() == ["–", "2 of 2 + bonus"] and lesson.progress().HEAD[-1] == "Exercise passed"


def test_a_table_escapes_its_text():
    page = table(["a < b"], [["<b>", "&"], ["x", "y"]])
    assert '<th scope="col" style="text-align:left">a &lt; b</th>' in page
    assert page.count("<tr>") == 3 and "<b>" not in page and ">&amp;</td>" in page
    assert all("text-align:left" in tag for tag in re.findall("<t[hd] .*?>", page))


# ---- claims ----


def test_verdicts():
    claims = Claims()
    claims.test("It is so.", True, "1 = 1")
    claims.test("It is not.", 1 > 2, "1 < 2", "1 is less", "Someone 2017, eq. 1")
    claims.test("Both", {"up to 10": True, "beyond": False}, "it depends")
    claims.test("All", {"a": True, "b": True}, "m")
    claims.test("None", {"a": False, "b": False}, "m")
    assert [row.verdict for row in claims.rows] == [
        "✔ holds",
        "✘ does not hold",
        "◐ half true: ✔ up to 10; ✘ beyond",
        "✔ holds",
        "✘ does not hold",
    ]
    assert repr(claims).splitlines()[1] == "“It is not.” — ✘ does not hold. 1 < 2"


def test_claims_escape_what_they_show():
    claims = Claims()
    claims.test("a < b", True, "x & y", "<b>", "s")
    page = claims._repr_html_()
    assert "“a &lt; b”" in page and "x &amp; y" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert page.count("<td ") == page.count("<th ") == 5


def test_a_claim_is_judged_before_its_record_is_shown():
    claims = Claims()
    claims.test("It <b>is</b>.", {"here": True, "there": False}, "1 < 2", "Here.", "Someone 2017")
    claims.test("So it is.", verdicts.fact(True, "x")._replace(verdict="by construction"), "x")
    half, built = (Asked(row) for row in claims.rows)
    assert half.children[0].value == "<b>“It &lt;b&gt;is&lt;/b&gt;.”</b>" and half.status.value == ""
    assert list(half.buttons) == ["holds", "half true", "does not hold", "not shown"]
    click(half, "holds")
    assert half.buttons["holds"].icon == "times"
    assert half.status.value == (
        "<b>◐ half true: ✔ here; ✘ there</b><br><b>Measured here:</b> 1 &lt; 2<br><b>Say instead:</b> Here."
        "<br><b>Source:</b> Someone 2017"
    )
    click(half, "half true")
    click(built, "holds")
    assert entries() == {
        "claim.It <b>is</b>.": {"choice": "holds", "right": False},
        "claim.So it is.": {"choice": "holds", "right": True},
    }
    bundle = claims._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle and bundle["text/plain"] == repr(claims)
    assert bundle["text/html"].startswith("<details><summary>") and "<table>" in bundle["text/html"]


def test_a_claim_needs_a_measurement():
    with pytest.raises(ValueError, match="'empty' has no condition"):
        Claims().test("empty", {}, "nothing")


def test_tensors_and_numpy_booleans_are_verdicts_too():
    claims = Claims()
    claims.test("t", torch.tensor(1) > 0, "m")
    claims.test("t", {"a": torch.tensor(1).numpy() > 2}, "m")
    assert [row.verdict for row in claims.rows] == ["✔ holds", "✘ does not hold"]


# ---- the questions of the course ----


class Tags(HTMLParser):
    """Fails unless every tag that is opened is closed in turn."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag


def assert_html(text):
    parser = Tags()
    parser.feed(text)
    assert not parser.open, text


def assert_reasons(question, where):
    for name, given in question.get("reasons", {}).items():
        assert name in question["why"] and 1 <= len(given) <= 3, where
        for reason, refuted in given:
            assert reason.endswith(".") and not re.search(r"<|\$", reason), f"{where}: plain text only"
            assert refuted not in question["why"].values(), where
            assert_html(refuted)


@pytest.mark.parametrize("number", NUMBERS)
def test_questions_are_well_formed(number):
    asked = questions.load(number)
    assert re.fullmatch(r"\d\d", number) and asked["title"].startswith(number)
    assert set(asked) <= {"title", "predict", "check"}
    assert len(asked.get("check", {})) in (0, 5)
    for kind in ("predict", "check"):
        for name, question in asked.get(kind, {}).items():
            where = f"{number}.{kind}.{name}"
            if question.get("kind") in ("number", "sketch"):
                wanted = NUMBER if question["kind"] == "number" else SKETCH
                more = {"why", "reasons"}
                assert kind == "predict" and set(question) - more == set(wanted) - more, where
                assert_reasons(question, where)
                sides = {"low", "high", "right"} if question["kind"] == "number" else {"wrong", "right"}
                assert set(question.get("why", {})) <= sides, where
                assert (
                    question["within"] > 0
                    and question.get("ylim", [0, 1]) == sorted(question.get("ylim", [0, 1]))
                    and len(question.get("x", [1, 2])) >= 2
                ), where
                assert_html(question["question"])
                continue
            more = {"answer", "why"} if kind == "check" else {"why", "reasons"} & set(question)
            assert set(question) == {"question", "choices"} | more, where
            choices = question["choices"]
            assert 2 <= len(choices) <= 5 and len(set(choices.values())) == len(choices), where
            for choice in choices.values():
                assert not re.search(r"</?[a-z]+>|&[a-z]+;|\$", choice), f"{where}: plain text only"
            assert_html(question["question"])
            if "why" in question:
                more = {questions.UNSURE} if kind == "check" else set()
                assert set(question["why"]) - more == set(choices), where
                for why in question["why"].values():
                    assert_html(why)
                assert len(set(question["why"].values())) == len(question["why"]), where
            assert_reasons(question, where)
            if kind == "check":
                assert question["answer"] in choices, where


@pytest.mark.parametrize("number", NUMBERS)
def test_the_right_answer_has_no_fixed_place(number):
    check = questions.questions(number).get("check", {})
    places = {list(q["choices"]).index(q["answer"]) for q in check.values()}
    assert not check or len(places) > 1
