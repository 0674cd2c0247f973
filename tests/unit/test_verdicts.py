"""One rule for all verdicts: each function says each word, and an interval over the limit is open."""

import pytest

from course.experiments.statistics import Interval
from course.verdicts import (
    FAILS,
    HOLDS,
    IDENTITY,
    OPEN,
    above,
    all_of,
    below,
    fact,
    identity,
    unmeasured,
    within,
)


def between(low, high):
    return Interval((low + high) / 2, low, high)


@pytest.mark.parametrize(
    "low, high, is_below, is_above, is_within",
    [
        (-2.0, -1.5, HOLDS, FAILS, FAILS),
        (-2.0, -0.5, HOLDS, FAILS, OPEN),
        (-0.5, 0.5, HOLDS, FAILS, HOLDS),
        (0.5, 1.5, OPEN, OPEN, OPEN),
        (1.0, 1.0, FAILS, FAILS, FAILS),  # the limit itself is neither above nor below
        (1.0, 1.5, FAILS, OPEN, FAILS),
        (1.5, 2.0, FAILS, HOLDS, FAILS),
        (-2.0, 2.0, OPEN, OPEN, OPEN),
    ],
)
def test_the_whole_interval_decides(low, high, is_below, is_above, is_within):
    x = between(low, high)
    assert (below(x, 1).verdict, above(x, 1).verdict, within(x, 1).verdict) == (is_below, is_above, is_within)


def test_an_exact_number_is_an_interval_of_one():
    assert [f(0.9, 1).verdict for f in (below, above, within)] == [HOLDS, FAILS, HOLDS]
    assert within(-1, 1).verdict == FAILS


def test_what_follows_from_definitions_is_no_finding_but_may_be_broken():
    assert identity(between(-1e-7, 1e-7), 1e-6).verdict == IDENTITY
    assert identity(between(-1e-7, 2e-6), 1e-6).verdict == FAILS
    assert identity(0.0, 0).holds and not identity(0.1, 0).holds


def test_what_was_not_measured_is_not_shown():
    assert unmeasured("a model of code") == (OPEN, "to be measured with a model of code")
    assert not unmeasured("x").holds


def test_several_conditions():
    yes, no, open_, same = fact(True, "a"), fact(False, "b"), unmeasured("c"), identity(0.0, 0)
    assert all_of(yes, same).verdict == HOLDS and all_of(same, same).verdict == IDENTITY
    assert all_of(yes, open_).verdict == OPEN and all_of(yes, open_, no).verdict == FAILS
    assert all_of(yes, yes, no).condition == "a, and b"
    assert all_of(yes.of("one"), no.of("other")).condition == "one a, and other b"
    with pytest.raises(ValueError, match="without a condition"):
        all_of()


def test_conditions_and_signs_are_words():
    assert str(below(0.0, 0.05)) == "✔ holds" and below(0.0, 0.05).condition == "below +0.05"
    assert above(0.0, 0).condition == "above 0" and within(0.0, 0.1).condition == "between -0.1 and +0.1"
    assert str(fact(False, "4 of 4")) == "✘ does not hold" and str(unmeasured("x")).startswith("◌")
