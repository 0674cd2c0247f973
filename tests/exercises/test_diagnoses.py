"""What a wrong answer is told: two mistakes at once, a mistake and a dtype, the part where it goes wrong."""

import math
import random
import warnings

import pytest
import torch

from course.checks import judge as judging
from course.checks import questions
from course.checks.answer import collect
from course.checks.diagnosis import composed, relation
from course.checks.judge import judge

SEEDS = (3, 44)


def verdicts(name, answer, hidden=False):
    question = questions.find(name)
    for seed in SEEDS:
        yield judge(question, seed, collect(answer, [case.args for case in question.cases(seed)]), hidden)


# ---- two at once ----
def angles_from_1_without_log(positions, dim, base):
    return (positions[:, None] + 1) * torch.exp(-torch.arange(0, dim, 2) / dim)


def angles_of_rows_and_pairs(positions, dim, base):
    return torch.arange(len(positions))[:, None] * base ** (-torch.arange(dim // 2) / dim)


def table_of_rows_with_pairs(positions, d, base):
    angle = torch.arange(len(positions))[:, None] * base ** (-torch.arange(-(-d // 2)) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :d]


def rotated_clockwise_without_cast(x, angles, layout):
    cos, sin = angles.cos(), angles.sin()
    if layout == "half":
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos + b * sin, b * cos - a * sin], -1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos + b * sin, b * cos - a * sin], -1).flatten(-2)


def rotated_always_half_clockwise(x, angles, layout):
    a, b = x.float().chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos + b * sin, b * cos - a * sin], -1).to(x.dtype)


def bias_turned_and_unscaled(slopes, q_positions, k_positions):
    r = torch.arange(len(k_positions)) - torch.arange(len(q_positions))[:, None]
    return (slopes[:, None, None] * -r).masked_fill(r > 0, -math.inf)


def shares_by_columns_without_residual(allowed, layers, residual):
    return torch.linalg.matrix_power(allowed.float() / allowed.sum(0), layers)


def memory_unmasked_without_scale(x, memory, W_Q, W_K, u, v, R):
    text = torch.cat([memory, x])
    q, far = x @ W_Q, len(memory) + torch.arange(len(x))[:, None] - torch.arange(len(text))
    return (q + u) @ (text @ W_K).T + ((q + v) @ R.T).gather(1, far.clamp(min=0))


def angles_in_turns_unsqueezed(positions, dim, base, stretch):
    pairs = dim // 2 // positions.shape[1]
    return (positions[:, None] * base ** (-torch.arange(pairs) / pairs)[:, None]).flatten(1)


def shaw_turned_without_root(q, k, v, w_K, w_V, q_positions, k_positions):
    m = len(w_K) // 2
    row = (q_positions[:, None] - k_positions).clamp(-m, m) + m
    weights = (q @ k.T + torch.einsum("id,ijd->ij", q, w_K[row])).softmax(-1)
    return weights @ v + torch.einsum("ij,ijd->id", weights, w_V[row])


def painted_with_nothing(picture, n):
    return [0.0] * n, [0.0] * (2 * n - 1)


def yarn_all_wrong(dim, base, s, L, alpha, beta):
    theta = base ** (-torch.arange(0, dim, 2) / dim)
    r = L * theta
    gamma = ((r - alpha) / (beta - alpha)).clamp(0, 1)
    return gamma * theta / s + (1 - gamma) * theta


def moved_unmasked_and_double(scores, term, allowed):
    return ((scores + term).softmax(-1) - scores.softmax(-1)).abs().sum(-1).mean(-1)


