"""Marks: what honest, broken and hostile submissions get, and what their authors get to read."""

import ast
import copy
import dataclasses
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path
from typing import ClassVar

import nbformat
import pytest
import torch

from classroom import gradebook, intake, marking, sandbox
from classroom.__main__ import main
from classroom.sandbox import Limits, Outcome
from classroom.stub_modules import ROOMS
from course import files
from course.checks import judge, messaging, questions
from course.checks.answer import collect
from workshop import exercises

NAME = "ex06_rope"
SECRET = "of the tests"
MISSING = sandbox.probe()
contained = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def text(value) -> str:
    return textwrap.dedent(value).strip("\n")


def answers(name: str = NAME) -> dict[str, str]:
    """The solution's source for each coded question."""
    cells = nbformat.read(exercises.path(name), as_version=4).cells
    return {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("solution")
    }


RIGHT = answers()
ANGLES, ROTATE, SHIFT, SCORES, SORT = RIGHT
ASKED = questions.load("06")
POINTS = {question.name: float(question.points) for question in ASKED}
SEEDS = marking.seeds_of(SECRET, NAME, "somebody", b"")


def cell(source: str, **metadata) -> dict:
    return {
        "cell_type": "code",
        "id": uuid.uuid4().hex[:8],
        "metadata": metadata,
        "source": text(source),
        "outputs": [],
        "execution_count": None,
    }


def grade_id(one: dict) -> str:
    return one["metadata"].get("nbgrader", {}).get("grade_id", "")


def filled(given: dict[str, str], scratch: tuple[str, ...] = ()) -> dict:
    """The released notebook with answers, and cells of the student's own before the first of them."""
    notebook = json.loads(exercises.path(NAME, "exercises").read_bytes())
    for one in notebook["cells"]:
        one["source"] = text(given.get(grade_id(one), "".join(one["source"])))
    first = next(n for n, one in enumerate(notebook["cells"]) if grade_id(one) == ANGLES)
    notebook["cells"][first:first] = [cell(source) for source in scratch]
    return notebook


def data(notebook: dict) -> bytes:
    return json.dumps(notebook).encode()


def mark(given: dict[str, str], scratch: tuple[str, ...] = (), **more) -> dict:
    """The marks of a submission; also sees to what holds for each."""
    marks = marking.mark(data(filled({**RIGHT, **given}, scratch)), NAME, "somebody", SECRET, **more)
    assert set(marks["questions"]) == set(POINTS)
    assert all(
        entry["points"] == (entry["max"] if entry["passed"] else 0) for entry in marks["questions"].values()
    )
    assert json.loads(json.dumps(marks, allow_nan=False)) == marks
    return marks


def points(marks: dict) -> dict[str, float]:
    return {name: entry["points"] for name, entry in marks["questions"].items()}


def kinds(marks: dict) -> dict[str, str]:
    return {name: entry["kind"] for name, entry in marks["questions"].items()}


def told(marks: dict) -> str:
    """Everything that a student reads."""
    entries = [
        [entry[key] for key in ("kind", "name", "text", "reread")] for entry in marks["questions"].values()
    ]
    return json.dumps([marks["state"], marks["reason"], marks["remarks"], entries], ensure_ascii=False)


