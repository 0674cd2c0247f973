"""The playground's engine: the library's numbers and gradients, the same bits everywhere, tasks, formulas."""

import functools
import hashlib
import json
import math
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from course import experiments, playground
from course.experiments import RESULTS
from course.experiments import playground as playground_lanes
from tutorial_lib import encodings
from tutorial_lib.attention import attention
from tutorial_lib.explorers import live
from tutorial_lib.language import speaking
from workshop import front, translation

V, D, B, FF = 9, 24, 5, 48
POISON = """for (const name of ["exp", "log", "log2", "pow", "sin", "cos", "hypot", "tanh"])
    Math[name] = () => { throw Error(name); };
"""
TESTS = Path(__file__).with_name("playground.js").read_text(encoding="utf-8")


@functools.cache
def asking(name, before=""):
    """The function ``name`` of playground.js."""
    return front.answering(script(name, before), f"the engine's {name}")


def script(name, before=""):
    return f"{before}(() => {{ {playground.engine()}\nreturn ({TESTS})(engine()).{name}; }})()"


# ---- the same model of the library's parts ----
class OwnBias(encodings.RelativeBias):
    """The formula that a lane of its own begins with."""

    def __init__(self, n_heads):
        super().__init__()
        self.n_heads = n_heads

    def of(self, r):
        return torch.stack([-r.abs() / 2.0**h for h in range(1, self.n_heads + 1)]).double()


def encoding(kind, H, causal, length, p):
    """The library's encoding with the engine's parameters, in float64."""
    dh = D // H
    sinusoids = encodings.Sinusoidal(D, base=1000)
    made = {
        "none": lambda: encodings.NoPosition(),
        "sin": lambda: sinusoids,
        "learned": lambda: encodings.Learned(length, D),
        "rope": lambda: encodings.Rotary(dh, base=1000),
        "angle": lambda: encodings.Rotary(dh, base=1000),
        "alibi": lambda: encodings.ALiBi(H, symmetric=True),
        "hybrid": lambda: encodings.Compose(sinusoids, encodings.ALiBi(H, symmetric=True)),
        "offset": lambda: encodings.TableBias(H, length),
        "clipped": lambda: encodings.ClippedBias(H, 8),
        "t5": lambda: encodings.T5Bias(H, bidirectional=not causal, n_buckets=16, max_distance=32),
        "shaw": lambda: encodings.Shaw(dh, 8),
        "bias": lambda: OwnBias(H),
    }[kind]().double()
    for name, own in {
        "learned": {"table": "P"},
        "offset": {"W_r": "T"},
        "clipped": {"b": "T"},
        "t5": {"b": "T"},
        "shaw": {"w_K": "K", "w_V": "W"},
    }.get(kind, {}).items():
        shape = getattr(made, name).shape
        delattr(made, name)
        setattr(made, name, p[own].view(shape))
    return made


