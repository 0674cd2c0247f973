"""Right is right as learners write it, in whatever precision; and no message tells two equal things apart."""

import ast
import functools
import json
import math
import re

import numpy as np
import pytest
import torch

from course.checks import questions, report
from course.checks.answer import collect
from course.checks.judge import judge
from course.lesson import turns
from course.places import ROOT
from tutorial_lib import readability
from tutorial_lib.language import speaking
from workshop import translation

GRADED = questions.everything()
TURNS = [turn for number in turns.notebooks() for turn in turns.load(number).values()]
ALL = {f"{'turn' if one in TURNS else 'ex'}{one.exercise}-{one.name}": one for one in (*GRADED, *TURNS)}
SEEDS = range(5)
pytestmark = pytest.mark.usefixtures("recorded_runs")


def verdict(question, answer, seed):
    return judge(
        question, seed, collect(answer, [case.args for case in question.cases(seed)], question.seconds)
    )


def accepted(question, answer, seeds=SEEDS):
    for seed in seeds:
        found = verdict(question, answer, seed)
        assert found.passed, (seed, found.text)


def each_of(named):
    return [pytest.param(question, id=key) for key, question in named.items()]


# ---- any precision ----
DTYPE = re.compile(r"dtype|float32|int64|like (weight|x)\b")