def running(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [str(path)] * (word.encode() in path.read_bytes())
        except OSError:
            pass
    return found


# ---- the exercises themselves ----
@contained
@pytest.mark.parametrize("name", exercises.names())
def test_a_solution_gets_full_marks(name):
    asked = questions.load(exercises.number(name))
    marks = marking.mark(exercises.path(name).read_bytes(), name, "ada", SECRET)
    assert (marks["state"], marks["reason"], marks["remarks"]) == ("graded", "", [])
    assert points(marks) == {question.name: question.points for question in asked}
    assert len(marks["written"]) == 2 and marks["student"] == "ada"


@contained
def test_a_stub_gets_none():
    """One stands for all: what a stub is, tests/exercises/test_exercises.py sees to for each."""
    marks = marking.mark(exercises.path(NAME, "exercises").read_bytes(), NAME, "bob", SECRET)
    assert (marks["state"], marks["remarks"], sum(points(marks).values())) == ("graded", [], 0)
    assert kinds(marks) == dict.fromkeys(POINTS, "stub") | {"cached_scores": "mistake"}, "that is broken code"
    assert all("not written" in marks["questions"][name]["text"] for name in {*POINTS} - {"cached_scores"})


@contained
def test_who_calls_a_broken_answer_gets_the_points_of_their_own():
    """With only rope_rotate broken, the right answers that call it are marked with ours in its place."""
    broken = """
    def rope_rotate(x, angles, layout):
        a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, -1)
        a, b = a * angles.cos() - b * angles.sin(), b * angles.cos() - a * angles.sin()
        return (torch.stack([a, b], -1).flatten(-2) if layout == "interleaved"
                else torch.cat([a, b], -1)).to(x.dtype)
    """
    notebook = json.loads(exercises.path(NAME).read_bytes())
    ours = {grade_id(one): "".join(one["source"]) for one in notebook["cells"]}
    given = {name: ours[name] for name in POINTS} | {"rope_rotate": textwrap.dedent(broken)}
    marks = mark(given)
    assert {name for name, one in marks["questions"].items() if not one["passed"]} == {"rope_rotate"}
    for name in ("rope_shift_error", "cached_scores"):
        said = marks["questions"][name]["text"]
        assert said.startswith("Your `rope_rotate` has not passed yet; here it was")
    own = given["cached_scores"].replace("cached.shape[-2] + ", "1 + cached.shape[-2] + ")
    assert own != given["cached_scores"]
    marks = mark(given | {"cached_scores": own})
    assert marks["questions"]["cached_scores"]["name"] == "one position too far"


@contained
def test_a_cell_that_python_cannot_read_is_told_where_and_costs_only_its_own_answer():
    comma = "def rope_rotate(x, angles， layout):\n    return x"
    bracket = "import math\n\ndef rope_sort_rows(weight, n_heads):\n    return weight.view((n_heads, -1)\n"
    fails_itself = f'exec("def {ANGLES}(")\n\n{RIGHT[ANGLES]}'  # the cell can be read
    marks = mark({ROTATE: comma, SORT: bracket, ANGLES: fails_itself})
    lost = {ROTATE: "syntax", SORT: "syntax", ANGLES: "stub"}
    assert kinds(marks) == dict.fromkeys(POINTS, "right") | lost
    for name, place in ((ROTATE, "line 1, at character 26"), (SORT, "line 4, at character 23")):
        said = marks["questions"][name]["text"]
        assert said.startswith(f"Python can't read the cell of {name}: it stops in {place}."), said


# ---- harmless, and odd in every way at once ----
ODD_CELLS = (
    """
    import sys, warnings
    warnings.warn("this is old")
    print("✓ rope_angles: Right", "noise" * 100_000)
    print("trouble", file=sys.stderr)
    display(-1); display(1e9)
    float("nan")
    """,
    "%matplotlib inline\n!ls\nfiles = !ls /\nget_ipython().run_line_magic('load_ext', 'nothing')",
    "get_ipython().input_transformers_post.append(lambda lines: ['pass'])",
    "import asyncio\nawait asyncio.sleep(0)\nwaited = [x async for x in (i async for i in nobody())]",
    "async def nobody():\n    yield 1\n\nwaited = [x async for x in nobody()]\nassert waited == [1]",
    "%%bash\nexit 3",
    "rope_angles?",
    "this is no Python",
    "1 / 0",
    "import sys\nsys.exit(3)",
    "raise KeyboardInterrupt",
    "class Own(BaseException):\n    def __str__(self):\n        raise self\n\nraise Own",
    "from course import checks as check, progress\nfrom tutorial_lib import plots\n"
    "from tutorial_lib.encodings import rotary\n"
    "with plots.style():\n    check.progress('06')\nfor _ in plots.anything(1)[0]:\n    pass",
    "\ud800",
    "with open('mine.txt', 'w') as file:\n    file.write('x')\nhelper = 1",
)
PICKLED = """import pickle

class Note:
    pass

assert type(pickle.loads(pickle.dumps(Note()))) is Note

"""


def odd() -> dict:
    notebook = filled(
        {
            ANGLES: "%%time\n"
            + RIGHT[ANGLES].replace("def rope_angles", "def my_angles")
            + """

def rope_angles(positions, dim, base):
    print("called", positions, file=sys.stderr)
    warnings.warn("in the answer")
    display(dim)
    return my_angles(positions, dim, base).double()

check.rope_angles(rope_angles)
""",
            ROTATE: RIGHT[ROTATE].replace("def rope_rotate", "def my_rotate")
            + """

def rope_rotate(x, angles, layout):
    assert os.path.exists("mine.txt") and helper == 1
    return my_rotate(x, angles, layout).mT.contiguous().mT.requires_grad_()
""",
            SHIFT: RIGHT[SHIFT],
            SCORES: PICKLED + "import os\n" + RIGHT[SCORES],
            SORT: RIGHT[SORT],
        },
        ODD_CELLS,
    )
    cells = notebook["cells"]
    checks = [one for one in cells if grade_id(one).startswith("check_")]
    cells.remove(checks[0])
    checks[1]["source"] = "import os\nos._exit(0)"
    cells.remove(checks[2])
    cells.insert(0, checks[2] | {"cell_type": "markdown"})
    for one in checks[3:]:
        one["metadata"]["nbgrader"] |= {"points": 1e9, "locked": False}
    for one in cells:
        one["metadata"]["tags"] = ["skip-execution"]
        del one["id"]
    entry = {"grade_id": "check_more", "grade": True, "solution": False, "points": 100, "schema_version": 3}
    cells.append(cell("100", nbgrader=entry))
    place = next(n for n, one in enumerate(cells) if grade_id(one) == SORT)
    cells.insert(place, copy.deepcopy(cells[place]) | {"source": "def rope_sort_rows(*args):\n    pass"})
    notebook["metadata"] = {"kernelspec": {"name": "my-conda-env", "display_name": "?", "language": "R"}}
    return notebook


@pytest.fixture(scope="module")
def odd_marks():
    return marking.mark(data(odd()), NAME, "odd", SECRET)


@contained
def test_what_is_odd_and_right_gets_full_marks(odd_marks):
    """Warnings, prints, cells that fail, magics, copies, tags, other dtypes and layouts in memory."""
    assert (odd_marks["state"], points(odd_marks)) == ("graded", POINTS)
    assert kinds(odd_marks) == dict.fromkeys(POINTS, "right") | {ANGLES: "equivalent"}
    assert odd_marks["remarks"] == [f"The cell of {SORT} is there 2 times; the last counts."]
    assert set(odd_marks["questions"]) == set(POINTS)  # nothing of an invented cell
    assert "float64" in odd_marks["questions"][ANGLES]["text"]


def test_taking_in_changes_nothing_of_what_is_run():
    """A raw upload, the same taken in, and the same in format 3 run the same cells."""
    raw = marking.grafted(data(odd()), NAME)
    taken, remarks = intake.normalise(data(odd()))
    again = marking.grafted(taken, NAME)
    assert again[0] == [source.replace("\ud800", "?") for source in raw[0]] and again[1] == raw[1]
    assert any("my-conda-env" in remark for remark in remarks)
    good = filled(RIGHT)
    old = json.loads(nbformat.writes(nbformat.convert(nbformat.from_dict(good), 3)))
    assert old["nbformat"] == 3 and "cells" not in old
    taken, remarks = intake.normalise(json.dumps(old).encode())
    assert marking.grafted(taken, NAME)[0] == marking.grafted(data(good), NAME)[0]
    with pytest.raises(ValueError, match="Open it in JupyterLab, save it"):
        marking.grafted(json.dumps(old).encode(), NAME)


def test_the_teachers_copy_says_what_a_cell_is():
    notebook = filled(RIGHT)
    by_id = {grade_id(one): one for one in notebook["cells"]}
    by_id[ANGLES]["cell_type"] = "markdown"
    by_id[f"check_{ROTATE}"]["source"] = "cheat()"
    notebook["cells"].remove(by_id[SHIFT])
    explain = next(one for key, one in by_id.items() if key.startswith("explain_"))
    explain["cell_type"] = "code"
    sources, written, remarks = marking.grafted(data(notebook), NAME)
    assert RIGHT[ROTATE] in "".join(sources) and "cheat()" not in sources
    assert not any("def rope_angles" in source or "def rope_shift_error" in source for source in sources)
    assert sorted(remarks) == sorted(
        [
            f"The cell of {ANGLES} has become a markdown cell.",
            f"The cell of {grade_id(explain)} has become a code cell.",
            f"The cell of {SHIFT} is not there any more.",
        ]
    )
    assert len(written) == 2


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b'{"cells": 3}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"cells": {"a": 1}}',
        b'{"worksheets": []}',
    ],
)
def test_what_is_no_notebook_is_rejected_in_words(bad):
    marks = marking.mark(bad, NAME, "x")
    assert marks["state"] == "rejected" and "hand it in again" in marks["reason"] and not marks["questions"]


@pytest.mark.parametrize(
    "strange",
    [
        3,
        None,
        [],
        {"source": 3},
        {"source": [1, "a"], "metadata": []},
        {"cell_type": [], "source": "1", "metadata": {"nbgrader": 7}},
        {"cell_type": "code", "source": {}, "metadata": {"nbgrader": {}}},
        {"cell_type": "raw", "metadata": {"nbgrader": {"grade_id": []}}},
    ],
)
def test_cells_of_any_form_are_read(strange):
    notebook = filled(RIGHT)
    expected = marking.grafted(data(notebook), NAME)
    notebook["cells"].insert(0, strange)
    assert marking.grafted(data(notebook), NAME) == expected


# ---- to get points without an answer ----
CHEAT = """
import builtins, sys, torch
torch.allclose = torch.equal = torch.isclose = torch.Tensor.__eq__ = lambda *args, **more: True
builtins.all = builtins.any = lambda *args: True
import course.checks.answer as answer, course.checks.messaging as wire
answer._equal = lambda *args: True
for name in ("judge", "question", "judge_process", "report"):
    module = type(sys)("course.checks." + name)
    module.judge = lambda *args, **more: {"passed": True, "points": 1e9}
    sys.modules[module.__name__] = module
import __main__
__main__.points = 1e9
"""