def transformer(p, encoding, tokens, *, H, N, V, causal):
    """Logits, and the weights of each layer."""
    (batch, L), ws = tokens.shape, []
    places = torch.arange(L).double() if "embed" in encoding.doors else torch.arange(L)
    x = encoding.embed(p["E"].view(V, D)[tokens], places)
    for layer in range(N):
        h = F.rms_norm(x, (D,), eps=1e-5)
        q, k, v = (h @ p[f"qkv{layer}"].view(D, 3 * D)).view(batch, L, 3, H, D // H).permute(2, 0, 3, 1, 4)
        y, w = attention(
            q,
            k,
            v,
            encoding,
            torch.arange(L),
            torch.arange(L),
            causal=causal,
            backend="eager",
            return_weights=True,
        )
        x, _ = x + y.transpose(1, 2).flatten(-2) @ p[f"o{layer}"].view(D, D), ws.append(w)
        h = F.rms_norm(x, (D,), eps=1e-5)
        x = x + torch.relu(h @ p[f"a{layer}"].view(D, FF) + p[f"ab{layer}"]) @ p[f"b{layer}"].view(FF, D)
    return F.rms_norm(x, (D,), eps=1e-5) @ p["U"].view(D, V), ws


def relative(a, b):
    return ((torch.as_tensor(a, dtype=torch.float64) - b).norm() / b.norm().clamp(min=1e-300)).item()


START = {"L": 16, "ask": 4, "k": 3, "H": 2, "N": 2, "causal": True}
"""What a page begins with, but for the number of steps."""


def kinds():
    return asking("kinds")(None)


KINDS = (
    "none",
    "sin",
    "learned",
    "rope",
    "alibi",
    "offset",
    "t5",
    "clipped",
    "shaw",
    "hybrid",
    "bias",
    "angle",
)
SHAPES = ((16, True, 2, 2), (24, False, 2, 2), (13, True, 3, 3), (10, True, 1, 4))


@functools.cache
def ours(kind, L, causal, N, H):
    return asking("model")({"kind": kind, "L": L, "causal": causal, "N": N, "H": H, "V": V, "B": B})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_and_gradients_are_the_librarys(kind, shape):
    L, causal, N, H = shape
    found = ours(kind, *shape)
    p = {
        name: torch.tensor(values, dtype=torch.float64, requires_grad=True)
        for name, values in found["p"].items()
    }
    tokens, answers = (torch.tensor(found[name]).view(B, L) for name in "XY")
    logits, weights = transformer(p, encoding(kind, H, causal, 40, p), tokens, H=H, N=N, V=V, causal=causal)
    loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=-1)
    loss.backward()
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-10)
    assert relative(found["logits"], logits.detach().flatten()) < 1e-10
    for ours_, theirs in zip(found["w"], weights, strict=True):
        assert relative(ours_, theirs.detach().flatten()) < 1e-10
    for name, gradient in found["g"].items():
        assert relative(gradient, p[name].grad.flatten()) < 1e-9, name


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_differences(kind):
    found = ours(kind, *SHAPES[0])
    assert found["told"] == pytest.approx(found["slope"], rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_score_explain_the_weights(kind):
    """Softmax of the explained scores is the row of the map; the pairs of a rotation add up to the score."""
    for told in ours(kind, *SHAPES[0])["parts"]:
        row = torch.tensor(told["scores"], dtype=torch.float64).softmax(0)
        torch.testing.assert_close(row, torch.tensor(told["row"], dtype=torch.float64))
        assert sum(told["parts"].values()) == pytest.approx(told["score"])
        if told.get("pairs"):
            assert sum(pair["score"] for pair in told["pairs"]) == pytest.approx(told["parts"]["content"])


def test_a_share_of_the_pairs_turns_as_in_the_library():
    """p-RoPE: those with the highest frequencies."""
    for share in (0, 0.25, 0.7, 1):
        theta = encodings.Frequencies(D, base=1000, p=share).theta()
        torch.testing.assert_close(torch.tensor(asking("share")(share), dtype=torch.float64), theta)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_run_has_the_same_accuracies_in_the_library(kind):
    """The page's texts and parameters, after 40 steps, in the library's model."""
    found = asking("run")({"enc": {"kind": kind}, "steps": 40, "texts": [16, 24, 64]})
    p = {name: torch.tensor(values, dtype=torch.float64) for name, values in found["p"].items()}
    made = encoding(kind, 2, True, 64, p)
    for length, (X, Y) in zip([16, 24, 64], found["sets"], strict=True):
        tokens, answers = torch.tensor(X).view(8, length), torch.tensor(Y).view(8, length)
        logits, _ = transformer(p, made, tokens, H=2, N=2, V=8, causal=True)
        right = (logits.argmax(-1) == answers)[answers >= 0].double().mean().item()
        assert found["acc"][found["at"].index(length)] == pytest.approx(right, abs=1e-12)


# ---- the same bits everywhere ----
def digest(bits):
    return hashlib.sha256(bytes(bits)).hexdigest()[:12]


def bits(config, before=""):
    return digest(asking("run", before)(config)["bits"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_has_the_same_bits_with_and_without_webassembly(kind):
    config = {"enc": {"kind": kind}, "steps": 12, "seed": 3}
    assert bits(config) == bits(config | {"wasm": False})


BITS = {
    "rope": "b8b8e4f1781c",
    "offset": "4729378c0515",
    "shaw": "a318f4d8952d",
    "bias": "81bb8c7a8e75",
    "text": "cabe93d88fc7",
}
"""Of the parameters after 12 steps, on every machine and in every browser: a link shows the same run."""


def twelve(kind):
    own = {"text": "the cat sat on the mat. " * 9, "task": "text", "enc": {"kind": "alibi"}}
    return {"steps": 12, "seed": 7} | (own if kind == "text" else {"enc": {"kind": kind}})


@pytest.mark.parametrize("kind", BITS)
def test_a_run_has_the_same_bits_on_every_machine(kind):
    """Without ``Math.exp`` and the like, which browsers compute differently."""
    assert bits(twelve(kind), POISON) == BITS[kind]


@pytest.mark.parametrize("kind", ["rope", "shaw", "text"])  # a rotation, vectors, a bias
def test_a_run_has_the_same_bits_in_another_engine(kind):
    """QuickJS: an interpreter, without WebAssembly, of other people than V8's. Slow, so few kinds and steps:
    the second step and the third read what Adam kept."""
    quickjs = pytest.importorskip("quickjs")
    answer = quickjs.Context().eval(
        f"const run = {script('run')}; asked => JSON.stringify(run(JSON.parse(asked)).bits)"
    )
    config = twelve(kind) | {"steps": 3}
    assert digest(json.loads(answer(json.dumps(config)))) == bits(config, POISON)


def test_another_seed_is_another_run_and_lanes_begin_alike():
    start = {"steps": 0, "seed": 3}
    none, learned, other = (
        asking("run")(start | more)["p"]
        for more in (
            {"enc": {"kind": "none"}},
            {"enc": {"kind": "learned"}},
            {"enc": {"kind": "none"}, "seed": 4},
        )
    )
    assert all(learned[name] == values for name, values in none.items())
    assert other["E"] != none["E"]


# ---- tasks ----
def drawn(task, L=12, **options):
    X, Y = asking("draw")({"task": task, "L": L, **options})
    return [(X[i : i + L], Y[i : i + L]) for i in range(0, 6 * L, L)]


def latest(x, i):
    return next((token for token in x[i::-1] if token), -1)


ANSWERS = {
    "back": lambda x, i: x[i - 3] if i >= 3 else -1,
    "first": lambda x, i: x[0],
    "nonzero": lambda x, i: -1 if x[i] else latest(x, i),
    "count": lambda x, i: x[: i + 1].count(0),
    "before": lambda x, i: -1 if i < max(x.index(0), x.index(1)) else int(x.index(0) > x.index(1)),
}


@pytest.mark.parametrize("task", ANSWERS)
def test_the_answers_of_a_task(task):
    texts = drawn(task)
    assert len({tuple(x) for x, _ in texts}) == 6
    for x, y in texts:
        assert y == [ANSWERS[task](x, i) for i in range(12)] and max(x) < 8


LISTS = {"copy": lambda items: items, "reverse": lambda items: items[::-1], "sort": sorted}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("task", LISTS)
def test_the_answer_to_a_list(task, causal):
    """A causal model sees what it has said so far, another one blanks: the answer is never in sight."""
    for x, y in drawn(task, causal=causal):
        items = x[:6]
        assert max(items) < 8 and x[6] == 8 and y == [-1] * 6 + LISTS[task](items)
        assert x[7:] == (LISTS[task](items)[:-1] if causal else [9] * 5)
    lengths = {x.index(8) for x, _ in drawn(task, L=24, training=True)}
    assert len(lengths) == 1, "the lists of a batch are of one length"


def test_a_text_is_asked_where_it_was_not_trained():
    ids = [*range(10)] * 8 + [*range(20, 30)] * 2
    for training, allowed in ((True, set(range(10))), (False, set(range(20, 30)))):
        for x, y in drawn("text", ids=ids, test=not training):
            assert set(x) | set(y) <= allowed and x[1:] == y[:-1]


# ---- formulas ----
def value(text, **names):
    return asking("formula")({"text": text, "names": [*names], "values": [*names.values()]})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("-abs(r) / 2^h", -1.5),
        ("−r^2", -9),
        ("(-r)^2", 9),
        ("-2^2^3", -256),
        ("2^-h", 0.5),
        ("2**0.5", math.sqrt(2)),
        ("r < -2 ? 1 : 0", 1),
        ("r == -3 && h != 2", 1),
        ("min(r, h, 9) + max(1, 2) × 3", 3),
        ("log(1 + abs(r)) - exp(1) + e", math.log(4)),
        ("sin(π / 6) + cos(0)", 1.5),
        ("-7 % 4", 1),
        ("1e-3 * 2", 0.002),
    ],
)
def test_a_formula_is_read_as_in_mathematics(text, result):
    assert value(text, r=-3, h=1) == pytest.approx(result, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("abs(r", [5, "sign", ""]),
        ("r + ", [4, "sign", ""]),
        ("r + q", [4, "name", "q"]),
        ("2 * tan(r)", [4, "function", "tan"]),
        ("sin(r, 2)", [0, "function", "sin"]),
        ("constructor(1)", [0, "function", "constructor"]),
        ("r.constructor", [0, "sign", ""]),
        ("'a'", [0, "sign", ""]),
        ("toString", [0, "name", "toString"]),
    ],
)
def test_a_formula_that_cannot_be_read_says_where(text, fault):
    assert value(text, r=-3) == fault


