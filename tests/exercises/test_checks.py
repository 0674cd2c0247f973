"""The checks themselves: every fault has its own words, and no answer harms the judge or the kernel."""

import contextlib
import dataclasses
import io
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import types

import numpy as np
import pytest
import torch

from course import checks, progress
from course.checks import judge as judging
from course.checks import judge_process, messaging, questions, report
from course.checks.answer import MOST_NUMBERS, collect
from course.checks.judge import judge, symptom
from course.checks.question import Case, Draw, Question, Variant, Verdict, Wrong
from tutorial_lib import plots as course_plots
from tutorial_lib.encodings import sinusoidal


# ---- made-up questions ----
def scaled_cases(draw):
    return [Case((draw.normal(n, n + 2), draw.number(2.0, 3.0)), f"{n} rows") for n in (3, 4, 5)]


def forgets_to_scale(x, factor):
    return x.clone()


SCALED = Question(
    name="toy_scaled",
    exercise="09",
    title="A table times a number.",
    returns="a tensor [n, m]",
    section='09, section "A puzzle"',
    draw=scaled_cases,
    reference=lambda x, factor: x * factor,
    wrong=(
        Wrong("factor forgotten", forgets_to_scale, "This is x itself.", '09, section "Summary"'),
        Wrong("in place", lambda x, factor: x.mul_(factor), "The caller's table is lost."),
    ),
    variants=(Variant("half a table", lambda x, factor: x[:, :1] * factor, "One column is enough."),),
    hints=("The idea is to scale.", "The shape is one line.", "The last mile is a star."),
    picture="heat",
    seconds=5.0,
)


def made(returns, args=(), **more):
    """A question whose reference returns ``returns`` for each of three cases."""
    cases = [Case((n, *args), f"case {n}") for n in (1, 2, 3)]
    return dataclasses.replace(
        SCALED,
        **{
            "name": "toy_made",
            "draw": lambda draw: list(cases),
            "reference": lambda n, *rest: returns,
            "wrong": (),
            "variants": (),
            **more,
        },
    )


PLAIN = dataclasses.replace(SCALED, wrong=())
NAMED = dataclasses.replace(SCALED, returns="a tensor [n, m], in the dtype of x")
NUMBER = made(2.5)
WHOLE = made(7)
TRUTH = made(True)
TEXT = made("alibi")
LIST = made([1, 2.5, 3])
PAIR = made((torch.ones(2, 3), 4))
DICT = made({"stored": 3, "bias": torch.zeros(2)})
INTS = made(torch.arange(6).reshape(2, 3))
MASK = made(torch.tensor([[True, False], [True, True]]))
LINE = made(torch.arange(5.0), picture="lines")
SCALAR = made(torch.tensor(2.0))
COMPLEX = made(torch.polar(torch.ones(3), torch.arange(3.0)))
DOUBLE = dataclasses.replace(made(torch.arange(4.0).double()), returns="a float64 tensor [4]")


def verdict(question, answer, seed=1):
    return judge(question, seed, collect(answer, [c.args for c in question.cases(seed)], question.seconds))


def right(x, factor):
    return x * factor


def test_an_answer_of_the_catalogue_runs_once_for_the_same_inputs():
    calls = []

    def counted(x, factor):
        calls.append(x)
        return x

    (entry, *_) = [wrong for wrong in SCALED.wrong if wrong.name == verdict(SCALED, lambda x, factor: x).name]
    question = dataclasses.replace(SCALED, wrong=(dataclasses.replace(entry, answer=counted),))
    for seed, count in ((5, 1), (5, 1), (6, 2), (5, 2)):
        assert verdict(question, lambda x, factor: x.clone(), seed).name == entry.name
        assert len(calls) == count * len(question.cases(5))


# ---- every fault has its own message ----
class Unprintable(ValueError):
    def __str__(self):
        raise RuntimeError("no")


class Own(BaseException):
    pass


def raising(error):
    def answer(*args):
        raise error

    return answer


def giving(value):
    return lambda *args: value


def library(x, factor):
    sinusoidal(torch.arange(3), 4)
    return x * factor


def changes_its_input(x, factor):
    y = x * factor + 0
    x[0, 0] += 1
    return y


def with_nan(x, factor):
    y = x * factor
    y[1, 1] = math.nan
    return y


FAULTS = [
    pytest.param(
        SCALED, raising(ValueError("the boat leaks")), "raised", "ValueError: the boat leaks", id="raises"
    ),
    pytest.param(SCALED, raising(ZeroDivisionError()), "raised", "raises ZeroDivisionError", id="no message"),
    pytest.param(SCALED, raising(Unprintable()), "raised", "Unprintable: (no text)", id="unprintable error"),
    pytest.param(SCALED, raising(Own("out")), "raised", "Own: out", id="no Exception"),
    pytest.param(SCALED, lambda *args: sys.exit("bye"), "raised", "SystemExit: bye", id="sys.exit"),
    pytest.param(SCALED, lambda x: x, "raised", "takes 1 positional argument", id="too few arguments"),
    pytest.param(SCALED, lambda x, factor: x @ x, "raised", "RuntimeError: mat1 and mat2", id="shapes clash"),
    pytest.param(
        SCALED,
        lambda x, factor: x.long().softmax(-1),
        "raised",
        "not implemented for 'Long'",
        id="PyTorch's own NotImplementedError",
    ),
    pytest.param(
        SCALED, lambda x, factor: torch.nn.Module()(x), "raised", "forward", id="a module without forward"
    ),
    pytest.param(SCALED, giving(None), "none", "Is the `return` missing?", id="None"),
    pytest.param(SCALED, giving(object()), "type", "as numbers: object", id="an object"),
    pytest.param(SCALED, giving({1, 2}), "type", "as numbers: set", id="a set"),
    pytest.param(SCALED, giving(2 + 3j), "type", "as numbers: complex", id="a complex number"),
    pytest.param(SCALED, lambda x, factor: (row for row in x), "type", "generator", id="a generator"),
    pytest.param(SCALED, lambda x, factor: torch.nn.Linear, "type", "as numbers: type", id="a class"),
    pytest.param(SCALED, giving(np.array(["a"])), "type", "NumPy array of <U1", id="an array of texts"),
    pytest.param(
        SCALED, giving(np.array([object()])), "type", "NumPy array of object", id="array of objects"
    ),
    pytest.param(SCALED, lambda x, factor: x.to_sparse(), "type", "sparse_coo tensor", id="a sparse tensor"),
    pytest.param(
        SCALED,
        lambda x, factor: x.to(torch.float8_e8m0fnu),
        "type",
        "float8_e8m0fnu",
        id="a dtype that no message can carry",
    ),
    pytest.param(
        SCALED,
        giving(torch.zeros(1).expand(MOST_NUMBERS + 1)),
        "type",
        f"tensor of {MOST_NUMBERS + 1} numbers",
        id="too large",
    ),
    pytest.param(
        SCALED, giving([torch.zeros(1).expand(MOST_NUMBERS)] * 2), "type", "numbers", id="too large together"
    ),
    pytest.param(SCALED, giving([[[[[[[[1.0]]]]]]]]), "type", "as numbers: list", id="too deep"),
    pytest.param(SCALED, giving("text"), "type", "should be a tensor, it is a text", id="a text"),
    pytest.param(SCALED, giving({"a": 1}), "type", "should be a tensor, it is a dict", id="a dict"),
    pytest.param(SCALED, giving(3.0), "type", "should be a tensor, it is a number", id="a number"),
    pytest.param(SCALED, giving([[1.0, 2.0], [3.0]]), "type", "it is a sequence", id="a ragged list"),
    pytest.param(SCALED, lambda x, factor: (x * factor, 1), "type", "it is a sequence", id="a pair"),
    pytest.param(
        SCALED, lambda x, factor: x[:, 1:] * factor, "shape", "shape [3, 4]; it should be [3, 5]", id="shape"
    ),
    pytest.param(SCALED, lambda x, factor: (x * factor)[None], "shape", "[1, 3, 5]", id="an axis too many"),
    pytest.param(
        SCALED, lambda x, factor: (x * factor).half(), "dtype", "float16; it should be float32", id="half"
    ),
    pytest.param(
        SCALED,
        lambda x, factor: (x * factor).long(),
        "dtype",
        "int64; it should be float32",
        id="whole numbers",
    ),
    pytest.param(
        SCALED, lambda x, factor: (x * factor).to(torch.complex64), "dtype", "complex64", id="complex"
    ),
    pytest.param(SCALED, lambda x, factor: (x * factor).to("meta"), "device", 'device "meta"', id="meta"),
    pytest.param(PAIR, lambda n: (torch.ones(2, 3, device="meta"), 4), "device", "meta", id="half on meta"),
    pytest.param(SCALED, with_nan, "nan", "holds NaN (1 of 15 numbers)", id="NaN"),
    pytest.param(PLAIN, changes_its_input, "modified", "changes its own input (argument 1)", id="modified"),
    pytest.param(SCALED, library, "borrowed", "tutorial_lib.encodings", id="borrowed"),
    pytest.param(
        SCALED, raising(NotImplementedError("toy is not written yet")), "stub", "not written yet", id="stub"
    ),
    pytest.param(SCALED, lambda x, factor: x * factor * 3, "near", "3 times what it should be", id="factor"),
    pytest.param(NUMBER, giving("2.5"), "type", "should be a number, it is a text", id="text for a number"),
    pytest.param(NUMBER, giving(True), "type", "it is True or False", id="truth for a number"),
    pytest.param(
        NUMBER, giving(torch.tensor([2.5])), "type", "a tensor of shape [1]", id="one-element tensor"
    ),
    pytest.param(NUMBER, giving(math.nan), "nan", "holds NaN", id="NaN for a number"),
    pytest.param(NUMBER, giving(-2.5), "symptom", "It is -2.5, it should be 2.5", id="wrong number"),
    pytest.param(NUMBER, giving(2**127), "symptom", "it should be 2.5", id="a huge number"),
    pytest.param(NUMBER, giving(2**200), "type", "int of that size", id="too huge a number"),
    pytest.param(NUMBER, giving(1e999), "symptom", "It is inf", id="infinite"),
    pytest.param(TRUTH, giving(1), "type", "should be True or False, it is a number", id="number for truth"),
    pytest.param(TRUTH, giving(False), "symptom", "wrong", id="wrong truth"),
    pytest.param(TEXT, giving("rotary"), "symptom", "is 'rotary', which is wrong", id="wrong text"),
    pytest.param(TEXT, giving(3), "type", "should be a text, it is a number", id="number for text"),
    pytest.param(TEXT, giving("a" * 20_000), "type", "str of that size", id="a long text"),
    pytest.param(LIST, giving([1, 2.5]), "shape", "has 2 entries; there should be 3", id="short list"),
    pytest.param(LIST, giving([1, 2.5, "c"]), "type", "the result[2] should be a number", id="text in list"),
    pytest.param(LIST, giving(3), "type", "a sequence of 3, it is a number", id="number for list"),
    pytest.param(LIST, giving([1, 2.5, 4]), "symptom", "[2] is wrong", id="wrong entry"),
    pytest.param(PAIR, giving((torch.ones(2, 3), 5)), "symptom", "[1] is wrong", id="wrong second"),
    pytest.param(PAIR, giving((torch.ones(3, 2), 4)), "shape", "[0] has the shape [3, 2]", id="pair's shape"),
    pytest.param(DICT, giving({"stored": 3}), "type", "keys stored, bias", id="a key is missing"),
    pytest.param(
        DICT, giving({"stored": 3, "bias": torch.ones(2)}), "symptom", "['bias']", id="wrong entry of a dict"
    ),
    pytest.param(
        INTS,
        giving([[0.0, 1.0, 2.0], [3.0, 4.0, 5.5]]),
        "dtype",
        "float64; it should be int64",
        id="fractions for whole numbers",
    ),
    pytest.param(
        INTS,
        lambda n: torch.arange(6.0).reshape(2, 3),
        "dtype",
        "float32; it should be int64",
        id="float tensor for whole numbers",
    ),
    pytest.param(INTS, giving([[0, 1, 2], [3, 4, 2**100]]), "type", "should be a tensor", id="overflow"),
    pytest.param(MASK, giving([[2, 0], [1, 1]]), "dtype", "it should be bool", id="numbers for a mask"),
    pytest.param(SCALAR, giving(2**100), "near", "it should be 2", id="a huge number for a tensor"),
    pytest.param(DOUBLE, lambda n: torch.arange(4.0), "dtype", "float32; it should be float64", id="single"),
]