@contained
def test_nothing_but_the_numbers_counts(odd_marks):
    marks = mark(
        {
            ANGLES: """
            class Equal:
                def __eq__(self, other): return True
                def __getattr__(self, name): return lambda *args, **more: True
                __ne__ = __lt__ = __gt__ = lambda self, other: True

            def rope_angles(positions, dim, base):
                return Equal()
            """,
            ROTATE: """
            class Liar(torch.Tensor):
                @classmethod
                def __torch_function__(cls, function, types, args=(), kwargs=None):
                    name = getattr(function, "__name__", "")
                    if name in ("allclose", "isclose", "equal", "eq", "__eq__"):
                        return True
                    return super().__torch_function__(function, types, args, kwargs or {})

            def rope_rotate(x, angles, layout):
                return torch.zeros_like(x).as_subclass(Liar)
            """,
            SHIFT: """
            class Bomb:
                def __reduce__(self):
                    import os
                    return os.system, ("touch pickled",)

            def rope_shift_error(q, k, angles, shifted):
                return Bomb()
            """,
            SCORES: """
            def cached_scores(q, k, cached, base):
                return torch.zeros(2, 1, 4) if q.shape == (2, 1, 8) else 1e9
            """,
            SORT: """
            from tutorial_lib.encodings.rotary import sort_rows
            import tutorial_lib

            def rope_sort_rows(weight, head_dim, rotary_dim, target):
                return sort_rows(weight, head_dim, rotary_dim, layout=target)
            """,
        },
        (CHEAT,),
    )
    assert marks["state"] == "graded" and not any(points(marks).values())
    assert kinds(marks)[ANGLES] == kinds(marks)[SHIFT] == "type" and kinds(marks)[SORT] == "borrowed"
    assert kinds(marks)[ROTATE] in ("mistake", "symptom") and not kinds(marks)[SCORES] == "right"
    assert marks["questions"][SORT]["tried_library"] == ["tutorial_lib.encodings.rotary.sort_rows"]
    assert "sort_rows(" not in told(marks) and "tutorial_lib" not in told(marks)
    assert not Path("pickled").exists()
    assert points(odd_marks) == POINTS  # marked with the same code, in another sandbox


# ---- what came back was forged: no sandbox is needed to see what becomes of it ----
def right(name: str) -> list[dict]:
    """The outcomes of the right answer."""
    question = questions.find(name)
    cases = question.cases(SEEDS[name])
    return collect(question.reference, [case.args for case in cases], 60.0)


def finished(name: str, outcomes) -> list[dict]:
    return [{"asking": name}, {"question": name, "outcomes": outcomes}]


def honest(*left_out: str) -> list[dict]:
    return [frame for name in POINTS if name not in left_out for frame in finished(name, right(name))]


def frames(*messages) -> bytes:
    return b"".join(each if isinstance(each, bytes) else messaging.pack(each) for each in messages)


class Forged:
    """Marks for frames that are given, run by run; ``sent`` is what the sandbox was given."""

    def __init__(self, monkeypatch):
        self.patch, self.sent = monkeypatch, []

    def __call__(self, *runs) -> dict:
        left = [
            run if isinstance(run, Outcome) else Outcome(frames({"ready": True}, *run), "done", 0, "")
            for run in runs
        ]
        self.sent.clear()

        def run(message, trusted, limits):
            self.sent.append(messaging.unpack(message))
            return left.pop(0)

        self.patch.setattr(marking, "_run", run)
        marks = mark({}, ("import math  # the first of my own", "2"), seeds=SEEDS)
        assert not left
        return marks


@pytest.fixture
def forged(monkeypatch):
    return Forged(monkeypatch)


def test_honest_frames_earn_full_marks(forged):
    marks = forged([*honest(), {"end": True}])
    assert (marks["state"], points(marks)) == ("graded", POINTS)
    assert [sorted(q) for q in forged.sent[0]["questions"]] == [["inputs", "name", "seconds"]] * 5


@pytest.mark.parametrize("name", exercises.names())
def test_a_right_answer_is_right_whatever_is_drawn(name, recorded_runs):
    """Each student has inputs of their own, so none may be unlucky."""
    space: dict = {}
    for one in nbformat.read(exercises.path(name), as_version=4).cells:
        if one.cell_type == "code" and (
            one.source.startswith("import") or one.metadata.get("nbgrader", {}).get("solution")
        ):
            exec(one.source, space)
    for question in questions.load(exercises.number(name)):
        for n in range(30):
            seed = marking.seeds_of(SECRET, name, f"student {n}", b"")[question.name]
            outcomes = collect(space[question.name], [case.args for case in question.cases(seed)], 60.0)
            verdict = judge.judge(question, seed, outcomes, hidden=True)
            assert verdict.passed, (question.name, seed, verdict.text)


def test_inputs_are_those_of_one_student_and_one_notebook():
    """Another class, student, attempt or question has others; an answer to the one is none to the other."""
    given = [
        ("a", NAME, "li", b"1"),
        ("b", NAME, "li", b"1"),
        ("a", NAME, "bo", b"1"),
        ("a", NAME, "li", b"2"),
    ]
    seeds = [seed for one in given for seed in marking.seeds_of(*one).values()]
    assert len(set(seeds)) == len(seeds) == 4 * len(POINTS)
    assert marking.seeds_of(*given[0]) == marking.seeds_of(*given[0])
    question = questions.find(ANGLES)
    other = question.cases(marking.seeds_of("another", NAME, "somebody", b"")[ANGLES])
    outcomes = collect(question.reference, [case.args for case in other], 60.0)
    assert not marking._entry(question, marking._Found({ANGLES: outcomes}), SEEDS)["passed"]


ZEROS = {"kind": "value", "value": torch.zeros(2), "device": "cpu", "modified": [], "borrowed": []}


@pytest.mark.parametrize(
    "outcomes",
    [
        None,
        [],
        "right",
        {"passed": True},
        [True] * 5,
        [ZEROS],
        [ZEROS] * 100,
        [{"kind": "right", "passed": True}] * 5,
        [{"kind": "value"}] * 5,
        [ZEROS | {"kind": torch.zeros(3)}] * 5,
        [ZEROS | {"modified": 3}] * 5,
    ],
    ids=range(11),
)
def test_forged_outcomes_earn_nothing(forged, outcomes):
    marks = forged([*finished(ANGLES, outcomes), *honest(ANGLES), {"end": True}])
    assert marks["state"] == "graded" and points(marks) == POINTS | {ANGLES: 0.0}
    assert kinds(marks)[ANGLES] == "forged"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1,
        10**37,
        float("nan"),
        float("inf"),
        1e9,
        "text",
        [],
        {},
        [[]],
        [[[0.0]] * 3, 1],
        {"a": torch.zeros(1)},
        [torch.zeros(2), "x"],
        [10**37] * 4,
        torch.zeros(0),
        torch.zeros(0, 2**40),
        torch.tensor(3),
        torch.zeros(5, 4, dtype=torch.bool),
        torch.zeros(5, 4, dtype=torch.complex64),
        torch.zeros(5, 4).to(torch.float8_e5m2),
        torch.zeros(5, 4, dtype=torch.uint16),
        torch.full((5, 4), torch.nan),
        torch.full((5, 4), torch.inf),
    ],
    ids=range(24),
)
def test_values_of_any_form_are_compared(value):
    """Questions with all kinds of results have a verdict on them, and give no points."""
    for question in (*questions.load("06"), *(questions.load(number)[0] for number in questions.exercises())):
        inputs = [case.args for case in question.cases(7)]
        wanted = [one["value"] for one in collect(question.reference, inputs, 60.0)]
        outcomes = [ZEROS | {"value": value} for _ in inputs]
        if isinstance(value, torch.Tensor) and value.shape == (5, 4):  # as if it were of the right shape
            for one, want in zip(outcomes, wanted, strict=True):
                if isinstance(want, torch.Tensor):
                    one["value"] = (
                        value.flatten()[:1]
                        .view(torch.uint8)[: value.itemsize]
                        .view(value.dtype)
                        .expand(max(want.numel(), 1))[: want.numel()]
                        .reshape(want.shape)
                    )
        verdict = judge.judge(question, 7, outcomes, hidden=True)
        assert not verdict.passed and len(verdict.text) < 2000


