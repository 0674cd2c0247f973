"""The blanks of the lessons: judged at once, never in the way, and none of them an exercise's."""

import ast
import dataclasses
import functools
import re

import nbformat
import pytest
import torch

from course.checks import questions as graded
from course.checks.answer import collect
from course.checks.judge import judge
from course.checks.question import Case, Question, Wrong
from course.lesson import turns, your_turn
from course.places import ROOT
from course.progress import read

NOTEBOOKS = ROOT / "notebooks"
ALL = {f"{number}.{name}": turn for number in turns.notebooks() for name, turn in turns.load(number).items()}
SEED = 7


def double(x):
    return 2 * x


def squared(x):
    return x**2


TURN = Question(
    name="double",
    exercise="99",
    title="Double it.",
    returns="a tensor [L]",
    section="here",
    draw=lambda draw: [Case((draw.normal(length),), f"L = {length}") for length in (3, 4, 5)],
    reference=double,
    hints=("Twice.", "2 * …", "2 * x"),
    picture="lines",
    wrong=(Wrong("squared", squared, "This squares: 3 becomes 9."),),
)


@pytest.fixture(autouse=True)
def shown(tmp_path, monkeypatch):
    """What a turn has shown; one invented turn, a log of its own."""
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))
    known = turns.load
    monkeypatch.setattr(turns, "load", lambda number: {"double": TURN} if number == "99" else known(number))
    found = []
    monkeypatch.setattr(turns, "display", found.append)
    return found


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """What was drawn."""
    found = []
    monkeypatch.setattr("course.checks.report.plots.show", lambda fig, alt: found.append(alt))
    return found


def test_what_is_right_is_used(shown, drawn):
    def mine(x):
        return x + x

    assert your_turn("99.double", mine) is mine
    assert shown[0].verdict == "✔ Right." and read()["99.turn.double"]["passed"] and not drawn


def blank(x):
    """Twice x."""
    ...


def started(x):
    return ...


def unwritten(x):
    raise NotImplementedError


@pytest.mark.parametrize("answer", [blank, started])
def test_an_empty_blank_goes_on_with_the_reference_and_counts_as_nothing(answer, shown, drawn):
    assert your_turn("99.double", answer) is double
    assert repr(shown[0]) == "Not written yet. From here on the lesson uses its own version."
    assert read() == {} and not drawn


def forgets(x):
    x = 2 * x


def fails(x):
    return x.no_such_method()