def mapped(value, tensor=lambda x: x, number=lambda x: x):
    """A value with its tensors, or its Python floats, in another form."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(one, tensor, number) for one in value)
    return number(value) if isinstance(value, float) else value


def cast(old, new):
    return lambda x: x.to(new) if x.dtype == old else x


SINGLE, DOUBLE = cast(torch.float64, torch.float32), cast(torch.float32, torch.float64)
#: What becomes of the arguments, and of the result.
FORMS = {
    "float32 throughout": (SINGLE, None, SINGLE),
    "float64 throughout": (DOUBLE, None, DOUBLE),
    "float64 inside": (DOUBLE, None, SINGLE),
    "float32 inside": (SINGLE, None, DOUBLE),
    "numbers as tensors": (None, torch.tensor, None),
    "lists": (None, None, torch.Tensor.tolist),
    "NumPy": (None, None, lambda x: x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy()),
}


def written(question, form):
    """The reference in another form; the dtype is what it was, if the text asks for one."""
    tensor, number, result = FORMS[form]

    def keep(x):
        return x

    def answer(*args):
        right = question.reference(*args)
        got = question.reference(*mapped(args, tensor or keep, number or keep))
        if DTYPE.search(question.returns) and isinstance(right, torch.Tensor):
            return got.to(right.dtype)
        return mapped(got, result or keep)

    return answer


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("question", each_of(ALL))
def test_no_precision_is_asked_for_that_the_text_does_not_name(question, form):
    accepted(question, written(question, form))


# ---- what the text says ----
def docstring(question):
    """What the learner reads in the cell of a graded question."""
    for path in sorted((ROOT / "solutions").glob(f"ex{question.exercise}*/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if f"answer:{question.name}" in cell["metadata"].get("tags", []):
                return next(
                    ast.get_docstring(one)
                    for one in ast.parse("".join(cell["source"])).body
                    if isinstance(one, ast.FunctionDef) and one.name == question.name
                )


@pytest.mark.parametrize("question", each_of({key: one for key, one in ALL.items() if one in GRADED}))
def test_the_dtype_of_a_result_and_of_an_input_is_named_in_the_cell(question):
    text = docstring(question)
    asked = DTYPE.search("".join(re.split(r"\breturns\b", text, flags=re.IGNORECASE)[1:]))
    assert bool(asked) == bool(DTYPE.search(question.returns)) == question.names_dtype
    given = {
        x.dtype
        for seed in (1, 2)
        for case in question.cases(seed)
        for x in case.args
        if isinstance(x, torch.Tensor) and x.is_floating_point()
    }
    assert given <= {torch.float32} or re.search("float|dtype|like", text), given


# ---- as learners write ----
def all_clocks(r, d):
    return torch.cos(r[..., None] * 10000 ** (-2 * torch.arange(d // 2) / d)).sum(-1)


def clocks_in_steps(r, d):
    return torch.cos(torch.outer(r, 10000.0 ** (-torch.arange(0, d, 2) / d))).sum(1)


def clocks_by_numbers(r, d):
    return torch.tensor([sum(math.cos(x * 10000 ** (-2 * t / d)) for t in range(d // 2)) for x in r.tolist()])


def mean_by_softmax(X):
    allowed = torch.ones(len(X), len(X)).tril() > 0
    return torch.zeros(len(X), len(X)).masked_fill(~allowed, -math.inf).softmax(-1) @ X


def mean_by_tril(X):
    mask = torch.ones(len(X), len(X)).tril()
    return mask / mask.sum(1, keepdim=True) @ X


def mean_row_by_row(X):
    Y = torch.zeros(X.shape)
    for n in range(len(X)):
        Y[n] = X[: n + 1].mean(0)
    return Y


def mean_of_scores(X):
    future = torch.ones(len(X), len(X), dtype=torch.bool).triu(1)
    return (0 * (X @ X.T)).masked_fill(future, -math.inf).softmax(-1) @ X


def memory_in_a_full_table(x, memory, W_Q, W_K, u, v, R):
    L, M, d = len(x), len(memory), W_Q.shape[1]
    q, k = x @ W_Q, torch.cat([memory, x]) @ W_K
    scores = torch.full((L, M + L), -math.inf)
    for i in range(L):
        for j in range(M + i + 1):
            scores[i, j] = ((q[i] + u) @ k[j] + (q[i] + v) @ R[M + i - j]) / math.sqrt(d)
    return scores


def memory_by_one_hot(x, memory, W_Q, W_K, u, v, R):
    far = len(memory) + torch.arange(len(x))[:, None] - torch.arange(len(R))
    table = torch.nn.functional.one_hot(far.clamp(min=0), len(R)).float()
    q, k = x @ W_Q, torch.cat([memory, x]) @ W_K
    scores = (q + u) @ k.T + torch.einsum("ic,ijc->ij", (q + v) @ R.T, table)
    return (scores / math.sqrt(q.shape[1])).masked_fill(far < 0, -math.inf)


def mass_into_zeros(alpha, height, width):
    total, pairs = torch.zeros(2, (2 * height - 1) * (2 * width - 1)).unbind()
    row, column = torch.arange(height * width) // width, torch.arange(height * width) % width
    place = (row - row[:, None] + height - 1) * (2 * width - 1) + column - column[:, None] + width - 1
    total.index_add_(0, place.flatten(), alpha.flatten())
    pairs.index_add_(0, place.flatten(), torch.ones(alpha.numel()))
    return (total / pairs).reshape(2 * height - 1, 2 * width - 1)


def shaw_into_zeros(q, k, v, w_K, w_V, q_positions, k_positions):
    m, scores = len(w_K) // 2, torch.zeros(len(q), len(k))
    row = (k_positions - q_positions[:, None]).clamp(-m, m) + m
    for i in range(len(q)):
        scores[i] = (k + w_K[row[i]]) @ q[i] / math.sqrt(q.shape[1])
    return torch.stack([a @ (v + w_V[r]) for a, r in zip(scores.softmax(-1), row, strict=False)])


def shift_into_a_full_table(x):
    out, (n_q, n_k) = torch.full(x.shape, -math.inf), x.shape[-2:]
    for i in range(n_q):
        seen = n_k - n_q + i + 1
        out[..., i, :seen] = x[..., i, n_k - seen :]
    return out


def alibi_with_a_table(q, k, v, slopes):
    i = torch.arange(k.shape[2] - q.shape[2], k.shape[2])[:, None]
    bias = torch.zeros(len(slopes), q.shape[2], k.shape[2])
    for h, m in enumerate(slopes.tolist()):
        bias[h] = torch.where(torch.arange(k.shape[2]) > i, -math.inf, m * (torch.arange(k.shape[2]) - i))
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=bias.expand(len(q), -1, -1, -1)
    )


def gap_by_exchange(bias):
    J = torch.eye(bias.shape[-1]).flip(0)
    return (bias.softmax(-1) - J @ bias.softmax(-1) @ J).abs().amax((1, 2))


def tensor_pair(pair, by):
    s, c = pair
    angle = torch.tensor(by)
    return torch.stack([s * angle.cos() + c * angle.sin(), c * angle.cos() - s * angle.sin()])


def turned_as_complex(pair, angle):
    z = torch.complex(*pair) * torch.polar(torch.ones_like(angle), angle)
    return z.real, z.imag


def interval_as_a_tensor(a, b, t=2.776):
    d = (a - b).float()
    return d.mean() + torch.tensor([-t, t]) * d.std() / math.sqrt(len(d))


def biases_on_both_sides(n_heads, n):
    m = torch.logspace(-8 / n_heads, -8, n_heads, base=2)
    return -m.view(-1, 1, 1) * (torch.arange(n)[:, None] - torch.arange(n)).abs()


def biases_head_by_head(n_heads, n):
    bias = torch.zeros(n_heads, n, n)
    for h in range(n_heads):
        for i in range(n):
            for j in range(i + 1):
                bias[h, i, j] = -(2 ** (-8 * (h + 1) / n_heads)) * (i - j)
    return bias


def biases_and_mask(n_heads, n):
    ahead = torch.ones(n, n).triu(1).bool()
    return biases_on_both_sides(n_heads, n).masked_fill(ahead, -math.inf)


def ramp_hand_by_hand(theta, s, fast, slow):
    new = theta.clone()
    for t in range(len(theta)):
        new[t] /= s ** min(max((t - fast) / (slow - fast), 0), 1)
    return new


def ramp_with_where(theta, s, fast, slow):
    t = torch.arange(len(theta), dtype=torch.float64)
    between = torch.exp(-math.log(s) * (t - fast) / (slow - fast))
    return theta * torch.where(t <= fast, 1.0, torch.where(t >= slow, 1 / s, between))


def biases_of_bloom(n_heads, n):
    return (0.5 ** (8 * np.arange(1, n_heads + 1) / n_heads))[:, None, None] * np.arange(n) + np.zeros((n, 1))


NATURAL = {
    "turn00-loss_of": [
        lambda p: torch.log(1 / p),
        lambda p: -np.log(p.numpy()),
        lambda p: torch.nn.functional.binary_cross_entropy(p, torch.ones(p.shape), reduction="none"),
    ],
    "turn01-running_mean": [mean_by_softmax, mean_by_tril, mean_row_by_row, mean_of_scores],
    "turn02-angle": [
        lambda p, t, d: p / torch.tensor(10000.0) ** (2 * t / d),
        lambda p, t, d: p * torch.exp(torch.tensor(-2 * t / d * math.log(10000))),
        lambda p, t, d: torch.as_tensor(p) * (10000 ** (-torch.arange(0, d, 2) / d))[t],
        lambda p, t, d: p * torch.logspace(0, -4, d // 2 + 1)[t],
    ],
    "turn02-wavelength": [
        lambda t, d: 2 * torch.pi * torch.tensor(10000) ** (2 * t / d),
        lambda t, d: np.float32(2 * np.pi) * 10000 ** np.float32(2 * t / d),
    ],
    "turn02-turn": [
        tensor_pair,
        lambda pair, by: (torch.sin(torch.atan2(*pair) + by), torch.cos(torch.atan2(*pair) + by)),
    ],
    "turn02-dot": [all_clocks, clocks_in_steps, clocks_by_numbers],
    "turn03-alike": [
        lambda table, r: (
            (torch.nn.functional.normalize(table) @ torch.nn.functional.normalize(table).T).diagonal(r).mean()
        ),
        lambda table, r: torch.tensor(
            [torch.cosine_similarity(a, b, 0) for a, b in zip(table, table[r:], strict=False)]
        ).mean(),
    ],
    "turn04-bucket": [lambda n: torch.bucketize(n, torch.tensor([1, 2, 3, 4, 8, 16, 32]), right=True)],
    "turn05-remains": [
        lambda e: e - e.sum(1)[:, None] / e.shape[1],
        lambda e: e.double() - e.double().mean(1, keepdim=True),
    ],
    "turn06-turn": [turned_as_complex],
    "turn06-score": [
        lambda q, k, r, theta: (
            (torch.complex(*q).conj() * torch.complex(*k) * torch.exp(1j * r.float() * theta)).real
        )
    ],
    "turn06-numbers": [
        lambda cached, new: list(range(cached, cached + new)),
        lambda cached, new: np.arange(new, dtype=np.int32) + cached,
    ],
    "turn07-fade": [
        lambda m, x: math.exp(-m) ** x,
        lambda m, x: torch.tensor(math.exp(-m)) ** x.float(),
        lambda m, x: torch.tensor([math.exp(-m * n) for n in x.tolist()]),
    ],
    "turn07-alibi": [biases_on_both_sides, biases_head_by_head, biases_and_mask, biases_of_bloom],
    "turn08-first_new": [
        lambda theta, new, L: torch.where(
            L * theta < 2 * torch.pi, L * theta / new, torch.tensor(math.inf)
        ).float()
    ],
    "turn08-ramp": [ramp_hand_by_hand, ramp_with_where],
    "turn09-paired": [interval_as_a_tensor],
    "turn09-elsewhere": [
        lambda a, b: (a - b).clamp(min=0).sum(-1).float().max(),
        lambda a, b: 1 - torch.minimum(a, b).sum(-1).min(),
    ],
    "turn10-sharper": [
        lambda q, n, trained: q * torch.log(torch.tensor(n)) / torch.log(torch.tensor(trained))
    ],
    "turn10-gate_like_alibi": [
        lambda m: torch.logit(torch.exp(torch.tensor(-m))),
        lambda m: -math.log(math.expm1(m)),
    ],
    "ex04-offset_mass": [mass_into_zeros],
    "ex04-shaw_attention": [shaw_into_zeros],
    "ex04-relative_shift": [shift_into_a_full_table],
    "ex05-memory_scores": [memory_in_a_full_table, memory_by_one_hot],
    "ex07-alibi_attention": [alibi_with_a_table],
    "ex07-mirror_gap": [gap_by_exchange],
}


@pytest.mark.parametrize(
    "key, answer",
    [
        pytest.param(key, answer, id=f"{key}-{n}")
        for key, answers in NATURAL.items()
        for n, answer in enumerate(answers)
    ],
)
def test_an_answer_as_learners_write_it_is_right(key, answer):
    accepted(ALL[key], answer, range(10))


# ---- what is said of a wrong one ----
EQUAL = [
    re.compile(text)
    for text in (
        r"(?:is|It is|stands|\]:) (\S+?)[,;] it should be (\S+?)\.(?:\s|$)",
        r"has the shape (\[.*?\]); it should be (\[.*?\])\.",
        r"should be (.+?), it is (.+?)\.(?:\s|$)",
    )
]


def says_one_thing_twice(text):
    return [
        found[0] for each in EQUAL for found in each.finditer(text) if found[1] == found[2]
    ] or re.findall(r"Every number is 1 times|off by 0\.(?:\s|$)", text)


def nearly(question, by):
    """The reference, off by hardly more than is allowed: everywhere, or in one place."""
    relative, absolute = question.tolerance

    def off(x):
        if not x.is_floating_point() or not x.numel():
            return x
        x = x.double()
        return by(x, x + 1.3 * (relative * x.abs() + absolute))

    def answer(*args):
        return mapped(question.reference(*args), off, lambda x: x + 1.3 * (relative * abs(x) + absolute))

    return answer


def in_one_place(x, y):
    return torch.where(torch.arange(x.numel()).reshape(x.shape) == 0, y, x)


def nearly_right(question):
    factor = 1 + 1.3 * question.tolerance[0]
    yield nearly(question, lambda x, y: y)
    yield nearly(question, in_one_place)
    yield lambda *args: mapped(
        question.reference(*args), lambda x: x * factor if x.is_floating_point() else x, lambda x: x * factor
    )


@functools.cache
def nearly_right_verdicts(question, seed):
    """To find that nothing explains these takes longest, and two tests ask for them."""
    return [verdict(question, answer, seed) for answer in nearly_right(question)]


@pytest.mark.parametrize("question", each_of(ALL))
def test_a_wrong_answer_is_refused_in_any_precision_and_no_message_tells_two_equal_things_apart(question):
    for n, one in enumerate(question.wrong):
        tensor = (SINGLE, DOUBLE)[n % 2]
        found = verdict(
            question, lambda *args, one=one, tensor=tensor: mapped(one.answer(*args), tensor), n % 2
        )
        assert not found.passed and not says_one_thing_twice(found.text), (one.name, found.text)
    for found in (*nearly_right_verdicts(question, 0), *nearly_right_verdicts(question, 1)):
        assert not says_one_thing_twice(found.text), found.text


# ---- pictures ----
@pytest.fixture
def alternatives(monkeypatch):
    """The alternative texts of what is drawn."""
    shown = []
    monkeypatch.setattr(report.plots, "lines", lambda *args, **more: None)
    monkeypatch.setattr(report.plots, "heat", lambda *args, **more: None)
    monkeypatch.setattr(report.plots, "panels", lambda *args, **more: (None, (None, None)))
    monkeypatch.setattr(report.plots, "show", lambda fig, alt: shown.append(alt))
    return shown


#: Those whose first input gives more than a number, of which there is no picture.
DRAWN = {
    key: one
    for key, one in ALL.items()
    if one.picture and np.ndim(one.reference(*one.cases(1)[0].args)) and one.name != "order"
}


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    """What the library says in Chinese, compiled."""
    folder = tmp_path_factory.mktemp("locale")
    translation.compile_texts(translation.looked_up("zh"), folder / "zh")
    return folder


def check_pictures(question, verdicts, shown):
    for found in verdicts:
        if found.picture:
            report.draw(question, found)
            assert not (fault := readability.alt_fault(shown[-1])), (fault, shown[-1])


@pytest.mark.parametrize("question", each_of(DRAWN))
def test_a_picture_of_any_diagnosis_says_in_words_what_it_shows(question, alternatives, chinese):
    """In Chinese, whose texts are complete, two pictures show how their sentences are joined."""
    in_english = (verdict(question, one.answer, 1) for one in question.wrong)
    check_pictures(question, (*in_english, *nearly_right_verdicts(question, 1)), alternatives)
    assert alternatives
    with speaking("zh", chinese):
        check_pictures(
            question, [verdict(question, one.answer, 1) for one in question.wrong[:2]], alternatives
        )