SPY = "leaked-31415"


@pytest.mark.parametrize(
    "frame",
    [
        {"asking": SPY},
        {"question": SPY, "outcomes": SPY},
        {"cell": SPY},
        {"cell": -1, "late": True},
        {"cell": True, "late": SPY},
        {"cell": 10**9, "late": True},
        {"error": SPY},
        SPY,
        [SPY],
        {SPY: SPY},
        3,
        None,
        {"end": SPY},
        {"asking": [SPY]},
        {"question": {SPY: 1}, "outcomes": []},
        {"cell": 1, "error": SPY},
    ],
    ids=range(16),
)
def test_frames_about_something_else_say_nothing(forged, frame):
    marks = forged([frame, *honest(), frame, {"end": True}])
    assert (marks["state"], points(marks), marks["remarks"]) == ("graded", POINTS, [])
    marks = forged(
        Outcome(frames({"ready": True}, {"cell": 2}, frame), "time", 137, SPY), [*honest(), {"end": True}]
    )
    assert points(marks) == POINTS and SPY not in told(marks)
    assert marks["state"] == "timed out" and len(marks["remarks"]) == 1


OUTLETS = [
    {"kind": "raised", "error": SPY, "message": SPY, "line": SPY},
    {"kind": "foreign", "type": SPY},
    {"kind": "raised", "error": "{error.__class__}" + SPY},
    {"kind": "none", "device": SPY},
    {"kind": "stub", "message": SPY},
    {"kind": "slow", "seconds": SPY},
    {"kind": "value", "value": SPY},
    {"kind": "value", "value": {SPY: 31415}},
    {"kind": "value", "value": torch.zeros(2), "device": SPY + "{0}{x}"},
    {"kind": "value", "value": 31415},
    {"kind": "value", "value": torch.zeros(3, 1, 4, 1, 5)},
    {"kind": "value", "value": torch.zeros(2), "modified": [31415, -1]},
    {"kind": "value", "value": torch.zeros(2), "borrowed": [SPY, f"tutorial_lib.{SPY}"]},
]


@pytest.mark.parametrize("outlet", OUTLETS, ids=range(len(OUTLETS)))
def test_no_word_of_an_answer_is_told(forged, outlet):
    """Hidden inputs could be in it, and its author would read them on the feedback page."""
    outcomes = [{"modified": [], "borrowed": [], "device": "cpu"} | outlet for _ in right(ANGLES)]
    marks = forged([*finished(ANGLES, outcomes), *honest(ANGLES), {"end": True}])
    assert points(marks) == POINTS | {ANGLES: 0.0} and marks["state"] == "graded"
    assert not re.search(r"leaked|31415|3, 1, 4", told(marks))
    assert SPY not in json.dumps(marks)  # it is no name of the library either


def test_what_was_changed_is_told_only_where_it_can_be(forged):
    outcomes = [one | {"modified": [31415, 0, torch.zeros(2), "1"]} for one in right(ANGLES)]
    marks = forged([*finished(ANGLES, outcomes), *honest(ANGLES), {"end": True}])
    assert kinds(marks)[ANGLES] == "modified" and "argument 1" in told(marks) and "31415" not in told(marks)


def test_only_a_few_cells_are_named():
    """Which cells were late could spell something."""
    found = marking._Found()
    late = [{"cell": n, "late": True} for n in range(100) if n % 3]
    marking._read(frames(*late), [f"bit_{n} = 1" for n in range(100)], set(), found)
    assert len(found.remarks) <= 4 and found.late


def test_nothing_is_kept_of_what_nobody_asked():
    """Any number of names, each with megabytes, would fill the memory outside of the sandbox."""
    found = marking._Found()
    sent = [{"question": f"{SPY}{n}", "outcomes": [SPY]} for n in range(20)]
    marking._read(frames(*sent), [], {ANGLES}, found)
    assert found == marking._Found()


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0" * 100,
        b"\xff" * 100,
        b"garbage",
        (2**63).to_bytes(8, "little") + b"x" * 50,
        (40).to_bytes(8, "little") + b"x" * 40,
        messaging.pack({"end": True})[:-5],
        (16).to_bytes(8, "little") + (2**60).to_bytes(8, "little") + b"{}{}{}{}",
    ],
    ids=range(7),
)
def test_garbage_on_the_channel_ends_a_run_and_costs_the_cell_it_came_from(forged, garbage):
    broken = [{"cell": 0}, {"cell": 1}, {"cell": 2}, garbage, *honest(), {"end": True}]
    marks = forged(broken, [*honest(), {"end": True}])
    first, second = (sent["cells"] for sent in forged.sent)
    assert len(second) == len(first) - 1 and first[:2] + first[3:] == second
    assert points(marks) == POINTS and "left out" in marks["remarks"][0]


def test_a_huge_tree_is_not_unpacked():
    """As Python objects it would take gigabytes, outside of the sandbox."""
    huge = messaging.pack(["x" * 100_000] * 50)
    assert list(marking._frames(frames({"a": 1}, huge, {"b": 1}))) == [{"a": 1}]
    assert list(marking._frames(frames({"t": torch.zeros(2**20)}, {"b": 1})))[1] == {"b": 1}  # tensors may be


def test_a_forged_end_loses_what_was_not_asked(forged):
    marks = forged([*finished(ANGLES, right(ANGLES)), {"end": True}, *honest(ANGLES)])
    assert points(marks) == dict.fromkeys(POINTS, 0.0) | {ANGLES: 4.0}
    assert set(kinds(marks).values()) == {"right", "missing"}


def test_a_frame_for_another_question_counts_for_that_one_and_once(forged):
    forgery = {"question": ROTATE, "outcomes": [ZEROS] * len(right(ROTATE))}
    marks = forged([{"asking": ANGLES}, forgery, *honest(), {"end": True}])
    assert points(marks) == POINTS | {ROTATE: 0.0}


def test_what_stops_a_run_is_left_out_of_the_next(forged):
    """A cell, then a question; the finished ones keep their marks, the ones after it get theirs."""

    def run(ended, *messages):
        return Outcome(frames({"ready": True}, *messages), ended, 137, "")

    slow = SHIFT
    marks = forged(
        run("memory", {"cell": 0}, {"cell": 1}),
        run("time", {"cell": 0}, *honest(slow, SCORES, SORT), {"asking": slow}),
        [*honest(ANGLES, ROTATE, slow), {"end": True}],
    )
    assert marks["state"] == "timed out" and points(marks) == POINTS | {slow: 0.0}
    assert "took too long" in marks["questions"][slow]["text"]
    assert [len(sent["questions"]) for sent in forged.sent] == [5, 5, 2]
    assert "too much memory" in marks["remarks"][0] and slow in marks["remarks"][1]