@pytest.mark.parametrize("question, answer, kind, said", FAULTS)
def test_a_fault_is_named(question, answer, kind, said):
    found = verdict(question, answer)
    assert (found.passed, found.kind) == (False, kind), found.text
    assert said in found.text, found.text
    assert "Traceback" not in found.text and found.reread


@pytest.mark.parametrize("question, answer, kind, said", FAULTS)
def test_what_is_said_in_marks_holds_no_word_of_the_answer(question, answer, kind, said):
    found = judge(question, 1, collect(answer, [c.args for c in question.cases(1)], 5.0), hidden=True)
    assert (found.passed, found.picture) == (False, None)
    assert found.kind == ("symptom" if kind == "near" else kind), "in marks no near answer is looked for"
    for word in ("boat", "bye", "meta", "Own", "Unprintable", "sinusoidal", "rows", "case ", "rotary"):
        assert word not in found.text, found.text


def test_a_device_that_an_answer_made_up_is_not_repeated():
    outcomes = collect(giving(torch.zeros(2)), [c.args for c in LINE.cases(1)])
    for one in outcomes:
        one["device"] = "<script>"
    assert judge(LINE, 1, outcomes, hidden=True).kind == "device"
    assert "script" not in judge(LINE, 1, outcomes, hidden=True).text


def test_the_line_of_an_error_is_shown():
    def answer(x, factor):
        y = x * factor
        return y[:, 99]  # the learner's line

    assert "the learner's line" in verdict(SCALED, answer).text

    def deep(x, factor):
        return torch.nn.functional.softmax(x, dim=7)  # also theirs

    assert "also theirs" in verdict(SCALED, deep).text


def test_the_first_wrong_case_is_told_and_what_is_right():
    found = verdict(SCALED, lambda x, factor: x * factor if len(x) != 4 else x * factor + 1)
    assert found.text.startswith("With 4 rows:") and "It is right for 3 rows; 5 rows" in found.text


@pytest.mark.parametrize("here", [True, False], ids=["main thread", "another thread"])
def test_an_answer_that_never_ends_is_stopped(here):
    calls = []

    def stubborn(*args):
        calls.append(1)
        while True:
            try:
                time.sleep(0.005)
            except Exception:  # as a learner's loop might
                pass

    def run():
        found.extend(collect(stubborn, [(1,), (2,), (3,)], seconds=0.2))

    found = []
    if here:
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert [one["kind"] for one in found] == ["slow"] * 3 and len(calls) == 1
    text = judge(dataclasses.replace(NUMBER, seconds=0.2), 1, found).text
    assert "more than 0.2 s" in text and "loop" in text


def test_processor_time_does_not_count_waiting():
    outcomes = collect(lambda: time.sleep(0.4) or 5, [()], seconds=0.2, cpu=True)
    assert outcomes[0]["kind"] == "value"

    def busy():
        while True:
            pass

    assert collect(busy, [()], seconds=0.2, cpu=True)[0]["kind"] == "slow"


def test_a_bare_except_outlives_no_limit():
    def waits():
        for _each in range(300):  # three seconds, if nobody ends it
            try:
                time.sleep(0.01)
            except:  # noqa: E722
                pass

    def hears_nothing():
        try:
            time.sleep(0.1)
        except BaseException:
            return

    def calls_it():
        for _each in range(50):
            try:
                hears_nothing()
            except BaseException:
                continue

    before = sys.gettrace()
    for answer in (waits, calls_it):
        assert collect(answer, [()], seconds=0.1)[0]["kind"] == "slow" and sys.gettrace() is before


def test_an_error_is_told_on_one_line_and_ends_with_a_full_stop():
    table = chr(10).join(["a table"] * 80)
    text = verdict(SCALED, raising(ValueError(table))).text
    assert chr(10) not in text and len(text) < 500
    assert "2 were given. toy_scaled returns" in verdict(SCALED, lambda x: x).text


def test_a_comma_too_many_is_told():
    assert "a comma too many" in verdict(SCALED, lambda x, factor: (x * factor,)).text


def test_nan_and_nothing_else_gets_no_name():
    for name in ("alibi_attention", "causal_attention"):
        question = questions.find(name)
        found = verdict(
            question, lambda *args, right=question.reference: torch.full_like(right(*args), math.nan)
        )
        assert (found.kind, found.name) == ("nan", "")


def test_an_error_of_the_same_class_is_not_the_same_mistake():
    """An answer that fails in its own way is told its error, not what another one did that failed."""
    found = verdict(questions.find("order_errors"), lambda output, shuffled, order: output @ order)
    assert found.kind == "raised" and "RuntimeError" in found.text and not found.name


