"""Five implementations to be judged: the tool names each bug that is drawn, and no right one fails."""

import inspect

import pytest

from course.checks import suspects
from tutorial_lib import conformance

SIZES = [{"D": 32, "H": 12, "BASE": 5e6}, {"D": 64, "H": 6, "BASE": 5e5}]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind, name, old, new", [*suspects.BUGS, *((k, "", "", "") for k in suspects.RIGHT)])
def test_the_tool_has_one_name_for_each_bug_and_none_for_right_code(kind, name, old, new, sizes):
    assert not name or suspects.RIGHT[kind].count(old) == 1
    suspect = suspects.made(kind, old, new, **sizes)
    report = conformance.check(suspect.function, **suspect.declared)
    assert (report.ok, report.named) == (not name, {name} - {""}), report


def test_a_draw_mixes_right_ones_and_different_bugs():
    seen = set()
    for seed in range(60):
        names = suspects.verdicts(seed)
        bugs = [name for name in names if name]
        assert len(names) == 5 and 2 <= len(bugs) <= 4 and len({*bugs}) == len(bugs)
        seen |= {*bugs}
    assert seen == {name for _, name, _, _ in suspects.BUGS} and len(seen) >= 12


def test_a_seed_draws_the_same_everywhere():
    assert suspects.verdicts(2) == ["", "minus lost", "mask starts at the top", "", "bias before the scale"]
    first, again = ([(s.declared, s.function.__code__.co_code) for s in suspects.draw(2)] for _ in range(2))
    assert first == again


def test_the_tool_gives_the_verdicts_of_a_draw():
    found = [
        "".join(conformance.check(suspect.function, **suspect.declared).named) for suspect in suspects.draw(3)
    ]
    assert found == suspects.verdicts(3)


def test_nothing_of_a_suspect_tells_what_it_is():
    for suspect, name in zip(suspects.draw(5), suspects.verdicts(5), strict=True):
        with pytest.raises(OSError):
            inspect.getsource(suspect.function)
        assert suspect.function.__name__ in ("rotate", "bias", "attend") and not suspect.function.__doc__
        assert not name or name not in repr((suspect.function, suspect.function.__code__.co_consts))