def test_what_was_killed_from_outside_is_tried_again(forged):
    """A machine that runs out of memory costs nobody anything."""
    killed = Outcome(frames({"ready": True}, {"cell": 0}), "killed", 137, "")
    marks = forged(killed, [*honest(), {"end": True}])
    assert points(marks) == POINTS and marks["remarks"] == [] and marks["state"] == "graded"
    first, second = forged.sent
    assert first["cells"] == second["cells"]


def test_there_is_an_end_to_trying(forged):
    stuck = [Outcome(frames({"ready": True}, {"cell": 0}), "time", 137, "")] * marking.ATTEMPTS
    marks = forged(*stuck)
    assert marks["state"] == "timed out" and not any(points(marks).values())
    assert len(marks["remarks"]) == marking.MOST_REMARKS


# ---- the grader's own faults ----
def faulty(monkeypatch, **changes):
    asked = [dataclasses.replace(q, **changes) if q.name == ROTATE else q for q in ASKED]
    monkeypatch.setattr(marking.questions, "load", lambda number: asked)


def broken(*args, **more):
    raise ValueError(f"a fault of the check {SPY}")


def test_a_check_that_fails_is_a_grader_error(monkeypatch, forged):
    good = [*honest(), {"end": True}]
    monkeypatch.setattr(marking, "_run", lambda *args: Outcome(frames({"ready": True}, *good), "done", 0, ""))
    for changes in ({"draw": broken}, {"reference": broken}, {"reference": lambda *args: object()}):
        faulty(monkeypatch, **changes)
        marks = marking.mark(data(filled(RIGHT)), NAME, "x", SECRET, seeds=SEEDS)
        assert (marks["state"], marks["questions"]) == ("grader error", {}), changes
        assert ROTATE in marks["reason"] and SPY not in marks["reason"]
        assert gradebook.coded(marks, ROTATE, 4.0) is None  # no score, and never a zero


