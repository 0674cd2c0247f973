"""Answers that are wrong where a question asks for it, and used to pass: no draw lets one through."""

import pytest
import torch
import torch.nn.functional as F

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge

SEEDS = range(12)


def of_the_first_eight(scores):
    return questions.find("which_encoding").reference(scores[:8, :8])


def straight_from_the_start(scores):
    """Calls what begins as a line ALiBi."""
    found = questions.find("which_encoding").reference(scores)
    first = scores[4, :5].diff()
    small = 1e-4 * scores[scores.isfinite()].abs().max()
    return "alibi" if found == "clipped" and ((first - first[0]).abs() <= small).all() else found


def with_a_fixed_tolerance(small):
    def answer(scores):
        steps = [scores[i, : i + 1].flip(0).diff() for i in range(1, len(scores))]
        if all((row.abs() <= small).all() for row in steps):
            return "none"
        if any(((row - steps[-1][: len(row)]).abs() > small).any() for row in steps):
            return "absolute"
        if ((steps[-1] - steps[-1][0]).abs() <= small).all():
            return "alibi"
        return "clipped" if steps[-1][-1].abs() <= small else "rotary"

    return answer


def angles_from_0(positions, dim, base):
    return positions.clamp(min=0)[:, None] * base ** (-torch.arange(0, dim, 2) / dim)


def grid_never_smaller(P, old, new):
    old_grid = P[1:].T.reshape(1, -1, *old)
    size = [max(a, b) for a, b in zip(old, new, strict=True)]
    grid = F.interpolate(old_grid, size=size, mode="bilinear", align_corners=True)[..., : new[0], : new[1]]
    return torch.cat([P[:1], grid[0].flatten(1).T])


def bags_as_digits(join):
    def answer(sentences, answers):
        groups = {}
        for words, found in zip(sentences.tolist(), answers.tolist(), strict=True):
            groups.setdefault(join(sorted(words)), []).append(found)
        return sum(max(map(group.count, group)) for group in groups.values()) / len(answers)

    return answer


def through(dtype, name):
    """The right numbers, rounded on their way."""

    def answer(*args):
        value = questions.find(name).reference(*args)
        return value.to(dtype).to(value.dtype)

    return answer


HOLES = {
    "which_encoding of the first eight": ("which_encoding", of_the_first_eight),
    "which_encoding by the first steps": ("which_encoding", straight_from_the_start),
    **{
        f"which_encoding with {small}": ("which_encoding", with_a_fixed_tolerance(small))
        for small in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    },
    "rope_angles from 0": ("rope_angles", angles_from_0),
    "resize_grid, never smaller": ("resize_grid", grid_never_smaller),
    "bag_ceiling, digits joined": ("bag_ceiling", bags_as_digits(lambda words: "".join(map(str, words)))),
    "bag_ceiling, ids as digits": (
        "bag_ceiling",
        bags_as_digits(lambda words: sum(word * 10**n for n, word in enumerate(reversed(words)))),
    ),
    "bag_ceiling, ids as digits from below": (
        "bag_ceiling",
        bags_as_digits(lambda words: sum(word * 10**n for n, word in enumerate(words))),
    ),
    "bag_ceiling, two digits each": (
        "bag_ceiling",
        bags_as_digits(lambda words: sum(word * 100**n for n, word in enumerate(reversed(words)))),
    ),
    **{
        f"{name} in 16 bits": (name, through(torch.float16, name))
        for name in ("sinusoid_table", "sinusoid_add", "shift_matrix", "sinusoid_concat")
    },
}


@pytest.mark.parametrize("what", HOLES)
def test_no_draw_lets_it_pass(what):
    name, answer = HOLES[what]
    question = questions.find(name)
    for seed in SEEDS:
        verdict = judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))
        assert not verdict.passed, f"seed {seed}: {verdict.text}"
