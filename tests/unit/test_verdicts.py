"""One rule for all verdicts: each function says each word, and an interval over the limit is open."""

import pytest

from course.experiments.statistics import Interval, interval
from course.verdicts import (
    FAILS,
    HOLDS,
    IDENTITY,
    OPEN,
    Outcome,
    above,
    all_of,
    below,
    discoveries,
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
    assert unmeasured("a model of code")[:2] == (OPEN, "to be measured with a model of code")
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
    assert str(below(0.0, 0.05)) == "✔ holds" and below(0.0, 0.05).condition == "below 0.05"
    assert above(0.0, 0).condition == "above 0" and within(0.0, 0.1).condition == "between -0.1 and +0.1"
    assert str(fact(False, "4 of 4")) == "✘ does not hold" and str(unmeasured("x")).startswith("◌")


# ---- many verdicts ----
@pytest.mark.parametrize("values", [[0.0, 1.0], [1.0, 2.0, 4.0], [0.3, 0.1, 0.2, 0.9, 0.7], list(range(30))])
def test_at_the_end_of_an_interval_p_is_one_in_twenty(values):
    """The intervals come from a table, p from an integral: two ways to Student's t."""
    x = interval(values)
    for limit in (x.low, x.high):
        assert below(x, limit).p == pytest.approx(0.05, rel=1e-3) == above(x, limit).p
    assert below(x, x.mean).p == pytest.approx(1) and below(x, x.high + x.high - x.mean).p < 0.05


def test_known_points_of_students_t():
    """Tables: t = 2 with 10 degrees of freedom has p = 0.0734, t = 3.078 with one has 0.2."""
    x = interval([n - 5 + 2 * 1.0 for n in range(11)])  # mean 2, standard error 1
    assert below(x, 0).p == pytest.approx(0.0734, abs=1e-4)
    assert below(interval([-1 + 3.078, 1 + 3.078]), 0).p == pytest.approx(0.2, abs=1e-4)


def test_what_is_exact_has_no_p_and_equal_values_leave_no_doubt():
    assert below(0.1, 1).p is None and fact(True, "a").p is None and identity(0.0, 0).p is None
    assert below(interval([0.5, 0.5, 0.5]), 1).p == 0 and below(interval([1.0, 1.0]), 1).p == 1


def test_the_nearer_end_of_a_margin_decides():
    x = interval([0.1, 0.2, 0.3])
    assert within(x, 1).p == above(x, 1).p > above(x, -1).p
    assert within(interval([-0.1, -0.2, -0.3]), 1).p == pytest.approx(within(x, 1).p)


def test_all_have_to_hold_and_one_of_several_is_enough_to_fail():
    strong, weak = Outcome(HOLDS, "a", 0.001), Outcome(HOLDS, "b", 0.03)
    assert all_of(strong, weak).p == 0.03
    assert all_of(strong, Outcome(FAILS, "c", 0.01)).p == 0.02  # of two
    assert all_of(weak, fact(False, "c")).p is None  # exact: no luck in it
    assert all_of(fact(True, "a"), fact(True, "b")).p is None


def test_more_verdicts_ask_for_more():
    few = [Outcome(HOLDS, "", p) for p in (0.001, 0.03)]
    assert discoveries(few) == 0.03
    assert discoveries(few + [Outcome(OPEN, "", 0.5)] * 30) == 0.001
    assert discoveries([fact(True, "a")]) == 0