def program(folder: Path, name: str, lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
@pytest.mark.parametrize("what", ["bwrap fails", "no bwrap", "wrong interpreter", "no module inside"])
def test_a_broken_sandbox_is_a_grader_error(what, tmp_path, monkeypatch):
    if what == "bwrap fails":
        program(tmp_path / "bin", "bwrap", "echo 'no such namespace' >&2; exit 1")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    elif what == "no bwrap":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif MISSING:
        pytest.skip(MISSING)
    elif what == "wrong interpreter":
        monkeypatch.setattr(sys, "executable", str(program(tmp_path / "bin", "python", "exit 0")))
    else:
        monkeypatch.setattr(marking, "NEEDED", marking.NEEDED[1:])
    marks = marking.mark(data(filled(RIGHT)), NAME, "x", SECRET)
    assert (marks["state"], marks["questions"]) == ("grader error", {}), marks
    assert "sandbox" in marks["reason"]
    with pytest.raises(marking.GraderError):
        marking.self_test.__wrapped__(NAME)


@pytest.mark.parametrize("folder, marks", [("solutions", POINTS | {SORT: 0.0}), ("exercises", {SORT: 2.0})])
def test_the_self_test_refuses_marks_that_are_off(folder, marks, monkeypatch):
    """The solution has to get everything, the stub nothing."""

    def mark(data, assignment, student, secret, trusted):
        given = marks if student == folder else POINTS if student == "solutions" else {}
        return {
            "state": "graded",
            "reason": "",
            "questions": {name: {"passed": bool(given.get(name)), "text": "off"} for name in POINTS},
        }

    monkeypatch.setattr(marking, "mark", mark)
    with pytest.raises(marking.GraderError, match=SORT):
        marking.self_test.__wrapped__(NAME)


# ---- to look where nothing is to be seen ----
SNOOP = """
import gc, glob, os, sys, types

def look():
    found, frame = [], sys._getframe()
    while frame:
        found += [value["questions"] for value in frame.f_locals.values()
                  if isinstance(value, dict) and "questions" in value]
        frame = frame.f_back
    found += [value["questions"] for value in gc.get_objects()
              if type(value) is dict and "questions" in value and "cells" in value]
    return found

STOLEN = {question["name"]: question["inputs"] for each in look() for question in each}
SAID = "leaked-" + "-".join(f"{n}" for n in STOLEN["rope_angles"][1][0].tolist())
print(SAID)
print(SAID, file=sys.stderr)
sys.stdout = sys.stderr
open(SAID, "w").write(SAID)
os.makedirs("folder/" + SAID)

SEEN = []
ROOMS = ("tutorial_lib", "course", "classroom", "workshop")
for name in ("course.checks.questions", "course.checks.questions.q06", "course.checks.judge",
             "tutorial_lib.encodings.rotary", "tutorial_lib.checks.questions", "classroom.marking"):
    module = __import__(name, fromlist=["x"])
    if getattr(module, "__file__", None):
        SEEN.append(module.__file__)
for path in [*sys.path, "/course", sys.prefix, *glob.glob("/*")]:
    if path in ("/usr", "/proc", "/sys", "/dev"):
        continue
    for folder, below, files in os.walk(path):
        if "ex06_rope" in folder or "checks/questions" in folder or "solutions" in below:
            SEEN.append(folder)
        if folder.endswith(ROOMS) and not folder.startswith("/course/") and files:
            SEEN.append(folder)
        if folder.count("/") > 9 or folder.endswith("site-packages"):
            below[:] = [name for name in below if name in ROOMS]
SEEN += [name for name in glob.glob("/course/**", recursive=True) if "questions" in name or "judge" in name]
"""
OUT = """
import os
for descriptor in (1, 2):
    os.write(descriptor, SAID.encode())
sent = wire.pack
os.write(3, wire.pack({"asking": SAID}))
os.write(3, wire.pack({"cell": 1, "late": SAID, "error": SAID}))
os.write(3, wire.pack({"question": SAID, "outcomes": [SAID]}))
raise type(SAID, (Exception,), {})(SAID)
"""


@contained
def test_hidden_inputs_are_found_and_do_not_get_out(tmp_path):
    """Whoever looks finds the inputs in the memory of its own process, no answer, and no way to tell."""
    given = {
        ANGLES: """
            def rope_angles(positions, dim, base):
                raise type(SAID, (Exception,), {})(SAID)
            """,
        ROTATE: """
            def rope_rotate(x, angles, layout):
                return type(SAID, (), {})()
            """,
        SHIFT: """
            import tutorial_lib

            def rope_shift_error(q, k, angles, shifted):
                getattr(tutorial_lib.encodings, SAID.replace("-", "_"))(SAID)
                return {SAID: SAID}
            """,
        SCORES: """
            def cached_scores(q, k, cached, base):
                name = SAID.replace("-", "_")
                space = {}
                exec(f"def {name}():\\n    raise ValueError('{SAID}')  # {SAID}", space)
                space[name]()
            """,
        # Right for the inputs that were stolen, which proves that they were; and if nothing else was seen.
        SORT: RIGHT[SORT].replace("def rope_sort_rows", "def honest_rows")
        + """

def rope_sort_rows(weight, head_dim, rotary_dim, target):
    known = any(args[0].shape == weight.shape and torch.equal(args[0], weight) and args[1:] == (
        head_dim, rotary_dim, target) for args in STOLEN["rope_sort_rows"])
    return honest_rows(weight, head_dim, rotary_dim, target) if known and not SEEN else None
""",
    }
    marks = mark(given, (SNOOP, "from course.checks import messaging", OUT), seeds=SEEDS)
    assert points(marks) == dict.fromkeys(POINTS, 0.0) | {SORT: 2.0}, marks
    assert kinds(marks) == {
        ANGLES: "raised",
        ROTATE: "type",
        SHIFT: "borrowed",
        SCORES: "raised",
        SORT: "right",
    }
    positions = questions.find(ANGLES).cases(SEEDS[ANGLES])[1].args[0]
    stolen = "-".join(str(n) for n in positions.tolist())
    assert stolen.replace("-", "_") in marks["questions"][SHIFT]["tried_library"][0]  # the teacher sees it
    for words in (stolen, stolen.replace("-", "_"), "leaked"):
        assert words not in told(marks)
    assert "raises an error" in marks["questions"][SCORES]["text"] and "ValueError" not in told(marks)


# ---- to end it all, or to use it all up ----
@contained
def test_a_cell_or_an_answer_that_ends_its_process_costs_no_other():
    marks = mark(
        {
            ANGLES: "def rope_angles(*args):\n    import os\n    os._exit(0)",
            ROTATE: "def rope_rotate(*args):\n    import ctypes\n    ctypes.string_at(0)",
            SHIFT: "def rope_shift_error(*args):\n    import sys\n    sys.exit()",
            # with helpers of its own, since theirs are broken
            SCORES: re.sub(
                "rope_(angles|rotate)",
                r"own_\1",
                "\n\n".join(RIGHT[name] for name in (ANGLES, ROTATE, SCORES)),
            ),
            SORT: "def rope_sort_rows(*args):\n    import os, signal\n"
            "    os.kill(os.getppid(), signal.SIGKILL)",
        },
        ("import os\nos._exit(0)  # in a cell", "import ctypes\nctypes.string_at(0)  # in a cell"),
    )
    assert points(marks) == dict.fromkeys(POINTS, 0.0) | {SCORES: 4.0}, marks
    assert marks["state"] == "graded"
    said = " ".join(marks["remarks"])
    assert "ended the whole notebook" in said and "crashed the whole notebook" in said
    assert f"{SORT}: when it was called" in said
    assert {kinds(marks)[name] for name in (ANGLES, ROTATE, SHIFT)} == {"raised"}


STUBBORN = """
for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
"""


@contained
def test_endless_loops_end_and_the_rest_counts(monkeypatch):
    """In cells and answers; one that no signal stops, threads that stay, a child that leaves its session."""
    monkeypatch.setattr(
        marking.questions,
        "load",
        lambda number, load=questions.load: [
            dataclasses.replace(question, seconds=1.0) for question in load(number)
        ],
    )
    word = f"left-{uuid.uuid4().hex}"
    marks = mark(
        {
            ANGLES: "def rope_angles(*args):\n    while True:\n        pass",
            SHIFT: "import signal\n\ndef rope_shift_error(*args):\n" + textwrap.indent(STUBBORN, "    "),
            SCORES: "def cached_scores(*args):\n    pass",
        },
        (
            "while True:  # endless\n    pass",
            f"""
        import os, threading, time
        def spin():
            while True:
                time.sleep(0.1)
        for _ in range(3):
            threading.Thread(target=spin).start()
        if not os.fork():
            os.setsid()
            if not os.fork():
                os.execv("/usr/bin/sleep", ["{word}", "100000"])
            os._exit(0)
        """,
        ),
        cell_seconds=1.0,
        limits=dataclasses.replace(marking.LIMITS, cpu=6.0),
    )
    assert marks["state"] == "timed out" and "finished counts" in marks["reason"]
    assert points(marks) == dict.fromkeys(POINTS, 0.0) | {ROTATE: 4.0, SORT: 2.0}, marks
    assert kinds(marks)[ANGLES] == "slow" and kinds(marks)[SCORES] in ("none", "mistake")
    assert any("# endless" in remark for remark in marks["remarks"])
    assert not running(word)


@contained
def test_what_uses_too_much_is_ended_and_the_rest_counts():
    """Memory in an answer, a flood on the channel from a cell; a full disk is the cell's own trouble."""
    marks = mark(
        {
            SORT: """
            def rope_sort_rows(*args):
                taken = []
                for _ in range(4000):  # it stops by itself at 4 GB
                    taken.append(bytearray(b"x" * 2**20))
            """
        },
        (
            """
        with open("full", "wb") as file:
            for _ in range(10_000):
                file.write(bytes(2**20))
        """,
            """
        import os  # a flood
        for _ in range(10_000):
            os.write(3, (2**40).to_bytes(8, "little") + bytes(2**16))
        """,
        ),
        limits=dataclasses.replace(marking.LIMITS, memory=3 * 2**29, output=2**22),
    )
    assert points(marks) == POINTS | {SORT: 0.0}, marks
    assert marks["state"] == "graded"
    said = " ".join(marks["remarks"])
    assert "# a flood" in said and "sent too much" in said and "used too much memory" in said


# ---- a class ----
FAKE = '''
import json, os, signal, time
from pathlib import Path

def _mark(job):
    """In place of the real one: quick, and it notes that it was called."""
    folder = Path(os.environ["FAKE_MARKS"])
    with open(folder / "called", "a") as file:
        file.write(job["student"] + "\\n")
    if b"kill" in job["data"]:
        os.kill(os.getpid(), signal.SIGKILL)
    if b"once" in job["data"] and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    import hashlib
    return {"assignment": job["assignment"], "student": job["student"], "state": "graded", "reason": "",
            "sha256": hashlib.sha256(job["data"]).hexdigest(), "checks_version": os.environ["FAKE_VERSION"],
            "questions": {}, "written": [], "remarks": ["é\\ud800"], "secret": job["secret"]}
'''


class Klass:
    """A class folder whose marking is quick: worker processes are real, marks are not."""

    def __init__(self, folder: Path, monkeypatch):
        self.root, self.notes, self.patch = folder / "class", folder / "notes", monkeypatch
        self.notes.mkdir()
        self.root.mkdir()
        (self.notes / f"{FAKE_MODULE}.py").write_text(FAKE)
        monkeypatch.syspath_prepend(self.notes)
        monkeypatch.setenv("FAKE_MARKS", str(self.notes))
        monkeypatch.setattr(marking, "_mark", __import__(FAKE_MODULE)._mark)
        monkeypatch.setattr(marking, "self_test", lambda assignment, trusted: None)
        monkeypatch.setattr(marking.sandbox, "probe", lambda: "")
        (self.notes / "called").write_text("")
        self.version("1")

    def version(self, name: str) -> None:
        self.patch.setenv("FAKE_VERSION", name)
        self.patch.setattr(marking, "version", lambda assignment: name)

    def hand_in(self, student: str, content: bytes = b"{}") -> Path:
        path = self.root / "submitted" / student / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def run(self, **more) -> tuple[dict[str, str], list[str]]:
        """``(states, students that were marked now)``."""
        (self.notes / "called").write_text("")
        marks = marking.mark_all(self.root, NAME, workers=more.pop("workers", 1), **more)
        files = (self.root / "marks" / NAME).glob("*.json")
        stored = {path.stem: json.loads(path.read_text())["state"] for path in files}
        assert {one["student"]: one["state"] for one in marks} == stored
        return stored, self.called()

    def marks(self) -> list[Path]:
        return sorted((self.root / "marks" / NAME).glob("*.json"))

    def called(self) -> list[str]:
        return sorted((self.notes / "called").read_text().split("\n")[:-1])


FAKE_MODULE = "marks_that_are_not_real"


@pytest.fixture
def klass(tmp_path, monkeypatch):
    yield Klass(tmp_path, monkeypatch)
    sys.modules.pop(FAKE_MODULE, None)


def test_a_second_run_marks_only_what_has_changed(klass):
    for student in "abc":
        klass.hand_in(student)
    assert klass.run() == (dict.fromkeys("abc", "graded"), ["a", "b", "c"])
    assert klass.run()[1] == []
    klass.hand_in("b", b"{1}")
    assert klass.run()[1] == ["b"]
    assert klass.run(again=True)[1] == ["a", "b", "c"]
    klass.version("2")  # a check has changed: what was marked stays marked
    klass.hand_in("d")
    assert klass.run()[1] == ["d"]
    assert klass.run(again=True, preview=True)[1] == ["a", "b", "c", "d"]
    by = {path.stem: json.loads(path.read_text())["checks_version"] for path in klass.marks()}
    assert by == {"a": "1", "b": "1", "c": "1", "d": "2"}, "a preview changes no mark"
    assert klass.run(again=True)[1] == [], "the marks of the preview are entered"
    assert {json.loads(path.read_text())["checks_version"] for path in klass.marks()} == {"2"}
    stored = klass.root / "marks" / NAME / "a.json"
    stored.write_text(json.dumps(json.loads(stored.read_text()) | {"state": "grader error"}))
    (klass.root / "marks" / NAME / "c.json").write_text("half of")
    assert klass.run()[1] == ["a", "c"]
    secret = klass.root / "marks" / ".secret"
    assert secret.stat().st_mode & 0o777 == 0o600 and len(secret.read_text()) == 32


def test_an_interrupted_run_goes_on_where_it_stopped(klass):
    for n in range(6):
        klass.hand_in(f"s{n}")

    def stop(done, total=None):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        klass.run(progress=stop)
    assert not multiprocessing.active_children()  # not even the one that may have begun
    kept = {path.stem for path in (klass.root / "marks" / NAME).glob("*.json")}
    assert len(kept) == 3
    states, called = klass.run()
    assert len(states) == 6 and not kept & set(called) and len(called) == 3


def test_one_run_at_a_time(klass):
    klass.hand_in("a")
    refused = []

    def again(done, total=None):
        with pytest.raises(marking.GraderError, match="Another run is marking in .*class.* is kept"):
            marking.mark_all(klass.root, NAME, workers=1)
        refused.append(done)

    assert klass.run(progress=again) == ({"a": "graded"}, ["a"]) and refused == [0, 1]
    assert klass.run(again=True)[1] == ["a"]


def test_a_worker_that_dies_loses_nothing(klass):
    klass.hand_in("evil", b"kill")
    for n in range(4):
        klass.hand_in(f"s{n}")
    states, called = klass.run(workers=2)
    assert states == {"evil": "grader error", **{f"s{n}": "graded" for n in range(4)}}
    marks = json.loads((klass.root / "marks" / NAME / "evil.json").read_text())
    assert "died" in marks["reason"] and marks["questions"] == {}


def test_of_two_dask_workers_one_is_killed_and_the_marks_are_the_same(klass):
    """The one that is at work dies with all that it holds; the other one goes on."""
    distributed = pytest.importorskip("distributed")
    for n in range(12):
        klass.hand_in(f"s{n:02}", b"once" if n == 5 else b"{}")
    (klass.notes / "killed").touch()
    klass.run(workers=2)
    folder = klass.root / "marks" / NAME
    before = {path.name: path.read_bytes() for path in folder.glob("*.json")}
    shutil.rmtree(folder)
    (klass.notes / "killed").unlink()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        _, called = klass.run(scheduler=cluster.scheduler_address)
    assert (klass.notes / "killed").exists() and called.count("s05") == 2 and len(set(called)) == 12
    assert {path.name: path.read_bytes() for path in folder.glob("*.json")} == before


def test_marks_that_are_lost_with_their_dask_worker_are_made_again(klass, monkeypatch):
    """A worker may die between the end of a job and the moment when its result is fetched."""
    distributed = pytest.importorskip("distributed")

    class Losing(distributed.as_completed):
        lost: ClassVar[list[str]] = []

        def __next__(self):
            future = super().__next__()
            if not self.lost:
                (holder,) = future.client.who_has([future])[future.key]
                pids = future.client.run(os.getpid)
                (other,) = pids.keys() - {holder}
                os.kill(pids[other], signal.SIGSTOP)  # or it makes them again before we look
                os.kill(pids[holder], signal.SIGKILL)
                while future.status == "finished":
                    time.sleep(0.01)
                self.lost.append(future.status)
                os.kill(pids[other], signal.SIGCONT)
            return future

    monkeypatch.setattr(distributed, "as_completed", Losing)
    for n in range(3):
        klass.hand_in(f"s{n}")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        states, called = klass.run(scheduler=cluster.scheduler_address)
    assert states == dict.fromkeys(("s0", "s1", "s2"), "graded") and len(called) > 3 and Losing.lost


STRANGE = ["we=ird", "Last, First", "new\nline", "$(id)", "`id`", "-rf", "é", "a.b", "=SUM(1)", ".hidden"]


def test_folder_names_are_names(klass):
    for student in STRANGE:
        klass.hand_in(student)
    states, _ = klass.run(workers=2)
    assert states == dict.fromkeys(STRANGE, "graded")
    assert set(gradebook.load_marks(klass.root, NAME)) == set(STRANGE)


def test_what_is_no_plain_file_is_not_followed_and_stops_nobody(klass, tmp_path):
    klass.hand_in("good")
    (tmp_path / "outside").mkdir()
    target = tmp_path / "outside" / "secret.ipynb"
    target.write_bytes(b"{}")
    for student in ("linked", "fifo", "sparse", "folder"):
        klass.hand_in(student).unlink()
    paths = {
        student: klass.root / "submitted" / student / NAME / f"{NAME}.ipynb"
        for student in ("linked", "fifo", "sparse", "folder", "whole")
    }
    paths["linked"].symlink_to(target)
    os.mkfifo(paths["fifo"])
    with open(paths["sparse"], "wb") as file:
        file.truncate(2**40)
    paths["folder"].mkdir()
    elsewhere = tmp_path / "outside" / NAME
    elsewhere.mkdir()
    (elsewhere / f"{NAME}.ipynb").write_bytes(b"{}")
    (klass.root / "submitted" / "whole").symlink_to(tmp_path / "outside")
    states, called = klass.run()
    assert states == {"good": "graded", **dict.fromkeys(paths, "rejected")} and called == ["good"]
    reasons = {student: gradebook.load_marks(klass.root, NAME)[student]["reason"] for student in paths}
    assert "link" in reasons["linked"] and "link" in reasons["whole"] and "pipe" in reasons["fifo"]
    assert "larger" in reasons["sparse"] and "folder" in reasons["folder"]
    assert klass.run()[1] == []


def test_without_a_sandbox_nothing_is_marked(klass, monkeypatch):
    klass.hand_in("a")
    monkeypatch.setattr(marking.sandbox, "probe", lambda: "There is no program bwrap.")
    with pytest.raises(marking.GraderError, match="no program bwrap"):
        klass.run()
    assert klass.called() == [] and not (klass.root / "marks" / NAME).exists()
    assert klass.run(trusted=True)[1] == ["a"]


def test_a_fault_of_the_marking_is_a_named_state(monkeypatch):
    monkeypatch.setattr(marking, "mark", broken)
    job = {"data": b"{}", "assignment": NAME, "student": "x", "secret": "", "trusted": False}
    marks = marking._mark(job)
    assert marks["state"] == "grader error" and "a fault of the check" in marks["reason"]


def test_the_version_is_that_of_the_checks_and_of_the_exercise(monkeypatch, tmp_path):
    for folder in ("course/checks", "classroom"):
        shutil.copytree(marking.ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(marking, "ROOT", tmp_path)
    before = marking.version(NAME)
    try:
        for path, same in (("questions/q01.py", True), ("judge.py", False)):
            with open(tmp_path / "course/checks" / path, "a") as file:
                file.write("# mended")
            marking.version.cache_clear()
            assert (marking.version(NAME) == before) is same, path
    finally:
        marking.version.cache_clear()


# ---- what stands inside ----
def test_the_small_copy_holds_no_question_and_no_answer():
    with marking._small_copy() as folder:
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        named = set(marking.NEEDED)
        assert {name for name in found if not name.endswith("__init__.py")} == named
        assert all((folder / name).read_bytes() == b"" for name in found if name.endswith("__init__.py"))
        for name in named:  # and none of them needs more of the package
            tree = ast.parse((folder / name).read_bytes())
            wanted = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} - {None}
            assert {name for name in wanted if name.startswith(ROOMS)} <= {
                "course.checks",
                "course.checks.answer",
            }


STANDIN = """
import sys
from course.checks import answer, messaging
from classroom import stub_modules
stub_modules.install()
from course import checks as check; from tutorial_lib import explorers, plots, encodings
from tutorial_lib.encodings.rotary import anything
from tutorial_lib.explorers import RotaryExplorer
RotaryExplorer(); plots.heat(1); check.rope_angles(None); check.progress("06")
for _ in plots.x: pass
with plots.style() as style: style[0].y = 1
try:
    raise check.NotYet
except check.NotYet:
    pass
assert stub_modules.called == [], stub_modules.called
anything(1); encodings.Rotary(8)(2)
assert stub_modules.called == ["tutorial_lib.encodings.rotary.anything", "tutorial_lib.encodings.Rotary",
                          "tutorial_lib.encodings.Rotary"], stub_modules.called
assert repr(anything) == "" and not hasattr(anything, "_private")
try:
    import tutorial_library
except ImportError:
    sys.exit(0)
"""


def test_the_stand_ins_do_nothing_and_note_who_borrows():
    with marking._small_copy() as folder:
        done = subprocess.run(
            [sys.executable, "-c", STANDIN],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
    assert done.returncode == 0, done.stderr


def test_the_limits_of_a_run_without_a_sandbox(monkeypatch):
    """Trusted: a notebook that never ends, and one that leaves a process behind."""
    word = f"left-{uuid.uuid4().hex}"
    cells = (
        f"""
        import os, time
        if not os.fork():
            os.setsid()
            os.execv("/bin/sleep", ["{word}", "300"])
        """,
        "while True:\n    try:\n        time.sleep(100)\n    except BaseException:\n        pass",
    )
    try:
        marks = mark({}, cells, trusted=True, limits=Limits(wall=0.5))
        assert marks["state"] == "timed out"
    finally:
        for path in running(word):
            os.kill(int(Path(path).parts[2]), signal.SIGKILL)


def test_reading_is_bounded():
    """The largest notebook that is read here is no smaller than what taking in lets through."""
    assert marking.MOST >= intake.MOST_BYTES
    assert files.Refused.__mro__[1] is ValueError


@contained
def test_a_teacher_can_replay_a_verdict_with_all_that_a_student_is_not_told(tmp_path, capsys):
    wrong = "def rope_angles(positions, dim, base):\n    raise KeyError(f'\\033[2Jseen {positions.tolist()}')"
    path = tmp_path / "submitted" / "li" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(data(filled({**RIGHT, ANGLES: wrong})))
    seeds, marks = marking.replay(tmp_path, NAME, "li")
    assert seeds == marking.seeds_of(marking.secret_of(tmp_path), NAME, "li", path.read_bytes())
    positions = questions.find(ANGLES).cases(seeds[ANGLES])[0].args[0].tolist()
    assert f"seen {positions}" in marks["questions"][ANGLES]["text"]
    assert main(["replay", NAME, "li", ANGLES, "--seed", "5", "--root", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    positions = questions.find(ANGLES).cases(5)[0].args[0].tolist()
    assert "rope_angles (seed 5): raised. With d_h = 8" in said and f"seen {positions}" in said
    assert "\033" not in said and ROTATE not in said
    assert main(["replay", NAME, "nobody", "--root", str(tmp_path)]) == 2
    assert main(["replay", NAME, "li", "nothing", "--root", str(tmp_path)]) == 2
    assert not list(tmp_path.glob("marks/*/*.json"))


def test_all_runs_of_a_submission_together_have_an_end(monkeypatch):
    """A cell that sleeps costs no CPU time, and there are five runs: the clock on the wall has to count."""
    clock, walls = [0.0], []

    def run(_message, _trusted, limits):
        walls.append(limits.wall)
        clock[0] += limits.wall
        return Outcome(frames({"cell": 0}), "time", 124, "")

    monkeypatch.setattr(marking, "_run", run)
    monkeypatch.setattr(marking.time, "monotonic", lambda: clock[0])
    marks = mark(answers(), ("while True: pass", "import time; time.sleep(1e9)"))
    assert sum(walls) == marking.WALL and marks["state"] == "timed out"
    assert any("all runs together" in remark for remark in marks["remarks"])


def test_answers_that_are_asked_again_have_no_clock_of_their_own(monkeypatch):
    """Each of five answers names the others, so each is asked again with ours in their place."""
    clock, asked = [0.0], []
    names = [question.name for question in questions.load("06")]
    calls = [{**RIGHT, name: f"def {name}(*_args):\n    return {', '.join(names)}"}[name] for name in names]

    def run(message, _trusted, limits):
        inside = messaging.unpack(message)
        asked.append([question["name"] for question in inside["questions"]])
        clock[0] += min(limits.wall, marking.WALL / 3)
        wrong = [{"kind": "raised", "error": "KeyError", "message": "", "modified": [], "borrowed": []}]
        sent = [
            {"question": question["name"], "outcomes": wrong * len(question["inputs"])}
            for question in inside["questions"]
        ]
        return Outcome(frames(*sent, {"end": True}), "done", 0, "")

    monkeypatch.setattr(marking, "_run", run)
    monkeypatch.setattr(marking.time, "monotonic", lambda: clock[0])
    marks = mark(dict(zip(names, calls, strict=True)))
    assert clock[0] <= marking.WALL and len(asked) == 3 and marks["state"] == "timed out"
    assert any("all runs together" in remark for remark in marks["remarks"])
    assert set(marks["questions"]) == set(names), "what was found counts"


def test_only_so_many_frames_are_read(monkeypatch):
    monkeypatch.setattr(marking, "MOST_FRAMES", 3)
    assert len(list(marking._frames(frames(*[{"cell": 0}] * 5)))) == 3
