"""Exercise 08 as learners answer it: in their own words, right and wrong."""

import math

import nbformat
import numpy as np
import pytest
import torch

from course.checks import questions
from course.checks.answer import collect
from course.checks.judge import judge
from tutorial_lib.encodings import YaRN
from tutorial_lib.encodings.scaling import DynamicNTK, Llama3, NTKAware
from workshop import exercises

SEEDS = (4, 50)
TURN = 2 * math.pi


def check(name, answer, seed):
    question = questions.find(name)
    return judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]))


def inverse(d, b):
    return 1.0 / (b ** (torch.arange(0, d, 2).float() / d))


# ---- axis angles ----
def angles_in_blocks(place=None, frequencies=None, join=None):
    """One axis after the other, with one of the steps exchanged."""
    place = place or (lambda p, s: p.double() / s)
    frequencies = frequencies or (lambda width, base: inverse(width, base).double())
    join = join or (lambda blocks: torch.cat(blocks, 1))

    def answer(positions, dim, base, stretch):
        width = dim // positions.shape[1]
        theta = frequencies(width, base)
        return join(
            [torch.outer(place(p, s), theta) for p, s in zip(positions.T, stretch, strict=True)]
        ).float()

    return answer


def angles_with_einsum(positions, dim, base, stretch):
    width = dim // positions.shape[1]
    return torch.einsum("na,t->nat", positions / stretch, inverse(width, base)).reshape(len(positions), -1)


