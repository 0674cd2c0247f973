"""Every question of every exercise: what is right passes, what is wrong is refused and named."""

import dataclasses
import inspect
import itertools
import re

import pytest
import torch

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from course.checks.question import Case, Variant

ALL = questions.everything()
BY_NAME = {question.name: question for question in ALL}
SEEDS = (1, 20, 300)


def check(question, answer, seed):
    """The verdict on ``answer``, as a notebook and a marking process come to it."""
    inputs = [case.args for case in question.cases(seed)]
    return judge(question, seed, collect(answer, inputs, question.seconds))


def one_each(of=ALL):
    return [pytest.param(question, id=f"q{question.exercise}-{question.name}") for question in of]


#: A changed answer of the others may be as right as before.
COMPARED = [question for question in ALL if question.faults is None]


# ---- the catalogue ----
@pytest.mark.parametrize("question", one_each())
def test_the_reference_passes(question):
    for seed in range(12):
        verdict = check(question, question.reference, seed)
        assert verdict.kind == "right", verdict.text


@pytest.mark.parametrize("question", one_each())
def test_a_wrong_answer_is_refused_and_named(question):
    for wrong, seed in itertools.product(question.wrong, SEEDS):
        verdict = check(question, wrong.answer, seed)
        assert not verdict.passed, wrong.name
        assert (verdict.kind, verdict.name) == ("mistake", wrong.name), verdict.text
        assert verdict.reread, wrong.name
        text, *tried = verdict.text.split("\n")  # what a trial gave stands below
        assert question.trial or not tried, wrong.name
        # An answer that fails for all inputs that it gets wrong is told the error, too.
        assert text == wrong.says or text.startswith(f"{wrong.says} The answer raises ")


@pytest.mark.parametrize("question", one_each())
def test_a_valid_variant_is_accepted(question):
    for variant, seed in itertools.product(question.variants, SEEDS):
        verdict = check(question, variant.answer, seed)
        assert verdict.passed, f"{variant.name}: {verdict.kind}: {verdict.text}"
        assert verdict.kind in ("right", "equivalent") and variant.why


@pytest.mark.parametrize("question", one_each())
def test_a_question_is_complete(question):
    names = [wrong.name for wrong in question.wrong]
    assert len(names) >= 6 and len(set(names)) == len(names)
    assert len(question.variants) >= 2 and len({v.name for v in question.variants}) == len(question.variants)
    assert len(question.hints) == 3 and all(len(hint) > 20 for hint in question.hints)
    assert question.title.endswith(".") and question.returns
    assert question.section.removeprefix("deeper/")[:2] <= question.exercise  # nothing that comes later
    assert re.fullmatch(r"[a-z][a-z0-9_]+", question.name)
    cases = question.cases(5)
    assert len(cases) >= 3 and len({case.what for case in cases}) >= 2
    assert all(isinstance(case, Case) for case in cases)


@pytest.mark.parametrize("number", questions.exercises())
def test_an_exercise_has_five_questions_and_one_of_them_is_a_bonus(number):
    asked = questions.load(number)
    assert len(asked) == 5 and [question.bonus for question in asked] == [False] * 4 + [True]
    assert all(question.exercise == number for question in asked)


def test_names_are_used_once():
    assert len(BY_NAME) == len(ALL)


@pytest.mark.parametrize("question", one_each())
def test_inputs_come_from_the_seed_alone(question):
    torch.manual_seed(0)
    first = question.cases(7)
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    try:
        second = question.cases(7)
    finally:
        torch.set_default_dtype(torch.float32)
    other = question.cases(8)
    assert repr([case.args for case in first]) == repr([case.args for case in second])
    assert repr([case.args for case in first]) != repr([case.args for case in other])


# What has one size by definition: a pair of numbers, two thetas.
FIXED = {("resize_grid", "1.len"), ("resize_grid", "2.len"), ("tupe_scores", "7.0")}