def test_the_learners_own_interrupt_is_theirs():
    with pytest.raises(KeyboardInterrupt):
        collect(raising(KeyboardInterrupt()), [()])


def test_changed_input_is_seen_wherever_it_is():
    def change(tensor, numbers, mixed, table):
        return 1.0

    args = (torch.tensor([1.0, math.nan, -math.inf]), [3, 1, 2], (torch.ones(2), [4.0, math.nan]), {"a": 1})
    assert collect(change, [args])[0]["modified"] == []

    def sorts(tensor, numbers, mixed, table):
        numbers.sort()
        return 1.0

    def deeper(tensor, numbers, mixed, table):
        mixed[1][0] = 5.0
        table["a"] = 2
        return 1.0

    def reshaped(tensor, numbers, mixed, table):
        tensor.resize_(2)
        mixed[0].data = mixed[0].data.double()
        return 1.0

    assert [collect(f, [args])[0]["modified"] for f in (sorts, deeper, reshaped)] == [[1], [2, 3], [0, 2]]
    assert args[1] == [3, 1, 2] and len(args[0]) == 3  # answers get copies


def test_a_changed_input_with_wrong_numbers_is_the_wrong_numbers():
    def both(x, factor):
        x += 1
        return x * factor

    assert verdict(SCALED, both).kind == "symptom"
    assert verdict(SCALED, lambda x, factor: x.mul_(factor)).name == "in place"


# ---- what is accepted ----
ACCEPTED = [
    pytest.param(NAMED, lambda x, factor: x.double() * factor, "equivalent", id="float64 for float32"),
    pytest.param(
        SCALED, lambda x, factor: x.double() * factor, "right", id="float64 where no dtype is named"
    ),
    pytest.param(
        made(torch.arange(4.0).double() / 3),
        lambda n: torch.arange(4) / 3,
        "right",
        id="float32 where no dtype is named",
    ),
    pytest.param(
        DOUBLE, lambda n: torch.arange(4.0).double() * (1 + 1e-6), "right", id="as exact as float32"
    ),
    pytest.param(
        made((torch.ones(3), torch.zeros(3))),
        giving(torch.tensor([[1.0] * 3, [0.0] * 3])),
        "right",
        id="one tensor for two",
    ),
    pytest.param(SCALED, lambda x, factor: x.numpy() * np.float32(factor), "right", id="numpy"),
    pytest.param(
        SCALED,
        lambda x, factor: (x.numpy() * np.float32(factor))[::-1][::-1],
        "right",
        id="numpy with negative strides",
    ),
    pytest.param(
        SCALED,
        lambda x, factor: np.asfortranarray(x.numpy() * np.float32(factor)),
        "right",
        id="numpy by columns",
    ),
    pytest.param(SCALED, lambda x, factor: (x * factor).tolist(), "right", id="lists"),
    pytest.param(SCALED, lambda x, factor: tuple(map(tuple, (x * factor).tolist())), "right", id="tuples"),
    pytest.param(SCALED, lambda x, factor: (x * factor).T.contiguous().T, "right", id="not contiguous"),
    pytest.param(SCALED, lambda x, factor: torch.cat([x * factor] * 2)[: len(x)], "right", id="a view"),
    pytest.param(SCALED, lambda x, factor: (x * factor).requires_grad_(), "right", id="requires grad"),
    pytest.param(SCALED, lambda x, factor: torch.nn.Parameter(x * factor), "right", id="a parameter"),
    pytest.param(SCALED, lambda x, factor: torch.nn.Parameter(x) * factor, "right", id="with a history"),
    pytest.param(SCALED, right, "right", id="plain"),
    pytest.param(SCALED, torch.mul, "right", id="a built-in function"),
    pytest.param(
        SCALED,
        type("Scale", (), {"__call__": lambda self, x, factor: x * factor})(),
        "right",
        id="an object that can be called",
    ),
    pytest.param(SCALED, lambda x, factor: x * factor * (1 + 1e-6), "right", id="rounding"),
    pytest.param(SCALED, lambda x, factor: x[:, :1] * factor, "equivalent", id="a variant of the catalogue"),
    pytest.param(NUMBER, giving(torch.tensor(2.5)), "right", id="0-dim tensor"),
    pytest.param(NUMBER, giving(torch.tensor(2.5, requires_grad=True)), "right", id="0-dim with grad"),
    pytest.param(NUMBER, giving(np.float32(2.5)), "right", id="numpy number"),
    pytest.param(NUMBER, giving(np.array(2.5)), "right", id="0-dim array"),
    pytest.param(WHOLE, giving(7.0), "right", id="a whole float"),
    pytest.param(WHOLE, giving(np.int32(7)), "right", id="numpy int"),
    pytest.param(WHOLE, giving(torch.tensor(7)), "right", id="0-dim int"),
    pytest.param(TRUTH, giving(np.bool_(True)), "right", id="numpy truth"),
    pytest.param(TRUTH, giving(torch.tensor(True)), "right", id="0-dim truth"),
    pytest.param(TEXT, giving(np.str_("alibi")), "right", id="numpy text"),
    pytest.param(LIST, giving((1, 2.5, 3)), "right", id="tuple for list"),
    pytest.param(LIST, giving(torch.tensor([1, 2.5, 3])), "right", id="tensor for list"),
    pytest.param(LIST, giving([torch.tensor(1), np.float64(2.5), 3.0]), "right", id="mixed list"),
    pytest.param(PAIR, giving([np.ones((2, 3), np.float32), torch.tensor(4)]), "right", id="list for pair"),
    pytest.param(DICT, giving({"bias": [0, 0], "stored": 3.0}), "right", id="dict in another order"),
    pytest.param(INTS, lambda n: torch.arange(6, dtype=torch.int32).reshape(2, 3), "right", id="int32"),
    pytest.param(INTS, giving([[0.0, 1, 2], [3, 4, 5.0]]), "right", id="whole floats in lists"),
    pytest.param(MASK, giving([[1, 0], [1, 1]]), "right", id="0 and 1 for a mask"),
    pytest.param(SCALAR, giving(2), "right", id="number for a 0-dim tensor"),
    pytest.param(SCALAR, giving(np.array(2.0, np.float32)), "right", id="0-dim array for a 0-dim tensor"),
    pytest.param(
        COMPLEX,
        lambda n: torch.polar(torch.ones(3).double(), torch.arange(3.0).double()),
        "right",
        id="complex128",
    ),
]


@pytest.mark.parametrize("question, answer, kind", ACCEPTED)
def test_an_answer_in_another_form_is_accepted(question, answer, kind):
    found = verdict(question, answer)
    assert (found.passed, found.kind) == (True, kind), found.text
    # … and arrives as well by way of the wire.
    outcomes = collect(answer, [c.args for c in question.cases(4)])
    plain = [one["value"] for one in outcomes if isinstance(one["value"], torch.Tensor)]
    assert not any(type(value) is not torch.Tensor or value.requires_grad for value in plain)
    assert judge(question, 4, messaging.unpack(messaging.pack(outcomes))).passed


@pytest.mark.parametrize("question", [SCALED, NAMED], ids=["no dtype named", "a dtype named"])
def test_a_mistake_in_the_right_dtype_has_no_other_fault(question):
    """Whatever the dtype of the catalogue's own answer is."""
    squared = Wrong("squared", lambda x, factor: x.double() ** 2, "This squares.")
    found = verdict(dataclasses.replace(question, wrong=(squared,)), lambda x, factor: x**2)
    assert (found.name, found.text) == ("squared", "This squares.")


def test_a_dtype_can_be_asked_for_exactly():
    strict = dataclasses.replace(SCALED, exact_dtype=True)
    assert verdict(strict, lambda x, factor: x.double() * factor).kind == "dtype"
    assert verdict(strict, right).kind == "right"


def test_another_normal_form_is_accepted_where_the_question_has_one():
    def centred(value, case):
        return value - value.mean(-1, keepdim=True)

    free = dataclasses.replace(SCALED, same=centred, equivalent="A softmax ignores it.")
    found = verdict(free, lambda x, factor: x * factor + torch.arange(float(len(x)))[:, None])
    assert (found.kind, found.passed) == ("equivalent", True) and "softmax ignores" in found.text
    assert not verdict(free, lambda x, factor: x * factor + torch.arange(x.shape[1])).passed
    assert verdict(free, giving("text")).kind == "type"


# ---- symptoms ----
WANT = torch.tensor([[1.0, -2.0, 3.5], [0.5, 4.0, -1.0], [2.0, 0.25, 7.0], [-3.0, 6.0, 1.5]]).double()
STRIPE = torch.arange(1.0, 6).double() ** 2