def angles_with_numpy(positions, dim, base, stretch):
    places = positions.numpy() / stretch.numpy()
    theta = base ** (-np.arange(dim // 2 // places.shape[1]) * 2.0 * places.shape[1] / dim)
    return np.hstack([np.outer(one, theta) for one in places.T]).astype("float32")


# ---- dynamic NTK ----
def ntk_with_numpy(dim, base, L, length):
    s = np.maximum(1.0, length / L)
    return ((base * s ** (dim / (dim - 2))) ** (-np.arange(0, dim, 2) / dim)).astype(np.float32)


def ntk_pair_by_pair(dim, base, L, length):
    if length <= L:
        return inverse(dim, base)
    return torch.stack([f / (length / L) ** (2 * t / (dim - 2)) for t, f in enumerate(inverse(dim, base))])


def ntk_without_an_exponent(dim, base, L, length):
    return inverse(dim, base * (length / L if length > L else 1))


def ntk_without_a_floor(dim, base, L, length):
    return inverse(dim, base * (length / L) ** (dim / (dim - 2)))


def ntk_as_interpolation(dim, base, L, length):
    return inverse(dim, base) * min(1, L / length)


# ---- dynamic scores ----
def turned(x, angles):
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * torch.exp(1j * angles)).flatten(-2)


def scores_from(q, keys, theta, query_theta=None, place=-1):
    places = torch.arange(len(keys)).float()
    k = turned(keys, places[:, None] * theta)
    query = turned(q, (len(keys) + place) * (theta if query_theta is None else query_theta))
    return (k * query).sum(-1) / len(q) ** 0.5


def theta_of(q, base, L, length):
    return ntk_pair_by_pair(len(q), base, L, length)


def scores_with_complex_numbers(q, keys, base, L):
    return scores_from(q, keys, theta_of(q, base, L, len(keys)))


def scores_by_rotation_matrices(q, keys, base, L):
    theta, scores = ntk_pair_by_pair(len(q), base, L, len(keys)), []
    for p, key in enumerate(keys):
        blocks = []
        for angle in (theta * (p - len(keys) + 1)).tolist():
            cos, sin = math.cos(angle), math.sin(angle)
            blocks.append(torch.tensor([[cos, -sin], [sin, cos]]))
        scores.append(q @ torch.block_diag(*blocks) @ key / math.sqrt(len(q)))
    return torch.stack(scores)


def scores_with_old_keys(q, keys, base, L):
    thetas = torch.stack([ntk_pair_by_pair(len(q), base, L, n) for n in range(1, len(keys) + 1)])
    return scores_from(q, keys, thetas, thetas[-1])


def scores_with_both_faults(q, keys, base, L):
    thetas = torch.stack([ntk_pair_by_pair(len(q), base, L, n) for n in range(1, len(keys) + 1)])
    return scores_from(q, keys, thetas, thetas[-1], place=0)


def scores_with_a_late_query(q, keys, base, L):
    return scores_from(q, keys, ntk_pair_by_pair(len(q), base, L, len(keys)), place=0)


def scores_without_the_newest(q, keys, base, L):
    return scores_from(q, keys, theta_of(q, base, L, len(keys) - 1))


def scores_of_training(q, keys, base, L):
    return scores_from(q, keys, inverse(len(q), base))


# ---- YaRN ----
def turns(d, b, L):
    return L * inverse(d, b) / TURN


def smooth(g):
    return g * g * (3 - 2 * g)


def yarn_from_wavelengths(dim, base, s, L, alpha, beta):
    wavelength = TURN / inverse(dim, base)
    keep = ((L / wavelength - alpha) / (beta - alpha)).clip(0, 1)
    return TURN / wavelength * (keep + (1 - keep) / s)


def yarn_pair_by_pair(dim, base, s, L, alpha, beta):
    out = []
    for t in range(dim // 2):
        f = base ** (-2 * t / dim)
        r = L * f / TURN
        g = 0 if r < alpha else 1 if r > beta else (r - alpha) / (beta - alpha)
        out.append((1 - g) * f / s + g * f)
    return torch.tensor(out)


def yarn_upside_down(dim, base, s, L, alpha, beta):
    g = torch.clamp((turns(dim, base, L) - alpha) / (beta - alpha), 0, 1)
    return g * inverse(dim, base) / s + (1 - g) * inverse(dim, base)


def yarn_without_pi(dim, base, s, L, alpha, beta):
    g = torch.clamp((L * inverse(dim, base) - alpha) / (beta - alpha), 0, 1)
    return torch.lerp(inverse(dim, base) / s, inverse(dim, base), g)


def yarn_with_the_new_length(dim, base, s, L, alpha, beta):
    return yarn_from_wavelengths(dim, base, s, s * L, alpha, beta)


def yarn_as_a_step(dim, base, s, L, alpha, beta):
    return torch.where(L * inverse(dim, base) < TURN, inverse(dim, base) / s, inverse(dim, base))


# ---- the factor ----
def factor_by_steps(dim, base, L, new_L):
    theta = base ** (-np.arange(0, dim, 2) / dim)
    slow = L * theta < TURN
    low, high = 0.0, 20.0  # ln s
    while high - low > 1e-9:
        middle = (low + high) / 2
        new = (base * math.exp(middle) ** (dim / (dim - 2))) ** (-np.arange(0, dim, 2) / dim)
        low, high = (low, middle) if np.all(new_L * new[slow] <= L * theta[slow]) else (middle, high)
    return math.exp(high) if slow.any() else 1


def factor_of_the_first(dim, base, L, new_L):
    first = math.ceil(dim * math.log(L / TURN) / (2 * math.log(base)))  # where L θ falls below a turn
    return (new_L / L) ** ((dim - 2) / (2 * first)) if first < dim // 2 else 1.0


def factor_is_the_stretch(dim, base, L, new_L):
    return new_L / L


def factor_for_one_radian(dim, base, L, new_L):
    slow = (L * inverse(dim, base) < 1).nonzero().flatten().tolist()
    return (new_L / L) ** ((dim - 2) / (2 * slow[0])) if slow else 1.0


def factor_rounded_up(dim, base, L, new_L):
    return math.ceil(factor_of_the_first(dim, base, L, new_L))


RIGHT = {
    "axis_angles": (angles_with_einsum, angles_with_numpy),
    "dynamic_ntk_theta": (ntk_with_numpy, ntk_pair_by_pair),
    "dynamic_scores": (scores_with_complex_numbers, scores_by_rotation_matrices),
    "yarn_theta": (yarn_from_wavelengths, yarn_pair_by_pair),
    "ntk_factor": (factor_by_steps, factor_of_the_first),
}

NAMED = {
    "axis_angles": {
        angles_in_blocks(lambda p, s: (p / s).long().double()): "whole positions",
        angles_in_blocks(lambda p, s: p * s.double()): "squeezed the wrong way",
        angles_in_blocks(lambda p, s: p.double()): "not squeezed",
        angles_in_blocks(join=lambda b: torch.stack(b, 2).flatten(1)): "axes take turns",
        angles_in_blocks(join=lambda b: torch.cat(b[::-1], 1)): "last axis first",
    },
    "dynamic_ntk_theta": {
        ntk_without_an_exponent: "base times the factor",
        ntk_without_a_floor: "short texts change, too",
        ntk_as_interpolation: "all pairs divided",
    },
    "dynamic_scores": {
        scores_with_old_keys: "stale keys",
        scores_with_a_late_query: "query one place too far",
        scores_with_both_faults: "as it was given",
        scores_without_the_newest: "length one short",
        scores_of_training: "frequencies of training",
    },
    "yarn_theta": {
        yarn_upside_down: "fast pairs divided",
        yarn_without_pi: "radians for turns",
        yarn_with_the_new_length: "turns in the new length",
        yarn_as_a_step: "a step at one turn",
    },
    "ntk_factor": {
        factor_is_the_stretch: "the stretch, whatever the pairs",
        factor_for_one_radian: "radians for turns",
        factor_rounded_up: "a whole factor",
    },
}

#: Wrong, and in no catalogue.
OTHER = {
    "axis_angles": {
        "root of the stretch": angles_in_blocks(lambda p, s: p / s.double() ** 0.5),
        "shifted by half": angles_in_blocks(lambda p, s: p.double() / s + 0.5),
        "degrees": angles_in_blocks(lambda p, s: p.double() / s * 180 / math.pi),
        "base of the stretch": lambda p, d, b, s: angles_with_einsum(
            p, d, b * s[0].item(), torch.ones_like(s)
        ),
        "cosines": lambda p, d, b, s: angles_with_einsum(p, d, b, s).cos(),
        "slow pairs first": angles_in_blocks(frequencies=lambda width, b: inverse(width, b).double().flip(0)),
        "product of the axes": lambda p, d, b, s: torch.outer((p / s + 1).prod(1), inverse(d, b)),
        "twice per pair": lambda *x: angles_with_einsum(*x).repeat(1, 2),
    },
    "dynamic_ntk_theta": {
        "d + 2": lambda d, b, L, n: inverse(d, b * max(1, n / L) ** (d / (d + 2))),
        "squared factor": lambda d, b, L, n: inverse(d, b * max(1, n / L) ** 2),
        "logarithm of the factor": lambda d, b, L, n: inverse(d, b * (1 + math.log(max(1, n / L)))),
        "next power of two": lambda d, b, L, n: ntk_pair_by_pair(
            d, b, L, L * 2 ** math.ceil(math.log2(max(1, n / L)))
        ),
        "slowest pair only": lambda d, b, L, n: (
            inverse(d, b) / torch.tensor([1.0] * (d // 2 - 1) + [max(1, n / L)])
        ),
        "reversed": lambda d, b, L, n: ntk_pair_by_pair(d, b, L, n).flip(0),
        "wavelengths": lambda d, b, L, n: TURN / ntk_pair_by_pair(d, b, L, n),
        "cycles": lambda d, b, L, n: ntk_pair_by_pair(d, b, L, n) / TURN,
    },
    "dynamic_scores": {
        "softmax": lambda *x: scores_with_complex_numbers(*x).softmax(0),
        "divided by d": lambda q, *x: scores_with_complex_numbers(q, *x) / len(q) ** 0.5,
        "query at L": lambda q, k, b, L: scores_from(q, k, theta_of(q, b, L, len(k)), place=L - len(k) + 3),
        "length one too long": lambda q, k, b, L: scores_from(q, k, theta_of(q, b, L, len(k) + 1)),
        "twice the length": lambda q, k, b, L: scores_from(q, k, theta_of(q, b, L, 2 * len(k))),
        "without the own key": lambda *x: scores_with_complex_numbers(*x)[:-1],
        "absolute values": lambda *x: scores_with_complex_numbers(*x).abs(),
    },
    "yarn_theta": {
        "smoothstep": lambda d, b, s, L, lo, hi: (
            inverse(d, b) * (1 / s + (1 - 1 / s) * smooth(((turns(d, b, L) - lo) / (hi - lo)).clip(0, 1)))
        ),
        "geometric mixture": lambda d, b, s, L, lo, hi: (
            inverse(d, b) * s ** -(1 - ((turns(d, b, L) - lo) / (hi - lo)).clip(0, 1))
        ),
        "half a turn": lambda d, b, s, L, lo, hi: yarn_from_wavelengths(d, b, s, 2 * L, lo, hi),
        "from 0 to beta": lambda d, b, s, L, lo, hi: yarn_from_wavelengths(d, b, s, L, 0, hi),
        "fixed bounds": lambda d, b, s, L, lo, hi: yarn_from_wavelengths(d, b, s, L, 1, 32),
        "NTK inside": lambda d, b, s, L, lo, hi: yarn_from_wavelengths(
            d, b * s ** (d / (d - 2)), s, L, lo, hi
        ),
        "slow pairs stopped": lambda d, b, s, L, lo, hi: (
            inverse(d, b) * ((turns(d, b, L) - lo) / (hi - lo)).clip(0, 1)
        ),
        "root of s": lambda d, b, s, L, lo, hi: yarn_from_wavelengths(d, b, s**0.5, L, lo, hi),
    },
    "ntk_factor": {
        "base of the stretch": lambda d, b, L, N: b * N / L,
        "squared stretch": lambda d, b, L, N: (N / L) ** 2,
        "logarithm": lambda d, b, L, N: math.log(factor_of_the_first(d, b, L, N)),
        "one more": lambda d, b, L, N: factor_of_the_first(d, b, L, N) + 1,
        "twice the stretch": lambda d, b, L, N: 2 * N / L,
        "product": lambda d, b, L, N: math.prod(
            (N / L) ** ((d - 2) / (2 * t)) for t in range(1, d // 2) if L * b ** (-2 * t / d) < TURN
        ),
        "last fast pair": lambda d, b, L, N: (
            (N / L)
            ** ((d - 2) / (2 * max(1, sum(L * b ** (-2 * t / d) >= math.pi for t in range(d // 2)) + 1)))
        ),
    },
}


def entries(table):
    return [
        pytest.param(name, *entry, id=f"{name}-{getattr(entry[0], '__name__', entry[0])}")
        for name, each in table.items()
        for entry in (each.items() if isinstance(each, dict) else ((one,) for one in each))
    ]


@pytest.mark.parametrize("name, answer", entries(RIGHT))
def test_a_right_answer_passes_in_any_style(name, answer):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert verdict.passed, verdict.text


@pytest.mark.parametrize("name, answer, mistake", entries(NAMED))
def test_a_misconception_is_recognised_in_other_words(name, answer, mistake):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert (verdict.passed, verdict.kind, verdict.name) == (False, "mistake", mistake), verdict.text


@pytest.mark.parametrize("name, what, answer", entries(OTHER))
def test_a_mistake_without_a_name_is_refused_and_not_misnamed(name, what, answer):
    for seed in SEEDS:
        verdict = check(name, answer, seed)
        assert not verdict.passed and verdict.kind != "mistake", (verdict.kind, verdict.name)
        assert verdict.text


# ---- the references agree with the library ----
def cases(name, seed=11):
    question = questions.find(name)
    return [(question.reference(*case.args), case.args) for case in question.cases(seed)]


def test_the_references_agree_with_the_library():
    for theta, (dim, base, L, length) in cases("dynamic_ntk_theta"):
        library = DynamicNTK(L).theta(base, dim, torch.tensor(length))
        torch.testing.assert_close(theta.double(), library, rtol=1e-6, atol=0)
    for theta, (dim, base, s, L, alpha, beta) in cases("yarn_theta"):
        for scaling in (YaRN(s, L, alpha, beta), Llama3(s, L, alpha, beta)):
            torch.testing.assert_close(theta.double(), scaling.theta(base, dim), rtol=1e-6, atol=0)


def test_with_the_factor_no_angle_is_new_and_with_less_one_is():
    for s, (dim, base, L, new_L) in cases("ntk_factor"):
        theta = inverse(dim, base).double()
        slow = L * theta < TURN
        for share, new in ((1.001, False), (0.999, bool(slow.any()))):
            angles = new_L * NTKAware(max(1.0, s * share)).theta(base, dim)
            assert bool((angles[slow] > L * theta[slow]).any()) == new


def test_the_broken_code_that_students_get_is_named():
    notebook = nbformat.read(exercises.path("ex08_long_context", "exercises"), as_version=4)
    code = next(
        cell.source for cell in notebook.cells if "answer:dynamic_scores" in cell.metadata.get("tags", [])
    )
    space = {"torch": torch, "math": math}
    exec(code, space)
    for seed in SEEDS:
        assert check("dynamic_scores", space["dynamic_scores"], seed).name == "as it was given"