@pytest.mark.parametrize(
    ("enc", "fault"),
    [
        ({"kind": "bias", "formula": "1 / r"}, [0, "value", "r = 0, i = 0, j = 0, h = 1"]),
        ({"kind": "bias", "formula": "log(j - 4)"}, [0, "value", "r = 0, i = 0, j = 0, h = 1"]),
        ({"kind": "angle", "formula": "1 / (t - 1)"}, [0, "value", "t = 1"]),
        ({"kind": "angle", "formula": "1 / 2^t"}, "read"),
        ({"kind": "bias", "formula": "i == 0 ? 5 : r/h/H"}, "read"),
    ],
)
def test_a_formula_must_give_numbers(enc, fault):
    assert asking("formula")({"enc": enc}) == fault


# ---- the page, and the widget ----
def test_every_text_of_the_page_is_a_message():
    known = {text for text, *_more in translation.messages(translation.EXPLORERS)}
    source = re.sub(
        r"^\s*(//|/?\*).*", "", (playground.HERE / "page.js").read_text(encoding="utf-8"), flags=re.M
    )
    assert source.count("speak`") == len(live.said(source)) and known.issuperset(playground.messages())


def test_page_and_widget_speak_the_readers_language(tmp_path, monkeypatch):
    texts = {text: f"⟦{text}⟧" for text in (*playground.messages(), "Watch Transformers learn order")}
    translation.compile_texts(texts, tmp_path / "xx")
    monkeypatch.setenv("TUTORIAL_LOCALE", str(tmp_path))
    assert "const words = {};" in playground.page() and '<html lang="en">' in playground.page()
    with speaking("xx"):
        assert '"one more lane":"⟦one more lane⟧"' in playground.page()
        assert 'data-playground="⟦Watch Transformers learn order⟧"' in playground.page()
        assert '"one more lane":"⟦one more lane⟧"' in playground.Playground()._esm


