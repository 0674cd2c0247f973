"""What a lesson asks for in a blank earns no point of an exercise when it is pasted there."""

import pytest
import torch

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from course.lesson.turns import t01, t02, t03, t04, t05, t06, t07, t08


def theta(base, dim):
    return base ** (-torch.arange(0, dim, 2) / dim)


def running_mean(allowed, layers, residual):
    return t01.running_mean(torch.eye(len(allowed)))


def from_memory(sentences, answers):
    return (t01.from_memory(sentences, answers) == answers).double().mean().item()


def attend(q, k, v, q_positions, k_positions):
    """The attention that lesson 01 shows, without a blank."""
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def hands(positions, d, base):
    angle = torch.stack([t02.angle(positions, t, d) for t in range((d + 1) // 2)], -1)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :d].float()


def clocks(positions, d, base):
    return t02.clocks(positions, d)


def hand(positions, dim, base):
    return torch.stack([t02.angle(positions, t, dim) for t in range(dim // 2)], -1).float()


def untouched(start, end):
    return t03.untouched(start.norm(dim=1), end.norm(dim=1))


def bucket(r, n_buckets, max_distance, bidirectional):
    return t04.bucket(r.abs())


def four_terms(x, memory, W_Q, W_K, u, v, R):
    """Lesson 05 has neither a memory nor a mask: the new tokens alone, and the distances among them."""
    n = torch.arange(len(x))
    between = R[(n[:, None] - n).clamp(min=0)]
    return t05.four_terms((x @ W_Q)[None], (x @ W_K)[None], between, u, v)[0]


def turn(x, angles, layout):
    """Lesson 06 builds neighbours alone; with positions of 1, its speeds are any angles."""
    return t06.rope(x, torch.ones(len(angles)), angles).to(x.dtype)


def order(weight, head_dim, rotary_dim, target):
    return weight.unflatten(0, (-1, head_dim))[:, t06.order(head_dim)].flatten(0, 1)


def slopes(n_heads):
    """The step of one token, in the biases that lesson 07 builds."""
    return -t07.alibi(n_heads, 2)[:, 1, 0]


def all_biases(slopes, q_positions, k_positions):
    """Lesson 07 knows neither positions nor other slopes."""
    return t07.alibi(len(slopes), len(k_positions))[:, -len(q_positions) :].to(slopes.dtype)


def ramp(dim, base, s, L, alpha, beta):
    """Lesson 08 counts hands where the exercise counts turns: the hands that make β and α of them."""
    turns = L * theta(base, dim) / (2 * torch.pi)
    return t08.ramp(theta(base, dim), s, (turns >= beta).sum() - 1, (turns >= alpha).sum())


PASTED = [
    ("mask_shares", running_mean),
    ("bag_ceiling", from_memory),
    ("causal_attention", attend),
    ("sinusoid_table", hands),
    ("sinusoid_table", clocks),
    ("rope_angles", hand),
    ("untrained_rows", untouched),
    ("t5_bucket", bucket),
    ("memory_scores", four_terms),
    ("rope_rotate", turn),
    ("rope_sort_rows", order),
    ("alibi_slopes", slopes),
    ("alibi_bias", all_biases),
    ("yarn_theta", ramp),
]


@pytest.mark.parametrize("name, answer", PASTED, ids=[f"{name}-{answer.__name__}" for name, answer in PASTED])
def test_the_code_of_a_lesson_earns_nothing(name, answer):
    question = questions.find(name)
    for seed in (2, 30, 400):
        verdict = judge(
            question, seed, collect(answer, [case.args for case in question.cases(seed)], question.seconds)
        )
        assert not verdict.passed
        assert verdict.kind in ("mistake", "symptom"), f"the pasted code does not even run: {verdict.text}"