def sizes(value, where):
    """``(where, size)`` of every axis and every whole number among the arguments."""
    if isinstance(value, torch.Tensor):
        yield from ((f"{where}.{axis}", n) for axis, n in enumerate(reversed(value.shape)))
    elif isinstance(value, (list, tuple)):
        yield f"{where}.len", len(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield where, value


@pytest.mark.parametrize("question", one_each())
def test_no_size_can_be_written_into_an_answer(question):
    for seed in range(20):
        found, cases = {}, question.cases(seed)
        for case in cases:
            for n, argument in enumerate(case.args):
                for where, size in sizes(argument, str(n)):
                    found.setdefault(where, []).append(size)
        same = {
            where for where, values in found.items() if len(values) == len(cases) and len(set(values)) == 1
        }
        assert not {where for where in same if (question.name, where) not in FIXED}, f"seed {seed}: {found}"


# ---- mistakes that stand in no catalogue ----
def _each_tensor(value, change):
    if isinstance(value, torch.Tensor):
        return change(value) if value.numel() else value
    if isinstance(value, (list, tuple)):
        return [_each_tensor(one, change) for one in value]
    if isinstance(value, dict):
        return {key: _each_tensor(one, change) for key, one in value.items()}
    if isinstance(value, bool):
        return not value if change(torch.tensor(1.0)) != 1 else value
    if isinstance(value, (int, float)):
        changed = change(torch.tensor(float(value), dtype=torch.float64))
        return changed.item() if isinstance(changed, torch.Tensor) and changed.numel() == 1 else float(value)
    return value


def _floating(change):
    return lambda value: change(value) if value.is_floating_point() else value


GENERAL = {
    "plus one": lambda v: ~v if v.dtype == torch.bool else v + 1,
    "twice": _floating(lambda v: v * 2),
    "other sign": lambda v: ~v if v.dtype == torch.bool else -v,
    "zero": torch.zeros_like,
    "a constant": lambda v: torch.full_like(v, 1),
    "first row for all": lambda v: v[:1].expand_as(v).clone() if v.ndim else v,
    "shifted along the last axis": lambda v: v.roll(1, -1) if v.ndim else v,
    "shifted along the first axis": lambda v: v.roll(1, 0) if v.ndim else v,
    "reversed along the last axis": lambda v: v.flip(-1) if v.ndim else v,
    "reversed along the first axis": lambda v: v.flip(0) if v.ndim else v,
    "transposed": lambda v: v.transpose(-1, -2) if v.ndim > 1 else v,
    "one row short": lambda v: v[:-1] if v.ndim else v,
    "one column short": lambda v: v[..., :-1] if v.ndim else v,
    "last row wrong": lambda v: torch.cat([v[:-1], torch.zeros_like(v[-1:])]) if v.ndim else v,
    "an axis too many": lambda v: v[None] if v.ndim else v,
    "absolute values": lambda v: v.abs() if v.dtype != torch.bool else v,
    "rounded to two places": _floating(lambda v: (v * 100).round() / 100),
    "rounded to whole numbers": _floating(torch.round),
    "one number wrong": lambda v: (
        v.masked_fill(torch.arange(v.numel()).reshape(v.shape) == v.numel() // 2, 0) if v.ndim else v
    ),
    "half precision": _floating(lambda v: v.half()),
    "as whole numbers": _floating(lambda v: v.nan_to_num(0, 0, 0).long()),
    "NaN in one place": _floating(
        lambda v: v.masked_fill(torch.arange(v.numel()).reshape(v.shape) == 0, float("nan"))
    ),
}


def changes_nothing(question, outcomes, seed):
    """Is the changed answer, on these inputs, what the reference returns (up to the tolerance)?"""
    return judge(question, seed, outcomes).passed


@pytest.fixture
def undiagnosed(monkeypatch):
    """Whether an answer passes, in a third of the time: nobody asks here what its mistake is."""
    monkeypatch.setattr("course.checks.judge.search", lambda *args: None)


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("question", one_each(COMPARED))
def test_a_general_mistake_is_refused(question):
    """Refused, unless the change is none: the two values are compared here without the judge."""

    def text(value):
        return repr(
            _each_tensor(
                value,
                lambda v: v.double().round(decimals=3).tolist() if v.is_floating_point() else v.tolist(),
            )
        )

    inputs = question.cases(SEEDS[0])
    right = [text(question.reference(*case.args)) for case in inputs]
    for name, change in GENERAL.items():

        def answer(*args, change=change):
            return _each_tensor(question.reference(*args), change)

        if right != [text(answer(*case.args)) for case in inputs]:
            verdict = check(question, answer, SEEDS[0])
            row_constant = question.same is not None and verdict.kind == "equivalent"
            assert not verdict.passed or row_constant and name in ("plus one",), f"{name}: {verdict.text}"


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("question", one_each())
def test_an_answer_for_one_size_only_is_refused(question):
    """Right for the first case, and a copy of what it returned there for all others."""
    kept = []

    def answer(*args):
        kept.append(question.reference(*args))
        return kept[0]

    assert not check(question, answer, 3).passed


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("question", one_each())
def test_no_argument_can_be_ignored(question):
    """With any one argument always as in the first case, the answer is wrong for some seed."""
    count = len(question.cases(1)[0].args)
    for n in range(count):
        passed = []
        for seed in SEEDS:
            first = question.cases(seed)[0].args[n]

            def answer(*args, n=n, first=first):
                return question.reference(*args[:n], first, *args[n + 1 :])

            passed.append(check(question, answer, seed).passed)
        assert not all(passed), f"argument {n + 1} plays no part"


@pytest.mark.parametrize("question", one_each())
def test_a_stub_is_told_what_to_do(question):
    def stub(*args):
        raise NotImplementedError

    verdict = check(question, stub, 1)
    assert verdict.kind == "stub" and not verdict.passed
    assert question.name in verdict.text and "check.hint" in verdict.text


def test_a_call_of_another_stub_is_said():
    def stub(*args):
        raise NotImplementedError("rope_angles is not written yet")

    question = questions.find("cached_scores")
    assert "calls rope_angles, which is not written yet" in check(question, stub, 1).text


def test_a_variant_that_raises_lets_nobody_pass():
    question = questions.find("rope_angles")
    broken = dataclasses.replace(question, variants=(Variant("raises", lambda *args: 1 / 0, "why"),))
    assert not check(broken, lambda *args: 1 / 0, 1).passed


@pytest.mark.parametrize("question", one_each())
def test_what_is_said_gives_nothing_away(question):
    """No text of a question holds a line of its solution."""
    try:
        body = inspect.getsource(question.reference).split("\n")
    except (OSError, TypeError):
        pytest.fail("the reference has no source")
    lines = [line.strip() for line in body if len(line.strip()) > 25 and "def " not in line]
    said = " ".join([wrong.says for wrong in question.wrong] + [question.title, *question.hints])
    assert not [line for line in lines if line in said]