@pytest.mark.parametrize(
    "answer, words",
    [
        (squared, "This squares: 3 becomes 9."),
        (forgets, "return"),
        (fails, "no_such_method"),
        (lambda x: 2 * x[:-1], "shape"),
        (lambda x: 2 * x + 1, "L = 3"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_stops(answer, words, shown):
    assert your_turn("99.double", answer) is double
    assert shown[0].verdict == "✘ Not yet." and words in shown[0].text
    assert read()["99.turn.double"]["passed"] is False


def test_a_mistake_is_drawn_beside_the_target(drawn):
    your_turn("99.double", squared)
    assert "Target beside your answer" in drawn[0]


def test_a_picture_that_cannot_be_drawn_stops_no_lesson(shown, monkeypatch, capsys):
    monkeypatch.setattr("course.checks.report.plots.show", lambda fig, alt: 1 / 0)
    assert your_turn("99.double", squared) is double
    assert "This squares: 3 becomes 9." in shown[0].text
    assert "could not be drawn (ZeroDivisionError: division by zero)" in capsys.readouterr().out


class Doubled:
    """Twice x."""

    def forward(self, x):
        """Twice."""
        return 2 * x


class Unwritten(Doubled):
    def forward(self, x):
        return ...


def test_a_class_is_used_and_given_back(shown, monkeypatch):
    def use(answer):
        return functools.wraps(answer, updated=())(lambda x: answer().forward(x))

    turn = dataclasses.replace(TURN, reference=use(Doubled), use=use)
    monkeypatch.setattr(turns, "load", lambda number: {"double": turn})
    mine = type("Mine", (Doubled,), {})
    assert your_turn("99.double", mine) is mine and shown[-1].verdict == "✔ Right."
    assert your_turn("99.double", Unwritten) is Doubled and shown[-1].verdict == "Not written yet."
    squares = type("Squares", (Doubled,), {"forward": lambda self, x: x**2})
    assert your_turn("99.double", squares) is Doubled and "This squares" in shown[-1].text
    monkeypatch.setattr(turns, "_", lambda text: text.replace("Twice", "两倍"))
    page = shown[-1]._repr_html_()
    assert "class Doubled:" in page and "两倍 x." in page and "两倍.&quot;" in page


def test_a_turn_that_was_passed_stays_passed():
    your_turn("99.double", double)
    your_turn("99.double", squared)
    assert read()["99.turn.double"]["passed"] is True


def test_without_a_kernel_hints_and_solution_stand_folded(shown):
    your_turn("99.double", blank)
    page = shown[0]._repr_html_()
    assert page.count("<details>") == 4 and "def double(x):\n    return 2 * x" in page and "Hint 3" in page


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: your_turn("99.dubble", double), KeyError, "no turn 'dubble'; it has double"),
        (lambda: your_turn("77.double", double), KeyError, "notebook 77 has no turn 'double'; it has none"),
        (lambda: your_turn("99.double", double(torch.ones(2))), TypeError, "your function itself"),
    ],
)
def test_errors_say_what_to_do(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ---- the turns of the course ----
def cell(key):
    """The one cell that has the turn."""
    number = key[:2]
    paths = [*NOTEBOOKS.glob(f"{number}_*.ipynb"), *NOTEBOOKS.glob(f"deeper/{number}_*.ipynb")]
    cells = [
        each.source
        for path in paths
        for each in nbformat.read(path, as_version=4).cells
        if f'your_turn("{key}"' in each.source
    ]
    assert len(cells) == 1, f"{key} stands in {len(cells)} cells"
    return cells[0]


def test_every_turn_of_a_notebook_is_known():
    asked = {
        key
        for path in NOTEBOOKS.rglob("[0-9]*.ipynb")
        if "checkpoints" not in str(path)
        for key in re.findall(r'your_turn\(\\"([\w.]+)\\"', path.read_text(encoding="utf-8"))
    }
    assert asked == set(ALL)


@pytest.mark.parametrize("key", ALL)
def test_a_turn_is_well_formed(key):
    turn = ALL[key]
    assert turn.name == turns.reference(turn).__name__ == key[3:] and turn.exercise == key[:2]
    assert len(turn.wrong) >= 3 and all(turn.hints) and len(turn.cases(SEED)) >= 3
    source = turns.solution(turn)
    assert re.match(rf"(def|class) {turn.name}\(", source) and len(source.splitlines()) <= 12
    assert turn.name not in {question.name for question in graded.everything()}, "an exercise grades it"


@pytest.mark.parametrize("key", ALL)
def test_the_reference_is_right_and_each_wrong_answer_is_named(key, shown):
    turn = ALL[key]
    ours = turns.reference(turn)
    assert your_turn(key, ours, seed=SEED) is ours and shown[-1].verdict == "✔ Right."
    for wrong in turn.wrong:
        for seed in (SEED, SEED + 1):
            outcomes = collect(wrong.answer, [case.args for case in turn.cases(seed)], turn.seconds)
            verdict = judge(turn, seed, outcomes)
            assert not verdict.passed and verdict.name == wrong.name, (wrong.name, verdict)
    for variant in turn.variants:
        assert your_turn(key, variant.answer, seed=SEED) is variant.answer


@pytest.mark.parametrize("key", ALL)
def test_the_blank_is_empty_and_has_the_name_and_arguments_of_the_reference(key):
    given, wanted = (
        {
            node.name: [a.arg for a in node.args.args]
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        }
        for tree in (ast.parse(cell(key)), ast.parse(turns.solution(ALL[key])))
    )
    assert wanted and wanted.items() <= given.items()
    assert re.search(r"^\s*(return )?\.\.\.(\s*#.*)?$", cell(key), re.MULTILINE), "a line of its own: ..."
    called = rf'^{key[3:]} = lesson\.your_turn\("{key}", {key[3:]}(, build=True)?\)$'
    assert re.search(called, cell(key), re.MULTILINE)