def test_a_page_is_light_and_takes_nothing_from_elsewhere():
    """At most 60 kB without the parser of formulas, whose licence stands beside it."""
    parser = playground.HERE / "vendor" / "jsep.js"
    assert len(playground.page().encode()) - parser.stat().st_size <= 60_000
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|sourceMapping", playground.page())
    assert (
        parser.with_suffix(".LICENSE")
        .read_text(encoding="utf-8")
        .startswith("Copyright (c) 2013 Stephen Oney")
    )


def test_the_page_knows_what_the_record_says_of_many_seeds():
    """The least and the most right answers at four times the length, in the order of its menu."""
    record, said = experiments.load("playground"), playground.seeds()
    assert len(record.seeds) == 20 and record.settings["encodings"] == list(KINDS[:10]) == kinds()[:10]
    assert (record.settings["steps"], playground_lanes.SIZES) == (400, START)
    for task in record.settings["tasks"]:
        for n, kind in enumerate(record.settings["encodings"]):
            far = [100 * right[-1] for right in record.values(kind, task=task)]
            assert said[task][2 * n : 2 * n + 2] == [round(min(far)), round(max(far))]


def test_its_guide_quotes_the_record():
    guide = (RESULTS.parent / "docs" / "playground.md").read_text(encoding="utf-8")
    names = {name: kind for kind, name in playground_lanes.ENCODINGS.items()}
    lines, seen = re.findall(r"^\| (\S.*) \| (\d+)(?: to (\d+))? % \|$", guide, re.M), playground.seeds()

    def ends(task, kind):
        return seen[task][2 * KINDS.index(kind) :][:2]

    quoted = [
        (names[name], int(low), int(high or low)) for some, low, high in lines for name in some.split(", ")
    ]
    assert {kind for kind, *_ in quoted} == {*KINDS[:9]}
    assert all(ends("back", kind) == [low, high] for kind, low, high in quoted)
    low, high = ends("first", "rope")
    assert f"anywhere from {low} to {high} %" in guide and ends("first", "none") == [100, 100]


def test_a_stored_widget_says_what_it_is():
    """And what brings it to life on the site; its picture takes the place of these words."""
    data, metadata = playground.Playground("lane=rope,base:10", small=True)._repr_mimebundle_()
    assert "A browser runs this" in data["text/html"]
    assert metadata["live"] == {
        "name": "playground",
        "params": {"settings": "lane=rope,base:10", "small": True},
    }
    place = playground.place(**metadata["live"], inside="<img>")
    assert place == '<div data-playground class="pg-small" data-settings="lane=rope,base:10"><img></div>'
    one = "rotary", {"m": 3}, "<img>"
    assert playground.place(*one, small=True) == live.place(*one, small=True), "explorers are placed, too"