SQUARE = torch.randn(5, 5, generator=torch.Generator().manual_seed(3)).double()


def replaced(rows, axis=0):
    got = WANT.clone()
    got.select(axis, rows[0]).add_(1.7)
    for row in rows[1:]:
        got.select(axis, row).mul_(-3.3)
    return got


@pytest.mark.parametrize(
    "want, got, said",
    [
        (WANT, 3 * WANT, "Every number is 3 times what it should be."),
        (WANT, WANT / 8, "Every number is 0.125 times"),
        (WANT, -WANT, "Every number has the wrong sign."),
        (WANT, -2 * WANT, "Every number is -2 times"),
        (WANT, WANT + 0.5, "Every number is off by 0.5."),
        (WANT, WANT.abs(), "The sizes are right, the signs are not."),
        (WANT[:3], WANT[:3].T, "transposed"),
        (WANT, WANT.flip(0), "in reverse order along axis 0"),
        (WANT, WANT.flip(1), "in reverse order along axis 1"),
        (WANT, WANT.roll(1, 0), "shifted by one along axis 0"),
        (WANT, WANT.roll(-1, 1), "shifted by one along axis 1"),
        (WANT, replaced([3]), "Along axis 0 only the last index is wrong: at ["),
        (WANT, replaced([0]), "Along axis 0 only index 0 is wrong: at ["),
        (WANT, replaced([0, 2]), "Along axis 0 only index 0 and index 2 are wrong: at ["),
        (WANT, replaced([1], axis=1), "Along axis 1 only index 1 is wrong: at ["),
        (
            WANT,
            WANT.square(),
            "Every number is the square of what it should be.",
        ),
        (
            WANT,
            WANT * torch.tensor([2.0, 3, 5, 7])[:, None],
            "Each slice along axis 0 is wrong by a factor of its own: 2, 3, 5",
        ),
        (
            WANT,
            WANT + torch.tensor([2.0, 3, 5]),
            "Each slice along axis 1 is off by a constant of its own: 2, 3, 5",
        ),
        (
            STRIPE,
            STRIPE + torch.tensor([0, 0, 3, 1, 5.0]),
            "right up to index 1, and wrong from index 2 on. The first",
        ),
        (
            STRIPE,
            STRIPE + torch.tensor([3, 1, 5.0, 0, 0]),
            "wrong up to index 2, and right from index 3 on. The first",
        ),
        (STRIPE, STRIPE + torch.tensor([3, 0, 5.0, 0, 1]), "every second index is wrong, from index 0 on"),
        (
            SQUARE,
            SQUARE.triu() + SQUARE.tril(-1) * 2,
            "stands below the diagonal of the last two axes; the rest "
            "is right. The first wrong number is at [1, 0]",
        ),
        (SQUARE, SQUARE[:, [2, 4, 0, 1, 3]], "numbers of each row are right, but not their order"),
        (
            WANT,
            WANT + 0.01 * torch.randn(4, 3, generator=torch.Generator().manual_seed(1)).abs() + 0.001,
            "Every number is nearly right: the largest error is 0.0",
        ),
        (
            torch.arange(8.0).reshape(2, 2, 2).double() ** 2,
            (torch.arange(8.0).reshape(2, 2, 2).double() ** 2).transpose(0, 1),
            "Axis 0 and axis 1 have changed places.",
        ),
        (STRIPE, STRIPE.roll(1), "shifted by one along axis 0"),
        (STRIPE, STRIPE.flip(0), "in reverse order along axis 0"),
        (
            STRIPE[:2],
            STRIPE[:2] * torch.tensor([1.0, 5.0]),
            "50% of its numbers differ. The first wrong number is at [1]",
        ),
        (torch.tensor(2.0).double(), torch.tensor(3.0).double(), "It is 3, it should be 2."),
        (torch.tensor([1.0, -torch.inf]), torch.tensor([2.0, -torch.inf]), "2 times"),
        (
            torch.tensor([1.0, -torch.inf]),
            torch.tensor([1.0, 0.0]),
            "0 stands where −inf belongs; the other numbers are right.",
        ),
        (torch.tensor([[1.0, 2], [3, 4]]), torch.zeros(2, 2), "100% of its numbers differ"),
        (torch.tensor([1 + 1j, 2j]), torch.tensor([1j - 1, -2 + 0j]), "0+1j times"),
        (torch.tensor(12.98).double(), torch.tensor(12.982).double(), "It is 12.982, it should be 12.98."),
        (WANT, WANT * (1 + 2e-4), "Every number is 1.0002 times"),
        (STRIPE[:2], STRIPE[:2] + torch.tensor([0, 1e-3]), "at [1]: 4.001, it should be 4."),
        (torch.tensor([1, torch.inf]), torch.tensor([1, -torch.inf]), "at [1]: -inf, it should be inf."),
    ],
)
def test_a_symptom_is_recognised(want, got, said):
    wide = torch.complex128 if want.is_complex() else torch.float64
    want, got = want.to(wide), got.to(wide)
    close = torch.isclose(got, want, rtol=1e-4, atol=1e-5)
    assert said in symptom(want, got, close), symptom(want, got, close)


def test_symptoms_reach_the_learner():
    found = verdict(SCALED, lambda x, factor: -x * factor)
    assert found.kind == "near" and "`x` has the other sign" in found.text
    assert verdict(SCALED, forgets_to_scale).kind == "mistake"


# ---- the kernel is left as it was ----
@pytest.mark.parametrize(
    "answer",
    [right, raising(ValueError()), lambda *args: sys.exit(), giving(torch.zeros(2, device="meta"))],
    ids="right raises exits meta".split(),
)
def test_the_kernel_is_left_as_it_was(answer):
    def profile(*_):
        return None

    def bell(*_):
        return None

    before = signal.signal(signal.SIGALRM, bell)
    torch.set_default_dtype(torch.float64)
    state, numbers = torch.get_rng_state(), random.getstate()
    old = sys.getprofile()
    sys.setprofile(profile)
    try:
        outcomes = collect(answer, [c.args for c in SCALED.cases(1)])
        now = sys.getprofile()
        sys.setprofile(None)
        assert now is profile
        assert signal.getsignal(signal.SIGALRM) is bell and signal.getitimer(signal.ITIMER_REAL)[0] == 0
        assert torch.get_default_dtype() is torch.float64
        assert torch.equal(torch.get_rng_state(), state) and random.getstate() == numbers
    finally:
        sys.setprofile(old)
        signal.signal(signal.SIGALRM, before)
        torch.set_default_dtype(torch.float32)
    assert judge(SCALED, 1, outcomes).passed == (answer is right)


def test_after_a_slow_answer_no_alarm_is_left():
    before = signal.getsignal(signal.SIGALRM)
    collect(lambda: time.sleep(30), [()], seconds=0.1)
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert sys.getprofile() is None or sys.getprofile().__module__ != "course.checks.answer"


def test_an_answer_may_call_the_checks_and_other_libraries():
    def answer(x, factor):
        questions.exercises()
        return torch.nn.functional.linear(x, factor * torch.eye(x.shape[1]))

    assert verdict(SCALED, answer).passed


# ---- outcomes that no answer gave ----
GOOD = {"kind": "value", "value": 2.5, "device": "", "modified": [], "borrowed": []}


@pytest.mark.parametrize(
    "outcomes",
    [
        None,
        5,
        "abc",
        {},
        [],
        [GOOD] * 2,
        [GOOD] * 4,
        [None] * 3,
        [[]] * 3,
        ["value"] * 3,
        [{}] * 3,
        [{"kind": "right"}] * 3,
        [{"kind": "passed", "value": 2.5}] * 3,
        [{"kind": ["value"], "value": 1}] * 3,
        [{"kind": None}] * 3,
        [{"kind": "value"}] * 3,
        [{**GOOD, "modified": "all"}] * 3,
        [{**GOOD, "modified": None}] * 3,
        [{**GOOD, "borrowed": {"a": 1}}] * 3,
        [GOOD, GOOD, {"kind": "won"}],
    ],
    ids=repr,
)
def test_malformed_outcomes_are_refused(outcomes):
    with pytest.raises(ValueError, match="outcome"):
        judge(NUMBER, 1, outcomes)