def bytes_of_one_tensor_without_offset_0(encoding, length, dim, heads, kv_heads, layers, k, bytes_each):
    stored, formed, cache = questions.find("position_bytes").reference(
        encoding, length, dim, heads, kv_heads, layers, k, bytes_each
    )
    less = {"clipped": layers * heads, "shaw": layers * 2 * (dim // heads)}.get(encoding, 0)
    return stored - less * bytes_each, formed, cache // 2


TWO = [
    ("rope_angles", angles_from_1_without_log, {"positions counted from 1", "e in place of the base"}),
    (
        "rope_angles",
        angles_of_rows_and_pairs,
        {"row number instead of position", "exponent counts pairs, not channels"},
    ),
    (
        "sinusoid_table",
        table_of_rows_with_pairs,
        {"row number instead of position", "exponent counts pairs, not columns"},
    ),
    ("rope_rotate", rotated_always_half_clockwise, {"always half", "clockwise"}),
    ("alibi_bias", bias_turned_and_unscaled, {"sign turned", "rows counted from 0"}),
    ("mask_shares", shares_by_columns_without_residual, {"columns add up to 1", "no residual"}),
    ("memory_scores", memory_unmasked_without_scale, {"no mask", "scale forgotten"}),
    ("axis_angles", angles_in_turns_unsqueezed, {"axes take turns", "not squeezed"}),
    ("shaw_attention", shaw_turned_without_root, {"query minus key", "no root"}),
    ("paint_head", painted_with_nothing, {"nothing for the keys", "nothing for the offsets"}),
    ("yarn_theta", yarn_all_wrong, {"fast pairs divided", "radians for turns"}),
    ("moved_mass", moved_unmasked_and_double, {"mask forgotten", "mass counted twice"}),
    (
        "position_bytes",
        bytes_of_one_tensor_without_offset_0,
        {"the cache holds one tensor", "offset 0 forgotten"},
    ),
]


@pytest.mark.parametrize("name, answer, both", TWO, ids=[answer.__name__ for _, answer, _ in TWO])
def test_both_of_two_mistakes_are_named(name, answer, both):
    for hidden in (False, True):
        for verdict in verdicts(name, answer, hidden):
            assert verdict.kind == "mistake" and set(verdict.name.split(" + ")) == both, (
                verdict.name,
                verdict.text,
            )
            assert verdict.text.startswith("Two mistakes at once. (1) ") and " (2) " in verdict.text


def test_a_forgotten_cast_silences_no_other_diagnosis():
    for verdict in verdicts("rope_rotate", rotated_clockwise_without_cast):
        assert verdict.name == "clockwise"
        assert (
            "Besides, with interleaved pairs, x [2, 6, 8], bfloat16 the result is float32; it should be "
            "bfloat16" in verdict.text
        )
    for verdict in verdicts("rope_rotate", rotated_clockwise_without_cast, hidden=True):
        assert (
            "Besides, for some inputs the result is float32" in verdict.text
            and "[2, 6, 8]" not in verdict.text
        )


def test_an_error_for_one_input_silences_no_other_diagnosis():
    def answer(x, angles, layout):
        return rotated_clockwise_without_cast(x, angles, layout) @ torch.eye(x.shape[-1], dtype=x.dtype)

    for verdict in verdicts("rope_rotate", answer):
        assert verdict.name == "clockwise" and "answer raises an error: RuntimeError" in verdict.text
    for verdict in verdicts("rope_rotate", answer, hidden=True):
        assert verdict.name == "clockwise" and "RuntimeError" not in verdict.text


def test_two_mistakes_in_two_kinds_of_input():
    def answer(P, rows, way):
        if way == "copy":
            return P[torch.arange(rows) * len(P) // rows]
        return P[(torch.arange(rows) * (len(P) - 1) / (rows - 1)).round().long()]

    for verdict in verdicts("longer_table", answer):
        assert set(verdict.name.split(" + ")) == {"each row repeated", "nearest row"}


def test_one_that_is_wrong_only_here_is_said_to_be_here():
    def answer(x, angles, layout):
        return questions.find("rope_rotate").reference(
            x, -angles if layout == "interleaved" else angles, layout
        )

    for verdict in verdicts("rope_rotate", answer):
        assert verdict.name == "clockwise" and verdict.text.startswith(
            "With interleaved pairs, x [2, 3, 5, 8]; "
        )


def test_a_constant_factor_besides_a_mistake():
    for verdict in verdicts(
        "rope_rotate", lambda x, f, layout: 3 * questions.find("rope_rotate").reference(x, -f, layout)
    ):
        assert verdict.name == "clockwise" and "3 times as large" in verdict.text


def test_what_is_right_but_for_its_dtype_is_no_mistake_of_the_catalogue():
    for verdict in verdicts(
        "rope_rotate", lambda x, f, layout: questions.find("rope_rotate").reference(x, f, layout).float()
    ):
        assert verdict.kind == "dtype"


def test_what_nobody_knows_gets_no_name():
    def answer(x, memory, W_Q, W_K, u, v, R):
        return questions.find("memory_scores").reference(x.tanh(), memory, W_Q, W_K, u, v, R.flip(1))

    for verdict in verdicts("memory_scores", answer):
        assert verdict.kind == "symptom" and verdict.name == ""


def combined():
    """Every two mistakes of a catalogue that can be made in one answer."""
    for question in questions.everything():
        yield from ((question, a, b, answer) for a, b, answer in composed(question))


def untrue(question, a, b, answer) -> str:
    """What is said of two mistakes in one answer and does not agree with it, or nothing."""
    for seed in SEEDS[:1]:
        inputs = [case.args for case in question.cases(seed)]
        found = judge(question, seed, collect(answer, inputs, 0.5))
    said = set(found.name.split(" + ")) if found.name else set()
    both = f"{a.name} + {b.name}", f"{b.name} + {a.name}"
    if found.kind != "mistake" or said <= {a.name, b.name} or found.name in both:
        return ""
    others = [w.answer for w in question.wrong if {w.name} == said]
    others += [made for x, y, made in composed(question) if {x.name, y.name} >= said]
    others += [] if others else [w.answer for w in question.wrong if w.name in said]
    inputs = [case.args for case in question.cases(SEEDS[1])]  # what explains an answer explains it elsewhere
    theirs = judging._known(question, SEEDS[1])
    mine = [
        judging._checked([one], [args])[0]
        for one, args in zip(collect(answer, inputs, 0.5), inputs, strict=True)
    ]
    for other in others:
        if all(
            relation(theirs, n, theirs.outcome(other, n), mine[n])[0]
            or theirs.same(n, theirs.expected()[n], mine[n])
            for n in range(len(inputs))
        ):
            return ""
    return f"{question.name}: {a.name} + {b.name} is called {found.name}"


def test_what_is_said_of_two_mistakes_is_true():
    pairs = random.Random(5).sample(list(combined()), 40)
    assert not [text for pair in pairs if (text := untrue(*pair))]


def test_a_text_that_calls_something_right_is_said_of_no_part():
    for question, a, b, answer in random.Random(6).sample(list(combined()), 40):
        if not (a.whole or b.whole):
            continue
        found = judge(question, 3, collect(answer, [case.args for case in question.cases(3)], 0.5))
        entries = [w for w in question.wrong if w.name in found.name.split(" + ")]
        assert len(entries) < 2 or not any(entry.whole for entry in entries), found.text


# ---- the mistake is where it was made ----
EXERCISE_06 = """
import math
import torch

def rope_angles(positions, dim, base):
    return positions[:, None] * base ** (-torch.arange(0, dim, 2) / dim)

def rope_rotate(x, angles, layout):
    a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.chunk(2, -1)
    a, b = a * angles.cos() SIGN b * angles.sin(), b * angles.cos() - a * angles.sin()
    turned = torch.stack([a, b], -1).flatten(-2) if layout == "interleaved" else torch.cat([a, b], -1)
    return turned.to(x.dtype)

def turned(x, angles):
    return rope_rotate(x, angles, layout="interleaved")

def rope_shift_error(q, k, angles, shifted):
    old, new = (turned(q, f) @ turned(k, f).mT for f in (angles, shifted))
    return (new - old).abs().amax((-2, -1)) / old.abs().amax((-2, -1))

def cached_scores(q, k, cached, base):
    positions = cached.shape[-2] + torch.arange(q.shape[-2])
    q, k = (turned(x, rope_angles(positions, q.shape[-1], base)) for x in (q, k))
    return q @ torch.cat([cached, k], -2).mT / math.sqrt(q.shape[-1])
"""


@pytest.fixture
def here(monkeypatch):
    """Judged in this process."""
    from course.checks import judge_process

    monkeypatch.setattr(
        judge_process,
        "ask",
        lambda request: {
            "verdict": judge(
                questions.find(request["question"]), request["seed"], request["outcomes"]
            ).message()
        },
    )


def written(sign="+", change=("", "")):
    space = {"__name__": "a_notebook"}
    exec(EXERCISE_06.replace("SIGN", sign).replace(*change), space)
    return space


def test_who_calls_a_broken_answer_is_judged_with_ours(here):
    from course.checks import report

    space = written("-")
    theirs = space["rope_rotate"]
    for name in ("rope_shift_error", "cached_scores"):
        for seed in range(5):
            found = report.verdict(questions.find(name), space[name], seed)
            assert found.passed, found.text
            assert found.text.startswith(
                "Your `rope_rotate` has not passed yet; here it was replaced by ours. Right"
            )
    assert not report.verdict(questions.find("rope_rotate"), theirs).passed and space["rope_rotate"] is theirs


def test_its_own_mistake_is_still_told(here):
    from course.checks import report

    space = written("-", ("cached.shape[-2] + torch.arange(q.shape[-2])", "torch.arange(q.shape[-2])"))
    found = report.verdict(questions.find("cached_scores"), space["cached_scores"], 1)
    assert found.name == "new tokens counted from 0" and "`rope_rotate` has not passed yet" in found.text


def test_nothing_is_replaced_where_all_is_right(here):
    from course.checks import report

    space = written("-")
    exec(EXERCISE_06.replace("SIGN", "-").replace("b * angles.cos() - a *", "b * angles.cos() + a *"), space)
    assert "replaced" not in report.verdict(questions.find("cached_scores"), space["cached_scores"]).text


# ---- pictures ----
DRAWN = [pytest.param(question, id=question.name) for question in questions.everything() if question.picture]


@pytest.mark.parametrize("question", DRAWN)
def test_a_picture_can_be_read_and_its_axes_have_names(question, monkeypatch):
    from course.checks import report
    from tutorial_lib import plots

    shown = []
    monkeypatch.setattr(plots, "show", lambda fig, alt: shown.append(fig))
    pictures = 0
    for wrong in question.wrong:
        for seed in (1,):
            outcomes = collect(wrong.answer, [case.args for case in question.cases(seed)])
            if (found := judge(question, seed, outcomes)).picture:
                report.draw(question, found)
                pictures += 1
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    plots.Picture(shown[-1], "Two heat maps, or two lines: target beside an answer.")
                plain = [ax for ax in shown[-1].axes if ax.get_label() != "<colorbar>"]
                assert all(ax.get_xlabel() and ax.get_ylabel() for ax in plain)
        if pictures:
            return
    pytest.fail("no mistake has a picture")


def test_yarn_is_drawn_as_the_ratio_to_the_frequencies_of_training():
    question = questions.find("yarn_theta")
    picture = next(verdicts("yarn_theta", question.wrong[0].answer)).picture
    s = question.cases(SEEDS[0])[0].args[2]
    assert picture["target"].max() == pytest.approx(1, abs=1e-5)
    assert picture["target"].min() == pytest.approx(1 / s, rel=1e-4)
    assert picture["axes"] == ["pair t", "θ′/θ"]