@pytest.mark.parametrize(
    "question",
    [SCALED, NUMBER, TRUTH, TEXT, LIST, PAIR, DICT, INTS, SCALAR, COMPLEX],
    ids=lambda q: repr(q.reference(1, 1))[:20] if q is not SCALED else "scaled",
)
@pytest.mark.parametrize(
    "value",
    [
        None,
        (),
        [],
        {},
        [None],
        {"stored": None, "bias": None},
        10**400,
        -(10**400),
        [10**400],
        [[10**400] * 3] * 2,
        "x",
        [[[]]],
        math.nan,
        [math.nan] * 3,
        True,
        torch.empty(0),
        torch.empty(0, 3),
        torch.tensor(math.nan),
        torch.ones(3, 5, dtype=torch.uint64),
        torch.ones(3, 5, dtype=torch.float8_e4m3fn),
        torch.ones([1] * 60),
        (torch.ones(2, 3), None),
        torch.ones(2, 3, dtype=torch.complex128) * 1j,
        [torch.ones(2), 3],
    ],
    ids=lambda v: repr(v)[:25].replace("\n", ""),
)
def test_strange_values_are_refused_in_words(question, value):
    """Whatever stands in a message, there is a verdict: what passes the wire may come from anyone."""
    outcomes = [{"kind": "value", "value": value, "device": "cpu"}] * 3
    for hidden in (False, True):
        found = judge(question, 1, outcomes, hidden)
        if not (question is TRUTH and value is True):
            assert not found.passed and found.text, found
    json.dumps(dataclasses.asdict(found))  # marks are kept as JSON


def test_odd_fields_of_an_outcome_do_no_harm():
    odd = {
        **GOOD,
        "modified": ["a", 2.5, None, [1]],
        "borrowed": [],
        "device": None,
        "line": 10**3000,
        "x": 1,
    }
    assert not judge(NUMBER, 1, [odd] * 3).passed  # the device "None" is not the processor's
    assert judge(NUMBER, 1, [{**odd, "device": ""}] * 3).passed
    assert judge(NUMBER, 1, [{**GOOD, "borrowed": [5, ["x" * 9999]]}] * 3).kind == "borrowed"
    raised = {"kind": "raised", "error": ["x"], "message": {"a": 1}, "line": None}
    assert judge(NUMBER, 1, [raised] * 3).kind == "raised"
    assert "an error" in judge(NUMBER, 1, [raised] * 3, hidden=True).text


# ---- the wire ----
def round_trip(message):
    return messaging.unpack(messaging.pack(message))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**128 - 1,
        -(2**128) + 1,
        0.0,
        1e-308,
        0.1,
        "",
        "ünï ✓ 猫",
        '\0\n"\\',
        "\ud800",
        "x" * 100_000,
        [],
        (),
        {},
        [[], ()],
        {"a": {"b": (1, [2.5, None])}},
        {"tensor": "0"},
        {"float": "nan"},
        {"dict": {"list": [1]}},
        {"": 1},
        {"complex": "0", "tensor": "0"},
    ],
    ids=lambda v: repr(v)[:30],
)
def test_a_tree_comes_back_as_it_was(value):
    back = round_trip(value)
    assert back == value and type(back) is type(value)
    assert type(round_trip([value])[0]) is type(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0])
def test_odd_floats_come_back(value):
    back = round_trip({"x": [value]})["x"][0]
    assert struct.pack("<d", back) == struct.pack("<d", value)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.complex64,
        torch.complex128,
        torch.bool,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)], ids=str)
def test_a_tensor_of_any_kind_comes_back(dtype, shape):
    tensor = (torch.arange(math.prod(shape)).reshape(shape) % 2).to(dtype)
    if dtype.is_floating_point and tensor.numel() and dtype.itemsize > 1:
        tensor.view(-1)[0] = math.inf
        tensor.view(-1)[-1] = math.nan
    if dtype.is_complex and tensor.numel():
        tensor.view(-1)[-1] = complex(1.5, -math.inf)
    back = round_trip((tensor,))[0]
    assert back.dtype == dtype and back.shape == tensor.shape
    wide = torch.complex128 if dtype.is_complex else torch.float64
    assert torch.equal(back.to(wide).isnan(), tensor.to(wide).isnan())
    keep = ~tensor.to(wide).isnan()
    assert torch.equal(back.to(wide)[keep], tensor.to(wide)[keep])


def test_tensors_that_share_memory_come_back_apart():
    base = torch.arange(12.0).reshape(3, 4)
    message = {"all": base, "row": base[1], "turned": base.T, "again": [base, base], "one": base[0, 0]}
    back = round_trip(message)
    assert all(torch.equal(back[key], message[key]) for key in ("all", "row", "turned", "one"))
    back["again"][0].zero_()
    assert torch.equal(back["again"][1], base) and base.sum() == 66


def test_tensors_with_a_history_come_back_plain():
    x = torch.nn.Parameter(torch.ones(2, 2))
    back = round_trip(
        [
            x,
            x * 2,
            torch.ones(2, dtype=torch.complex64).conj(),
            torch.ones(3).expand(2, 3),
            torch._neg_view(torch.ones(2)),
        ]
    )
    assert type(back[0]) is torch.Tensor and not back[1].requires_grad
    assert torch.equal(back[3], torch.ones(2, 3)) and torch.equal(back[4], -torch.ones(2))


def deep(levels):
    return [deep(levels - 1)] if levels else 1


@pytest.mark.parametrize(
    "value",
    [
        {1: 2},
        {None: 1},
        {1, 2},
        object(),
        b"bytes",
        1j,
        torch.float32,
        range(3),
        np.float64(1),
        np.ones(2),
        2**129,
        deep(50),
        {"a": [object()]},
        type("S", (str,), {})("x"),
    ],
    ids=lambda v: repr(v)[:10],
)
def test_what_a_message_cannot_hold_is_refused(value):
    with pytest.raises(messaging.BadMessage):
        messaging.pack(value)


def test_a_tensor_of_a_dtype_without_a_name_is_refused():
    with pytest.raises(messaging.BadMessage, match="bits8"):
        messaging.pack([torch.empty(2, dtype=torch.bits8)])


def framed(blob):
    return struct.pack("<Q", len(blob)) + blob


def crafted(message, tensors=None, body=b"", raw=None):
    """A frame as a stranger might write it."""
    header = (
        raw
        if raw is not None
        else json.dumps({"__metadata__": {"message": message}, **(tensors or {})}).encode()
    )
    return framed(struct.pack("<Q", len(header)) + header + body)


def one(dtype, shape, end, body=None, start=0, kind="tensor"):
    spec = {"0": {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}}
    return crafted(f'{{"{kind}": "0"}}', spec, body or bytes(end))


HOSTILE = {
    "nothing": b"",
    "seven bytes": bytes(7),
    "empty frame": framed(b""),
    "zeros": framed(bytes(100)),
    "noise": framed(random.Random(1).randbytes(500)),
    "pickle": framed(b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93."),
    "length too small": struct.pack("<Q", 3) + b"abcdef",
    "length too large": struct.pack("<Q", 99) + b"abc",
    "header's length too large": framed(struct.pack("<Q", 2**63) + b"{}"),
    "header's length past the end": framed(struct.pack("<Q", 50) + b"{}"),
    "not JSON": crafted("{'a': 1}"),
    "header is not JSON": crafted("", raw=b"hello there"),
    "header is not text": crafted("", raw=b"\xff\xfe\x00\x80"),
    "header is a list": crafted("", raw=b"[1, 2]"),
    "header is a number": crafted("", raw=b"5"),
    "no metadata": crafted("", raw=b"{}"),
    "metadata is a list": crafted("", raw=b'{"__metadata__": ["message"]}'),
    "no message": crafted("", raw=b'{"__metadata__": {}}'),
    "message is a number": crafted(5),
    "message is null": crafted(None),
    "deep lists": crafted('{"list": [' * 50 + "1" + "]}" * 50),
    "deep JSON": crafted("[" * 100_000),
    "deep header": crafted("", raw=b"[" * 1_000_000),
    "a million digits": crafted("1" * 10**6),
    "a million digits in the header": crafted(
        "", raw=b'{"__metadata__": {"message": "1"}, "x": ' + b"1" * 10**6 + b"}"
    ),
    "float of a list": crafted('{"float": [1]}'),
    "float of a word": crafted('{"float": "ten"}'),
    "float of a huge number": crafted('{"float": 1' + "0" * 400 + "}"),
    "bare list": crafted("[1]"),
    "two kinds": crafted('{"list": [1], "tuple": [1]}'),
    "no kind": crafted("{}"),
    "unknown kind": crafted('{"object": "os.system"}'),
    "dict of a list": crafted('{"dict": [1]}'),
    "list of a number": crafted('{"list": 5}'),
    "list of null": crafted('{"list": null}'),
    "tensor that is not there": crafted('{"tensor": "0"}'),
    "tensor named by a list": crafted('{"tensor": ["0"]}'),
    "metadata as a tensor": crafted('{"tensor": "__metadata__"}'),
    "complex of nothing": crafted('{"complex": "0"}'),
    "complex of one axis": one("F64", [3], 24, kind="complex"),
    "complex of whole numbers": one("I64", [2], 16, kind="complex"),
    "tensor too large": one("F32", [2**40], 4),
    "tensor of negative size": one("F32", [-1], 4),
    "shape overflows": one("F32", [2**62, 8], 4),
    "empty shape overflows": one("F32", [0, 2**62, 8], 0),
    "unknown dtype": one("Q4", [1], 4),
    "dtype without a tensor": one("F4", [8], 4),
    "offsets overlap": crafted(
        '{"tensor": "0"}', {n: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for n in "01"}, bytes(4)
    ),
    "offsets beyond the end": one("F32", [2], 8, body=bytes(4)),
    "offsets reversed": one("F32", [1], 0, start=4, body=bytes(4)),
    "bytes left over": one("F32", [1], 4, body=bytes(40)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_frame_is_a_bad_message_and_nothing_else(name):
    with pytest.raises(messaging.BadMessage):
        messaging.unpack(HOSTILE[name])
    with pytest.raises((messaging.BadMessage, EOFError)):
        messaging.receive(io.BytesIO(HOSTILE[name]))


def test_a_torn_frame_is_the_end_of_the_talk():
    frame = messaging.pack({"x": torch.ones(4), "y": "text"})
    for cut in range(len(frame)):
        with pytest.raises(EOFError):
            messaging.receive(io.BytesIO(frame[:cut]))
        with pytest.raises(messaging.BadMessage):
            messaging.unpack(frame[:cut])
    with pytest.raises(messaging.BadMessage):
        messaging.unpack(frame + b"x")


def test_a_flipped_byte_never_does_more_than_change_a_value():
    frame = bytearray(messaging.pack({"x": torch.ones(4), "y": ["text", 1.5, (None, True)]}))
    for place in range(8, len(frame)):
        for change in (1, 0x20, 0xFF):
            broken = bytes(frame[:place]) + bytes([frame[place] ^ change]) + bytes(frame[place + 1 :])
            with contextlib.suppress(messaging.BadMessage):
                messaging.unpack(broken)


def test_a_frame_that_is_too_long_is_not_read():
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, count=-1):
            Endless.taken += count
            return bytes(count) if Endless.taken > 8 else struct.pack("<Q", 2**50)

    with pytest.raises(messaging.BadMessage, match="at most"):
        messaging.receive(Endless())
    assert Endless.taken == 8
    frame = messaging.pack("x" * 1000)
    with pytest.raises(messaging.BadMessage, match="at most 100"):
        messaging.receive(io.BytesIO(frame), most=100)
    assert messaging.receive(io.BytesIO(frame), most=len(frame)) == "x" * 1000


def test_messages_follow_one_another_through_a_pipe_of_small_pieces():
    class Slow(io.BytesIO):
        def read(self, count=-1):
            return super().read(min(count, 3))

    messages = [1, {"a": torch.arange(50)}, "three"]
    file = io.BytesIO()
    for message in messages:
        messaging.send(file, message)
    slow = Slow(file.getvalue())
    assert messaging.receive(slow) == 1
    assert torch.equal(messaging.receive(slow)["a"], torch.arange(50))
    assert messaging.receive(slow) == "three"
    with pytest.raises(EOFError):
        messaging.receive(slow)


def test_reading_a_frame_runs_no_code(monkeypatch):
    """The words that could start something are there; nothing that runs code is called."""

    def never(*args, **kwargs):
        raise AssertionError("code was run")

    import builtins
    import codecs
    import pickle

    for name in ("utf-8-sig", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le"):
        codecs.lookup(name)  # json guesses one of them, and Python runs the module of one that is new

    for module, name in (
        (pickle, "loads"),
        (pickle, "load"),
        (torch, "load"),
        (os, "system"),
        (builtins, "eval"),
        (builtins, "exec"),
        (subprocess, "Popen"),
    ):
        monkeypatch.setattr(module, name, never)
    for frame in HOSTILE.values():
        with contextlib.suppress(messaging.BadMessage):
            messaging.unpack(frame)
    assert round_trip({"__reduce__": ["os.system", "true"], "py/object": "posix.system"})


# ---- drawing ----
def test_drawing_depends_on_the_seed_alone():
    def sample(seed):
        draw = Draw(seed)
        return [
            draw.normal(2, 3),
            draw.normal(),
            draw.uniform(4, low=-1, high=1),
            draw.integers(1, 6, 8),
            draw.integer(1, 6),
            draw.number(2, 3),
            draw.choice("abc"),
            draw.permutation(6),
        ]

    first = sample(5)
    torch.manual_seed(99)
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(sample(5)) == repr(first)
    finally:
        torch.set_default_dtype(torch.float32)
    assert repr(sample(6)) != repr(first)
    assert first[0].dtype == torch.float32 and first[1].shape == () and 2 <= first[5] < 3


def test_drawn_numbers_stay_in_their_bounds_and_reach_both_ends():
    draw = Draw(0)
    assert set(draw.integers(1, 3, 200).tolist()) == {1, 2, 3}
    assert {draw.integer(4, 5) for _ in range(60)} == {4, 5}
    assert {draw.choice((7, 8, 9)) for _ in range(90)} == {7, 8, 9}
    uniform = draw.uniform(1000, low=-2, high=-1)
    assert -2 <= uniform.min() < -1.9 and -1.1 < uniform.max() < -1
    for n in (1, 2, 3, 7):
        for _ in range(30):
            order = draw.permutation(n)
            assert sorted(order.tolist()) == list(range(n))
            assert n == 1 or not torch.equal(order, torch.arange(n))


def test_points_and_messages():
    assert (SCALED.points, dataclasses.replace(SCALED, bonus=True).points) == (4, 2)
    found = verdict(SCALED, forgets_to_scale)
    again = Verdict(**round_trip(found.message()))
    assert torch.equal(again.picture.pop("yours"), found.picture.pop("yours"))
    assert torch.equal(again.picture.pop("target"), found.picture.pop("target")) and again == found


# ---- names ----
def test_a_check_is_found_by_its_name():
    some = questions.everything()[0].name
    assert getattr(checks, some).question.name == some
    assert some in dir(checks) and some in repr(getattr(checks, some))
    assert "Returns" in getattr(checks, some).__doc__
    with pytest.raises(AttributeError, match=f"no question 'rope_rotat'; there are .*{some}"):
        _ = checks.rope_rotat
    with pytest.raises(AttributeError):
        _ = checks._hidden
    with pytest.raises(KeyError, match="no exercise '42'; there are"):
        checks.progress("42")
    with pytest.raises(KeyError, match="no question"):
        checks.hint("nothing")


# ---- what a learner sees ----
@pytest.fixture
def own_log(tmp_path, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


@pytest.fixture
def served(monkeypatch, own_log):
    """A judging "process" in a thread, behind the real pipes; it knows the made-up questions, too."""
    known = {question.name: question for question in (SCALED,)}
    find = questions.find
    monkeypatch.setattr(questions, "find", lambda name: known.get(name) or find(name))
    to_judge, to_kernel = os.pipe(), os.pipe()
    requests, answers = os.fdopen(to_judge[0], "rb"), os.fdopen(to_kernel[1], "wb")

    def serve():  # a judge that fails closes its pipes, so that no test waits for it
        with requests, answers:
            judge_process.serve(requests, answers)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    process = types.SimpleNamespace(stdin=os.fdopen(to_judge[1], "wb"), stdout=os.fdopen(to_kernel[0], "rb"))
    monkeypatch.setattr(judge_process, "_process", lambda: process)
    yield known
    process.stdin.close()
    thread.join(60)
    process.stdout.close()
    assert not thread.is_alive()


@pytest.fixture
def pictures(monkeypatch):
    drawn = []
    monkeypatch.setattr(course_plots, "show", lambda fig, alt: drawn.append((fig, alt)))
    return drawn


def test_a_right_answer_prints_one_line(served, capsys, pictures):
    assert checks.toy_scaled(right) is None
    out = capsys.readouterr().out
    assert out == "✓ toy_scaled: Right, for 3 inputs: 3 rows; 4 rows; 5 rows.\n"
    assert not pictures and progress.read()["09.exercise.toy_scaled"]["passed"] is True


def test_a_mistake_prints_what_and_where_and_draws(served, capsys, pictures):
    with pytest.raises(checks.NotYet, match="toy_scaled is not right yet") as caught:
        checks.toy_scaled(forgets_to_scale)
    out = capsys.readouterr().out
    assert "✗ toy_scaled: This is x itself." in out and 'Read again: 09, section "Summary".' in out
    assert 'check.hint("toy_scaled")' in str(caught.value)
    ((fig, alt),) = pictures
    assert alt == "Two heat maps. Target beside your answer for 3 rows. This is x itself."
    assert [ax.get_title() for ax in fig.axes[:2]] == ["target", "yours"]
    entry = progress.read()["09.exercise.toy_scaled"]
    assert entry["passed"] is False and entry["last"] == "factor forgotten"


def test_what_is_passed_stays_passed(served, pictures):
    checks.toy_scaled(right)
    with pytest.raises(checks.NotYet):
        checks.toy_scaled(giving(None))
    assert progress.read()["09.exercise.toy_scaled"] == {"passed": True, "last": "none"}


def test_inputs_change_from_call_to_call(served):
    seen = []

    def answer(x, factor):
        seen.append(factor)
        return x * factor

    checks.toy_scaled(answer)
    checks.toy_scaled(answer)
    assert len(set(seen)) == 6


@pytest.mark.parametrize(
    "given", [None, 3, torch.ones(2), "toy_scaled", [right]], ids=lambda given: type(given).__name__
)
def test_something_that_cannot_be_called(served, given, capsys):
    with pytest.raises(TypeError, match=r"toy_scaled\(toy_scaled\) takes your function itself") as caught:
        checks.toy_scaled(given)
    assert type(given).__name__ in str(caught.value)
    assert caught.value._render_traceback_() == [f"NotAFunction: {caught.value}"]
    assert not progress.read()


ODD_PICTURES = {
    "nothing finite": torch.full((3, 4), math.inf),
    "NaN": torch.full((3, 4), math.nan),
    "zeros": torch.zeros(3, 4),
    "bool": torch.tensor([[True, False]] * 2),
    "a row": torch.ones(1, 9),
    "large": torch.randn(200, 300),
    "three axes": torch.randn(2, 3, 4),
    "a line": torch.arange(7.0),
    "line with inf": torch.tensor([0.0, -math.inf, 1.0]),
    "whole numbers": torch.arange(6).reshape(2, 3),
    "half": torch.ones(2, 3).bfloat16(),
}


@pytest.mark.parametrize("kind", ["heat", "lines"])
@pytest.mark.parametrize("name", ODD_PICTURES)
def test_anything_can_be_drawn(name, kind, served, pictures):
    target = ODD_PICTURES[name]
    served["toy_made"] = made(target, picture=kind)
    wrong = ~target if target.dtype == torch.bool else (target.nan_to_num(0, 0, 0) + 1).to(target.dtype)
    with pytest.raises(checks.NotYet):
        checks.toy_made(giving(wrong))
    ((fig, alt),) = pictures
    fig.canvas.draw()
    assert len(alt.split()) > 4


@pytest.mark.parametrize(
    "target, value",
    [
        (torch.tensor(1.0), torch.tensor(2.0)),
        (torch.ones(1), torch.zeros(1)),
        (torch.empty(0, 3), [1]),
        (torch.ones(3, dtype=torch.complex64), torch.zeros(3, dtype=torch.complex64)),
        ([1, 2], [1, "b"]),
        ([1, 2], [[1], 2]),
        ([1.0, 2.0], torch.ones(2)),
        ("a", "b"),
        ({"a": 1}, {"a": 2}),
    ],
    ids=repr,
)
def test_what_cannot_be_drawn_is_not(target, value):
    for kind in ("heat", "lines"):
        found = verdict(made(target, picture=kind), giving(value))
        assert not found.passed and found.picture is None


def test_what_goes_wrong_in_drawing_takes_no_word_of_the_feedback(served, monkeypatch, capsys):
    monkeypatch.setattr(report, "draw", raising(ValueError("no such font")))
    with pytest.raises(checks.NotYet):
        checks.toy_scaled(forgets_to_scale)
    said = capsys.readouterr().out
    assert "This is x itself." in said and "could not be drawn (ValueError: no such font)" in said


def test_a_picture_is_small_and_shows_what_differs():
    target = torch.zeros(3, 100, 90)
    yours = target.clone()
    yours[1, 2, 3] = 5
    picture = verdict(made(target, picture="heat"), giving(yours)).picture
    assert picture["target"].shape == picture["yours"].shape == (judging.PICTURE, judging.PICTURE)
    assert picture["yours"][2, 3] == 5 and picture["target"].sum() == 0 and picture["what"] == "case 1"
    pair = made([torch.ones(2, 3), torch.zeros(2, 2)], picture="heat")
    picture = verdict(pair, giving([torch.ones(2, 3), torch.ones(2, 2)])).picture
    assert picture["yours"].sum() == 4 and picture["target"].sum() == 0


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    shell.user_ns.update(check=checks, torch=torch)
    yield shell
    shell.restore_sys_module_state()
    InteractiveShell.clear_instance()


def test_a_notebook_shows_one_line(served, shell, capsys, pictures):
    not_yet = "NotYet: toy_scaled is not right yet"
    for cell, last in (
        ("check.toy_scaled(lambda x, factor: x)", not_yet),
        ("check.toy_scaled(lambda x, factor: x.nothing)", not_yet),
        (
            "def toy(x, factor):\n    raise NotImplementedError('not yet')\ncheck.toy_scaled(toy)",
            "NotYet: toy_scaled is not written yet",
        ),
        ("check.toy_scaled(3)", "NotAFunction: check.toy_scaled(toy_scaled) takes your function"),
    ):
        capsys.readouterr()
        shell.run_cell(cell)
        said = capsys.readouterr()
        lines = [line for line in (said.out + said.err).splitlines() if line.strip()]
        assert sum(last in line for line in lines) == 1, lines
        assert not [line for line in lines if "Traceback" in line or "File " in line or "---" in line], lines
        assert len(lines) <= 3


def test_the_picture_in_a_notebook_has_its_text(served, shell):
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        shell.run_cell("check.toy_scaled(lambda x, factor: x)")
    (shown,) = captured.outputs
    html = shown.data["text/html"]
    assert 'alt="Two heat maps. Target beside your answer for 3 rows. This is x itself."' in html


def test_a_diagnosis_that_ends_in_dots_is_said_and_drawn(real, shell, own_log):
    """In a notebook, by way of the judging process."""
    from IPython.utils.capture import capture_output

    question = questions.find("rope_shift_error")
    shell.user_ns["mine"] = next(one.answer for one in question.wrong if one.name == "the other layout")
    with capture_output() as captured:
        shell.run_cell("check.rope_shift_error(mine)")
    dots = "the angles belong to the channels (0, 1), (2, 3), …"
    assert dots in captured.stdout and "NotYet: rope_shift_error is not right yet" in captured.stdout
    assert f'{dots}"' in captured.outputs[0].data["text/html"]


def test_hints_come_one_by_one_and_are_counted(served, capsys):
    for step, text in ((1, "The idea"), (2, "The shape"), (3, "The last mile"), (3, "The last mile")):
        checks.hint("toy_scaled")
        out = capsys.readouterr().out
        assert out.startswith(f"Hint {step} of 3. {text}") and out.count("\n") == 1
        assert progress.read()["09.exercise.toy_scaled"]["hints"] == step
    checks.toy_scaled(right)
    assert progress.read()["09.exercise.toy_scaled"] == {"hints": 3, "passed": True}


@pytest.mark.parametrize("kept", ["many", None, -5, 10**30, True, [1], 2.5, {"a": 1}], ids=repr)
def test_a_strange_count_of_hints_does_no_harm(served, kept, capsys):
    progress.record("09.exercise.toy_scaled", hints=kept)
    checks.hint("toy_scaled")
    assert "Hint 3" in capsys.readouterr().out if kept == 10**30 else "Hint 1" in capsys.readouterr().out


def rows_of(number="09"):
    return {row[0]: row[1:] for row in checks.progress(number).rows()}


def test_the_panel_of_an_empty_log(own_log):
    rows = rows_of()
    assert set(rows) == {question.name for question in questions.load("09")}
    assert {row[1:] for row in rows.values()} == {("not yet", "0 of 3")}
    assert sorted(row[0] for row in rows.values()) == ["2 bonus", "4", "4", "4", "4"]
    text, html = repr(checks.progress("09")), checks.progress("09")._repr_html_()
    assert all(name in text and name in html for name in rows) and "<table" in html and 'scope="col"' in html


def test_the_panel_of_a_filled_log(own_log):
    first, second, third = list(rows_of())[:3]
    progress.record(f"09.exercise.{first}", passed=True, hints=2)
    progress.record(f"09.exercise.{second}", passed=False, hints=3, last="a mistake")
    progress.record(f"06.exercise.{third}", passed=True)
    rows = rows_of()
    assert rows[first][1:] == ("yes", "2 of 3") and rows[second][1:] == ("not yet", "3 of 3")
    assert rows[third][1:] == ("not yet", "0 of 3")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "\x00\xff",
        '{"09.exercise.offset_error": 5}',
        '{"09.exercise.offset_error": {"passed": "yes", "hints": "<b>"}}',
        '{"09.exercise.offset_error": {"passed": 1, "hints": {"a": 1}}}',
        '{"09.exercise.offset_error": {"passed": null, "hints": -3}}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_the_panel_of_a_corrupted_log(own_log, text, capsys):
    own_log.write_text(text, encoding="utf-8")
    assert {row[1:] for row in rows_of().values()} == {("not yet", "0 of 3")}
    assert "<b>" not in checks.progress("09")._repr_html_()
    checks.hint("offset_error")
    assert "Hint 1 of 3." in capsys.readouterr().out and rows_of()["offset_error"][2] == "1 of 3"


def test_a_log_that_cannot_be_written_loses_no_check(served, monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "file" / "progress.json"))
    checks.toy_scaled(right)
    assert "✓" in capsys.readouterr().out


# ---- the judging process ----
def test_a_request_that_makes_no_sense_is_answered_with_the_problem(served):
    good = {"question": "toy_scaled", "seed": 1, "outcomes": []}
    wrong = (
        {"question": "nothing"},
        {"question": ["a"]},
        {"seed": "one"},
        {"seed": 2**80},
        {"outcomes": None},
    )
    for request in (good, *(good | change for change in wrong), {"seed": 1}, [], "hello", None, 5):
        with pytest.raises(RuntimeError, match="this is not your mistake"):
            judge_process.ask(request)
    assert report.verdict(SCALED, right).passed  # and it goes on


def test_a_reference_that_fails_is_the_checks_own_problem(served):
    served["toy_scaled"] = dataclasses.replace(SCALED, reference=raising(ValueError("broken")))
    with pytest.raises(RuntimeError, match="the check itself failed"):
        checks.toy_scaled(right)


@pytest.mark.parametrize(
    "garbage",
    [b"", b"garbage", bytes(1000), struct.pack("<Q", 2**60), HOSTILE["not JSON"]],
    ids=["nothing", "short", "zeros", "a huge length", "a bad frame"],
)
def test_serve_ends_quietly_on_garbage(garbage):
    answers = io.BytesIO()
    assert judge_process.serve(io.BytesIO(garbage), answers) is None
    assert answers.getvalue() == b""


@pytest.fixture
def real(own_log):
    """The real judging process; one that is running is used, so that few are started."""
    yield judge_process
    judge_process.stop()


def angles(positions, dim, base):
    return torch.outer(positions.float(), base ** (-torch.arange(0, dim, 2) / dim))


def test_the_real_process_judges_survives_and_ends(real, capfd):
    question = questions.find("rope_angles")
    assert report.verdict(question, angles).passed
    first = judge_process._running
    found = report.verdict(question, lambda p, d, b: angles(torch.arange(len(p)), d, b))
    assert found.name == "row number instead of position" and judge_process._running is first

    first.kill()  # killed by somebody
    first.wait()
    assert report.verdict(question, angles).passed
    second = judge_process._running
    assert second.pid != first.pid

    second.stdin.write(b"garbage" * 100)  # a broken talk: the process ends, the next check starts another
    second.stdin.flush()
    second.stdin.close()
    second.wait(60)
    second.stdin = open(os.devnull, "wb")
    assert report.verdict(question, angles).passed
    third = judge_process._running
    assert third.pid != second.pid

    judge_process.stop()
    assert third.poll() is not None and judge_process._running is None
    judge_process.stop()  # twice does no harm
    assert capfd.readouterr() == ("", "")


OTHERS = {
    "garbage": "import sys; sys.stdout.write('x' * 100)",
    "nothing": "import sys; sys.stdin.buffer.read(8)",
    "half a message": "import sys; sys.stdout.buffer.write(bytes([99, 0, 0, 0, 0, 0, 0, 0, 1]))",
}


def other(what, started):
    """A process that stands where the judge should be."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHERS[what]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    started.append(process)
    judge_process._running = process
    return process


@pytest.mark.parametrize("what", OTHERS)
def test_what_a_wrong_process_says_is_not_believed(what, monkeypatch):
    """It is stopped; after the second one the learner is told."""
    started = []
    monkeypatch.setattr(judge_process, "_process", lambda: other(what, started))
    with pytest.raises(RuntimeError, match="does not answer .* Restart the kernel"):
        judge_process.ask({"question": "toy_scaled"})
    assert len(started) == 2 and all(process.poll() is not None for process in started)
    assert judge_process._running is None


@pytest.mark.parametrize("what", OTHERS)
def test_a_judge_that_dies_in_the_middle_costs_no_check(what, served, monkeypatch):
    started, real = [], judge_process._process
    monkeypatch.setattr(judge_process, "_process", lambda: real() if started else other(what, started))
    assert report.verdict(SCALED, right).passed
    assert started[0].poll() is not None


def test_an_interrupted_check_leaves_no_old_answer(monkeypatch):
    """What a process answers after Ctrl-C belongs to the old question: it is stopped."""

    class Interrupted(io.BytesIO):
        def read(self, count=-1):
            raise KeyboardInterrupt

    ended = []
    process = types.SimpleNamespace(
        stdin=io.BytesIO(),
        stdout=Interrupted(),
        poll=lambda: None,
        kill=lambda: ended.append("killed"),
        wait=lambda: ended.append("waited for"),
    )
    monkeypatch.setattr(judge_process, "_running", process)
    with pytest.raises(KeyboardInterrupt):
        judge_process.ask({"question": "toy_scaled"})
    assert ended == ["killed", "waited for"] and judge_process._running is None


CHEAT = """
    import builtins, dataclasses, sys
    import torch
    from course.checks import judge, judge_process, questions, report, messaging, answer

    question = questions.find("rope_angles")
    def right(positions, dim, base):
        return torch.outer(positions.float(), base ** (-torch.arange(0, dim, 2) / dim))
    def wrong(positions, dim, base):
        return right(positions, dim, base) * 1.5
    def called(*args):
        print("CALLED HERE")
        return torch.zeros(1)

    yes = lambda *args, **kwargs: torch.tensor(True)
    torch.allclose = torch.isclose = yes
    judge.judge = lambda *args, **kwargs: report.Verdict("rope_angles", True, "right", "patched")
    judge._compare = judge._values = judge._numbers = lambda *args, **kwargs: (None, "")
    judge.TOLERANCE.clear()
    object.__setattr__(question, "tolerance", (1e9, 1e9))
    object.__setattr__(question, "reference", called)
    object.__setattr__(question, "variants", ())
    object.__setattr__(question, "wrong", ())
    questions.q06._rope_angles = called
    builtins.abs = builtins.round = lambda value: 0
    builtins.any, builtins.all = (lambda _: False), (lambda _: True)
    print(report.verdict(question, wrong).passed, report.verdict(question, right).passed)
    print("patched" in report.verdict(question, wrong).text, report.verdict(question, wrong).kind)
"""


def test_what_a_learner_patches_in_the_kernel_changes_no_verdict(tmp_path):
    """Expected values do not come from there, and nothing of the judge runs there."""
    script = tmp_path / "cheat.py"
    script.write_text(textwrap.dedent(CHEAT), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": questions.package_root()}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=600
    )
    assert done.stdout.split() == ["False", "True", "False", "near"], done.stdout + done.stderr


def test_what_a_question_prints_does_not_break_the_talk(tmp_path):
    """Prints of the judging process go elsewhere: its output is for messages alone."""
    site = tmp_path / "sitecustomize.py"
    site.write_text(
        "import builtins, sys, types\nreal = len\n"  # types takes its built-in type from len
        "def loud(value):\n"
        "    if sys._getframe(1).f_code.co_filename.endswith('q09.py'):\n"
        "        print('noise', flush=True)\n        sys.stderr.write('heard')\n"
        "    return real(value)\n"
        "builtins.len = loud\n",
        encoding="utf-8",
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([questions.package_root(), str(tmp_path)])}
    process = subprocess.Popen(
        [sys.executable, "-m", "course.checks"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    try:
        question = questions.find("offset_error")
        outcomes = collect(question.reference, [case.args for case in question.cases(3)])
        messaging.send(process.stdin, {"question": question.name, "seed": 3, "outcomes": outcomes})
        assert messaging.receive(process.stdout)["verdict"]["passed"]
        process.stdin.close()
        assert process.wait(60) == 0 and process.stdout.read() == b""
        assert b"heard" in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
