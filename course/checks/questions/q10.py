"""Exercise 10: what models do now."""

from __future__ import annotations

import math

import torch

from tutorial_lib.language import _

from ..question import Case, Draw, Question, Variant, Wrong

GATES = 'deeper/10_nope, section "Positions that depend on the text"'
TEMPERATURE = 'deeper/10_nope, section "The crowd grows"'
BASES = '10, section "Read a config you have never seen"'
AXES = 'deeper/10_pictures, section "A picture in a sentence"'
MODELS = '10, section "What is in the box"'


# ---- forget_bias ----
def _forget_bias_cases(draw: Draw) -> list[Case]:
    def gates(heads, keys, low, high, dtype=torch.float32):
        return draw.uniform(heads, keys, low=low, high=high, dtype=dtype)

    whole, cached, part, long = (draw.integer(*span) for span in ((5, 7), (8, 11), (12, 14), (60, 70)))
    few = draw.integer(2, 4)
    soon = gates(4, long, 0.002, 0.1)
    soon[:, [7, long - 4, long - 2]] = 10 ** draw.uniform(4, 3, low=-12, high=-9)  # a softmax sees these, too
    return [
        Case((gates(3, whole, 0.1, 0.95), whole), _("{n} tokens at once").format(n=whole)),
        Case((gates(2, cached, 0.3, 0.99), 1), _("one query and {n} keys in a cache").format(n=cached)),
        Case(
            (gates(5, part, 0.2, 0.9, torch.float64), few),
            _("float64, the last {few} of {n} tokens").format(few=few, n=part),
        ),
        Case((soon, few + 3), _("{n} keys that are soon forgotten").format(n=long)),
    ]


def _table(rows, queries, keys, hidden=lambda r: r > 0, fill=-math.inf, start=None):
    """``rows(i, j)`` for every query and key, where the key is not hidden."""
    start = keys - queries if start is None else start
    i, j = torch.arange(start, start + queries)[:, None], torch.arange(keys)[None]
    return rows(i, j).masked_fill(hidden(j - i), fill)


def _forget_bias(gates, queries):
    total = gates.double().log().cumsum(-1)  # a long sum loses digits in the dtype of the gates
    decay = total[:, -queries:, None] - total[:, None, :]
    ahead = torch.ones(decay.shape, dtype=torch.bool).triu(gates.shape[1] - queries + 1)
    return decay.masked_fill(ahead, -math.inf).to(gates.dtype)


def _forget(gates, queries, *, of=torch.log, sign=1, own_of_key=False, **more):
    """forget_bias with one thing or another done differently."""
    before = torch.cat([torch.zeros_like(gates[:, :1]), of(gates).cumsum(-1)], -1)  # Σ of all before n

    def rows(i, j):
        return sign * (before[:, i + 1] - before[:, j + (not own_of_key)])

    return _table(rows, queries, gates.shape[1], **more)


def _forgetting(**options):
    return lambda *args: _forget(*args, **options)


def _nothing_hidden(r):
    return torch.zeros_like(r, dtype=torch.bool)


def _quotient_of_products(gates, queries):
    product = gates.cumprod(-1)
    return _table(lambda i, j: (product[:, i] / product[:, j]).log(), queries, gates.shape[1])


def _product_added(gates, queries):
    return _forget(gates, queries).exp().masked_fill(_forget(gates, queries).isinf(), -math.inf)


def _one_gate_for_all(gate):
    """ALiBi with the slope of one gate: that of the query, of the key, or the mean."""

    def answer(gates, queries):
        logs = gates.log()
        return _table(lambda i, j: gate(logs, i, j) * (i - j), queries, gates.shape[1])

    return answer


def _forget_loop(gates, queries):
    heads, keys = gates.shape
    out = torch.full((heads, queries, keys), -math.inf, dtype=gates.dtype)
    for n in range(queries):
        i = keys - queries + n
        for j in range(i + 1):
            out[:, n, j] = gates[:, j + 1 : i + 1].log().sum(-1)
    return out


def _row_without_constant(bias, case):
    return bias - bias.amax(-1, keepdim=True)


FORGET_BIAS = Question(
    name="forget_bias",
    exercise="10",
    title="The bias that the forget gates of a text add to the scores.",
    returns="a tensor of shape [H, Lq, Lk], of the dtype of the gates, with −inf where a key is hidden",
    section=GATES,
    draw=_forget_bias_cases,
    reference=_forget_bias,
    same=_row_without_constant,
    equivalent="Your bias differs by a constant per query at most, and hides the same keys. A softmax over "
    "the keys does not see such a constant: not even whether the query's own gate counts.",
    picture="heat",
    wrong=(
        Wrong(
            "sign turned",
            _forgetting(sign=-1),
            "The bias grows with what lies between: the more was to be forgotten, the more a key is "
            "rewarded. A gate below 1 has to lower the score of everything before it.",
        ),
        Wrong(
            "the key's own gate counts",
            _forgetting(own_of_key=True),
            "The gate of the key itself takes part. A token's gate says what is kept of the past *before* "
            "it; it does not weaken the token's own key.",
        ),
        Wrong(
            "gates, not their logarithms",
            _forgetting(of=lambda f: f),
            "You sum up the gates themselves. Several gates in a row are a product; what turns a product "
            "into a sum, and a factor on a weight into a term of its score?",
        ),
        Wrong(
            "what is forgotten, summed up",
            _forgetting(of=lambda f: f - 1),
            "You subtract 1 − f for each gate. That is close for gates near 1 only: a gate of 0.01 should "
            "shut almost everything out, and here it costs less than 1.",
        ),
        Wrong(
            "the product is added",
            _product_added,
            "The product of the gates is added to the score as it is, a number between 0 and 1. It is "
            "meant as a factor on the weight; in a score it has to stand as a logarithm.",
        ),
        *[
            Wrong(
                f"logarithm to the base {base}",
                _forgetting(of=log),
                f"These are logarithms to the base {base}. The softmax takes powers of e, so the decay is "
                "weaker or stronger than the gates say.",
            )
            for base, log in ((2, torch.log2), (10, torch.log10))
        ],
        Wrong(
            "a quotient of products",
            _quotient_of_products,
            "For short texts this is right. In a long one the product of all gates so far falls below the "
            "smallest number of the dtype, and its logarithm is −inf: NaN comes out. Stay with "
            "logarithms all the way.",
        ),
        Wrong(
            "rows counted from 0",
            _forgetting(start=0),
            "Row 0 is taken for the first token. The queries are the last ones: with a cache, a single "
            "query stands at the end of the keys.",
        ),
        Wrong(
            "future not hidden",
            _forgetting(hidden=_nothing_hidden),
            "Keys after the query get a positive bias. A decoder may not see them at all.",
        ),
        Wrong(
            "hidden keys get 0",
            _forgetting(fill=0.0),
            "Keys after the query get the bias 0, as if nothing had been forgotten. After the softmax, "
            "hidden keys should have the weight 0.",
        ),
        *[
            Wrong(
                f"hidden keys get {fill:g}",
                _forgetting(fill=fill),
                "Keys after the query get a low number. Gates close to 0 push keys of the past down as far, "
                "so a number does not hide a key for good: asked for is −inf.",
            )
            for fill in (-100.0, -1e4, -1e9)
        ],
        *[
            Wrong(
                f"gates kept above {least:g}",
                _forgetting(of=lambda f, least=least: f.clamp(min=least).log()),
                "Gates close to 0 are raised before their logarithm is taken. A gate of 0.000001 is meant to "
                "forget nearly everything; it is above 0, so its logarithm is finite.",
            )
            for least in (1e-4, 1e-6, 1e-8)
        ],
        *[
            Wrong(
                f"{more:g} added to the gates",
                _forgetting(of=lambda f, more=more: (f + more).log()),
                "Something is added to the gates before their logarithm is taken. A gate is above 0, so its "
                "logarithm is finite; near 0 the addition is larger than the gate itself.",
            )
            for more in (1e-7, 1e-8)
        ],
        Wrong(
            "logarithm of one plus the gate",
            _forgetting(of=torch.log1p),
            "You take the logarithm of 1 + f. It is positive, so keys behind gates gain instead of losing.",
        ),
        Wrong(
            "summed over the heads",
            lambda gates, queries: _table(
                lambda i, j: gates.log().cumsum(0)[:, i] - gates.log().cumsum(0)[:, j],
                queries,
                gates.shape[1],
            ),
            "The sum runs over the heads. What lies between two tokens are the gates of the tokens: sum "
            "along the last axis.",
        ),
        Wrong(
            "own key hidden",
            _forgetting(hidden=lambda r: r >= 0),
            "A query does not see its own key. The first query of a text then sees nothing at all.",
        ),
        Wrong(
            "all gates are the query's",
            _one_gate_for_all(lambda logs, i, j: logs[:, i]),
            "You take the query's gate for every step back. Each token in between has a gate of its own.",
        ),
        Wrong(
            "all gates are the key's",
            _one_gate_for_all(lambda logs, i, j: logs[:, j]),
            "You take the key's gate for every step. Each token in between has a gate of its own, and the "
            "key's is not even among them.",
        ),
        Wrong(
            "the mean gate: ALiBi",
            _one_gate_for_all(lambda logs, i, j: logs.mean(-1)[:, None, None]),
            "All gates of a head are averaged, so the bias depends on the distance alone. That is ALiBi "
            "with a slope from this text; which words stand in between no longer matters.",
        ),
        Wrong(
            "only the query's gate",
            lambda gates, queries: _table(lambda i, j: gates.log()[:, i] * (j < i), queries, gates.shape[1]),
            "Every key loses what the query's own gate says, and nothing in between counts. For the keys "
            "behind it this is a constant.",
        ),
        Wrong(
            "heads averaged",
            lambda gates, queries: _forget_bias(gates.mean(0, keepdim=True), queries).repeat(
                len(gates), 1, 1
            ),
            "All heads have the same bias. Each head has gates of its own.",
        ),
        Wrong(
            "softmax already taken",
            lambda gates, queries: _forget_bias(gates, queries).softmax(-1),
            "These are weights, not a bias: each row sums to 1. The softmax comes later, after the bias "
            "was added to the scores.",
        ),
        Wrong(
            "heads on the last axis",
            lambda gates, queries: _forget_bias(gates, queries).permute(1, 2, 0),
            "The heads stand on the last axis. Scores have the shape [H, Lq, Lk], so the bias has to have "
            "the heads in front.",
        ),
        Wrong(
            "what is forgotten",
            _forgetting(of=lambda gates: (1 - gates).log()),
            "You take the logarithm of 1 − f, the part that is forgotten. A gate says how much is *kept*.",
        ),
    ),
    variants=(
        Variant(
            "minus the sum up to the key",
            lambda gates, queries: _table(
                lambda i, j: -gates.log().cumsum(-1)[:, j].expand(-1, len(i), -1), queries, gates.shape[1]
            ),
            "What all keys of a query have in common drops out, so the sum up to the key is enough.",
        ),
        Variant("a loop", _forget_loop, "A loop over pairs is slow and right."),
        Variant(
            "without the query's gate",
            lambda gates, queries: _forget_bias(gates, queries) - gates.log()[:, -queries:, None],
            "The query's own gate is a constant of its row.",
        ),
    ),
    hints=(
        "Write down the row of one query by hand: which gates stand between it and the key one, two, three "
        "steps back?",
        "Sums over a stretch are differences of two running sums. Which two, for the stretch from the token "
        "after the key up to the query?",
        "A cumulative sum of logarithms has one number for each token. Take it at the last Lq tokens as a "
        "column, at all of them as a row, and hide what lies ahead.",
    ),
)


# ---- tempered_queries ----
def _tempered_queries_cases(draw: Draw) -> list[Case]:
    def config(rope, floor_scale, tuning, before):
        """Its ``no_rope_layers`` are irregular: ``rope`` at the layer in question, ``before`` before it."""
        layers = [draw.integer(0, 1) for _each in range(draw.integer(5, 9))]
        layer = draw.integer(1, len(layers) - 2)
        layers[layer], layers[layer - 1] = rope, before
        return layer, {
            "no_rope_layers": layers,
            "attn_temperature_tuning": tuning,
            "floor_scale": floor_scale,
            "attn_scale": draw.number(0.1, 0.9),
        }

    def case(
        what, batch, heads, length, dim, rope, step, first, tuning=True, dtype=torch.float32, before=None
    ):
        before = 1 - rope if before is None else before
        positions = torch.stack([torch.arange(length) + first + row * (step + 1) for row in range(batch)])
        q = 1 + 2 * draw.uniform(batch, heads, length, dim, dtype=dtype)
        return Case((q, positions, *config(rope, step, tuning, before)), what)

    step = draw.integer(3, 5)
    odd = 1001 + 2 * draw.integer(0, 9)  # the first step comes at a position that 16 bits can't hold
    return [
        case(_("a layer without RoPE, from the first token on"), 1, 2, 4 * step + 1, 4, 0, step, 0),
        case(_("a layer with RoPE"), 2, 3, 9, 6, 1, step + 1, draw.integer(20, 40)),
        case(_("a layer without RoPE in a model that is not tuned"), 2, 1, 7, 8, 0, 2, 30, tuning=False),
        case(
            _("rows at different places"), 3, 4, 5 * step, 2, 0, 2 * step - 1, draw.integer(10, 90), before=0
        ),
        case(
            _("bfloat16, far into a text"),
            2,
            2,
            40,
            8,
            0,
            odd,
            odd - 20,
            dtype=torch.bfloat16,
        ),
    ]


def _tempered(
    q,
    positions,
    layer,
    config,
    *,
    named=False,
    tuning=True,
    late=1,
    whole=torch.floor,
    log=torch.log,
    one=1.0,
    inside=1.0,
    places=lambda p: p,
    inverse=False,
    pattern=False,
):
    """tempered_queries in parts, each of which can be replaced."""
    has_rope = config["no_rope_layers"][layer] == (0 if named else 1)
    has_rope = (layer + 1) % 4 != 0 if pattern else has_rope
    if has_rope or tuning and not config["attn_temperature_tuning"]:
        return q.clone()
    steps = whole((places(positions).double() + late) / config["floor_scale"])
    factor = one + config["attn_scale"] * log(steps + inside)
    factor = (1 / factor if inverse else factor)[:, None, :, None]
    return (q.double() * factor).to(q.dtype)


def _tempered_queries(q, positions, layer, config):
    return _tempered(q, positions, layer, config)


def _tempering(**options):
    return lambda *args: _tempered(*args, **options)


def _row_0(p):
    return p[:1].expand_as(p)


def _as_it_was_given(*args):
    return _tempered(*args, named=True, late=0, places=_row_0)


def _changes_q(q, positions, layer, config):
    q.copy_(_tempered(q, positions, layer, config))
    return q


def _all_in_bfloat16(q, positions, layer, config):
    if config["no_rope_layers"][layer] or not config["attn_temperature_tuning"]:
        return q
    steps = ((positions.bfloat16() + 1) / config["floor_scale"]).floor()
    factor = 1 + config["attn_scale"] * torch.log(1 + steps)
    return (q * factor[:, None, :, None]).to(q.dtype)


def _by_rows(q, positions, layer, config):
    if config["no_rope_layers"][layer] or not config["attn_temperature_tuning"]:
        return q
    out = torch.empty_like(q)
    for b, row in enumerate(positions.tolist()):
        for n, p in enumerate(row):
            step = (p + 1) // config["floor_scale"]
            out[b, :, n] = (q[b, :, n].float() * (1 + config["attn_scale"] * math.log1p(step))).to(q.dtype)
    return out


TEMPERED_QUERIES = Question(
    name="tempered_queries",
    exercise="10",
    title="The queries of a layer of Llama 4, with its temperature.",
    returns="a tensor of the shape and dtype of q, [B, H, L, d]",
    section=TEMPERATURE,
    draw=_tempered_queries_cases,
    reference=_tempered_queries,
    picture="lines",
    axes=("query", "first channel"),
    drawn=lambda value, case: value[0, :, :, 0].float() if value.ndim == 4 else value.float(),
    wrong=(
        Wrong(
            "as it was given",
            _as_it_was_given,
            "All of its mistakes are still there. Compare three things with the text: which layers are "
            "changed, at which position the first step comes, and what a batch does whose rows stand at "
            "different places.",
        ),
        Wrong(
            "the flag read by its name",
            _tempering(named=True),
            "The wrong layers are changed. `no_rope_layers` holds 1 for a layer that *has* RoPE, "
            "whatever its name says; read the modelling file, not the name.",
        ),
        Wrong(
            "layers counted from 1",
            lambda q, p, layer, c: _tempered(q, p, layer - 1, c),
            "You read the entry of the layer before. Layers are counted from 0, as lists are.",
        ),
        Wrong(
            "a position late",
            _tempering(late=0),
            "Each step comes one position too late. Position p is the (p + 1)-th token, and tokens are "
            "what is counted.",
        ),
        Wrong(
            "positions of the first row for all",
            _tempering(places=_row_0),
            "Every row gets the factors of row 0. Rows of a batch may stand at different places of their "
            "texts.",
        ),
        Wrong(
            "place in the tensor",
            _tempering(places=lambda p: torch.arange(p.shape[1]).expand_as(p)),
            "You count the tokens of the call. After a cache the first of them is not the first of the "
            "text: use the positions.",
        ),
        Wrong(
            "positions in 16 bits",
            _tempering(places=lambda p: p.bfloat16()),
            "Positions pass through 16 bits, perhaps because they take the dtype of q. Far out, such numbers "
            "can't tell neighbours apart, so a step comes too early or too late.",
        ),
        Wrong(
            "no steps",
            _tempering(whole=lambda x: x),
            "The factor grows with every token. Here it stays the same for `floor_scale` tokens, and "
            "nothing changes in texts that are shorter than that.",
        ),
        Wrong(
            "rounded up",
            _tempering(whole=torch.ceil),
            "The steps are rounded up: even the first tokens are changed.",
        ),
        Wrong(
            "rounded to the nearest",
            _tempering(whole=torch.round),
            "The steps are rounded to the nearest whole number, so the first of them comes after half of "
            "`floor_scale`.",
        ),
        Wrong(
            "logarithm of the step alone",
            _tempering(inside=0.0, whole=lambda x: x.floor().clamp(min=1)),
            "The logarithm lacks its + 1: the second step has a factor of 1 still, and every later one "
            "is too small.",
        ),
        Wrong(
            "the factor lacks its 1",
            _tempering(one=0.0),
            "The factor is the logarithm alone. In a short text it is then 0, and a query of zeros looks "
            "everywhere alike.",
        ),
        *[
            Wrong(
                f"logarithm to the base {base}",
                _tempering(log=log),
                f"This is a logarithm to the base {base}; the formula has the natural one.",
            )
            for base, log in ((2, torch.log2), (10, torch.log10))
        ],
        Wrong(
            "divided, not multiplied",
            _tempering(inverse=True),
            "The queries become smaller with the position: that flattens the softmax of a long text even "
            "more. A low temperature is a *large* factor on the scores.",
        ),
        Wrong(
            "every fourth layer, by the pattern",
            _tempering(pattern=True),
            "You decide by the number of the layer. That is the default; the configuration lists the "
            "layers one by one, and another model may have another list.",
        ),
        Wrong(
            "switch ignored",
            _tempering(tuning=False),
            "The factor is there although `attn_temperature_tuning` is off.",
        ),
        Wrong(
            "the input is changed",
            _changes_q,
            "The numbers are right, but `q` itself is overwritten: whoever calls this loses what they had.",
        ),
        Wrong(
            "logarithm of zero",
            _tempering(inside=0.0),
            "The logarithm lacks its + 1: in the first step it is that of 0, and the queries become "
            "infinite.",
        ),
        Wrong(
            "all in bfloat16",
            _all_in_bfloat16,
            "Positions pass through 16 bits, perhaps because they take the dtype of q. Far out, such numbers "
            "can't tell neighbours apart, so a step comes too early or too late.",
        ),
    ),
    variants=(
        Variant("one query at a time", _by_rows, "A loop over queries is slow and right."),
        Variant(
            "integers and log1p",
            lambda q, p, layer, c: (
                q
                if c["no_rope_layers"][layer] or not c["attn_temperature_tuning"]
                else (
                    q.float()
                    * (
                        torch.log1p((p + 1).div(c["floor_scale"], rounding_mode="floor").float())
                        * c["attn_scale"]
                        + 1
                    )[:, None, :, None]
                ).to(q.dtype)
            ),
            "Dividing whole numbers and rounding down is the floor.",
        ),
    ),
    hints=(
        "There are three mistakes. Take a text of a few tokens and a `floor_scale` of 4, and write down the "
        "factor of each token by hand.",
        "One mistake is in the condition, one in the number that is divided, one in the shape: a batch has a "
        "row of positions for each of its rows.",
        "The factor has the shape [B, L] and meets [B, H, L, d]: it needs an axis of size 1 for the heads "
        "and one for the channels. And remember which token stands at position 0.",
    ),
)


# ---- layer_dials ----
KINDS = ("sliding_attention", "full_attention")


def _layer_dials_cases(draw: Draw) -> list[Case]:
    def rope(base, share=None, kind="default"):
        return {"rope_type": kind, "rope_theta": base} | (
            {} if share is None else {"partial_rotary_factor": share}
        )

    def config(layers, near, far, *, listed=False, first_full=False):
        pattern = draw.integer(3, 5)
        found = {
            "num_hidden_layers": layers,
            "head_dim": 16 * draw.integer(3, 9),
            "layer_types": None,
            "sliding_window": draw.choice([128, 512, 1024, 4096]),
            "sliding_window_pattern": pattern,
            "rope_parameters": dict(zip(KINDS, (near, far), strict=True)),
        }
        if listed:
            kinds = [KINDS[draw.integer(0, 1)] for _each in range(layers)]
            kinds[0], kinds[pattern - 1], kinds[-1] = KINDS[1], KINDS[0], KINDS[0]
            found["layer_types"] = kinds
        return found

    # Every share that decides a verdict is there in each draw: 1 / 0.75 is no whole number.
    local, n = draw.choice([10_000.0, 20_000.0]), draw.integer(0, 1)
    wide = draw.choice([1e6, 5e6])
    return [
        Case((config(10 + n, rope(local), rope(wide)),), _("a base for each kind of layer, as in Gemma 3")),
        Case(
            (config(11 + n, rope(local), rope(wide, 0.25, "proportional")),),
            _("p-RoPE in the layers that see everything, as in Gemma 4"),
        ),
        Case(
            (config(12 + n, rope(wide), None),),
            _("no positions in the layers that see everything, as in EXAONE 4"),
        ),
        Case(
            (config(7 + n, rope(local, 0.5), rope(wide, 0.75), listed=True),),
            _("layers in a list, a part of the channels turns"),
        ),
        Case((config(8 + n, None, rope(wide)),), _("no positions in the layers with a window")),
    ]


def _dial(
    config,
    kind,
    *,
    window=lambda full, w: 0 if full else w,
    share=True,
    channels=False,
    of=lambda parameters, kind: parameters[kind],
    width=None,
    wave=None,
    pairs=None,
):
    """One layer of layer_dials; each option turns one thing into a mistake."""
    full = kind == KINDS[1]
    parameters, near = of(config["rope_parameters"], kind), window(full, config["sliding_window"])
    if parameters is None:
        return [near, 0, 0.0]
    part = parameters.get("partial_rotary_factor", 1.0) if share else 1.0
    turning = int(config["head_dim"] * part) // 2
    d = config["head_dim"] if parameters["rope_type"] == "proportional" else 2 * turning
    d = d if width is None else width(config["head_dim"], 2 * turning)
    wave = wave or (lambda b, n, d: 2 * math.pi * b ** (2 * (n - 1) / d))
    return [near, turning * (2 if channels else 1), wave(parameters["rope_theta"], turning, d)]


def _kinds(config, *, full=lambda i, n: (i + 1) % n == 0, listed=True):
    if listed and config["layer_types"] is not None:
        return config["layer_types"]
    return [KINDS[int(full(i, config["sliding_window_pattern"]))] for i in range(config["num_hidden_layers"])]


def _dials(config, *, kinds=None, **options):
    rows = [_dial(config, kind, **options) for kind in (kinds or _kinds)(config)]
    return torch.tensor(rows)


def _layer_dials(config):
    return _dials(config)


def _dialled(**options):
    return lambda config: _dials(config, **options)


def _other_kind(parameters, kind):
    return parameters[KINDS[kind == KINDS[0]]]


def _never_none(parameters, kind):
    return parameters[kind] or parameters[KINDS[0]]


def _shares_rounded(config):
    rounded = {
        kind: rope and rope | {"partial_rotary_factor": 1 / int(1 / rope.get("partial_rotary_factor", 1.0))}
        for kind, rope in config["rope_parameters"].items()
    }
    return config | {"rope_parameters": rounded}


def _by_angles(config):
    rows = []
    for kind in _kinds(config):
        parameters, angles = config["rope_parameters"][kind], []
        if parameters is not None:
            turning = int(config["head_dim"] * parameters.get("partial_rotary_factor", 1.0))
            d = config["head_dim"] if parameters["rope_type"] == "proportional" else turning
            angles = [parameters["rope_theta"] ** (-2 * t / d) for t in range(turning // 2)]
        near = config["sliding_window"] if kind == KINDS[0] else 0
        rows.append((near, len(angles), 2 * math.pi / min(angles) if angles else 0))
    return rows


LAYER_DIALS = Question(
    name="layer_dials",
    exercise="10",
    title="What each layer of a model does with positions, read from its configuration.",
    returns="a table [layers, 3]: window (0: sees everything), pairs that turn, longest wavelength in tokens "
    "(0 if no pair turns)",
    section=BASES,
    draw=_layer_dials_cases,
    reference=_layer_dials,
    tolerance=(5e-6, 1e-6),
    wrong=(
        Wrong(
            "pattern counted from 0",
            _dialled(kinds=lambda c: _kinds(c, full=lambda i, n: i % n == 0)),
            "Your first layer sees everything. With a pattern of 6 the first five layers have a window, "
            "and the sixth sees everything.",
        ),
        Wrong(
            "kinds swapped",
            _dialled(kinds=lambda c: _kinds(c, full=lambda i, n: (i + 1) % n != 0)),
            "Where the pattern decides, windows and layers that see everything have changed places.",
        ),
        Wrong(
            "the list is not read",
            _dialled(kinds=lambda c: _kinds(c, listed=False)),
            "You follow the pattern although `layer_types` lists the layers. The list decides where "
            "there is one.",
        ),
        Wrong(
            "parameters of the other kind",
            _dialled(of=_other_kind),
            "Each kind of layer gets the RoPE of the other kind.",
        ),
        *[
            Wrong(
                f"one base for all, that of {what}",
                _dialled(of=lambda p, kind, n=n: p[KINDS[n]]),
                f"All layers have the RoPE of those {what}. The two kinds have entries of their own: near "
                "by, fast pairs are enough; far away, slow ones are needed.",
            )
            for n, what in ((0, "with a window"), (1, "that see everything"))
        ],
        Wrong(
            "no positions overlooked",
            _dialled(of=_never_none),
            "A kind whose entry is None gets the RoPE of the other kind. None means that these layers do "
            "not turn anything.",
        ),
        Wrong(
            "p-RoPE taken for partial rotation",
            _dialled(width=lambda d, turning: turning),
            'In p-RoPE (`"proportional"`) you spread the wavelengths over the pairs that turn. They keep '
            "the speeds that they have among *all* pairs of the head; the slow ones just stand still.",
        ),
        Wrong(
            "partial rotation taken for p-RoPE",
            _dialled(width=lambda d, turning: d),
            'With `"default"` you count the speeds over the whole head. Partial rotation cuts the head '
            "first: the part that turns is treated as a head of its own.",
        ),
        Wrong(
            "no positions, no window",
            lambda config: _dials(config) * (_dials(config)[:, 1:2] > 0),
            "Where nothing turns you give no window, either. The two are separate: a layer without RoPE may "
            "have a window.",
        ),
        Wrong(
            "a share rounded to one over a whole number",
            lambda config: _dials(_shares_rounded(config)),
            "You divide by 1/share as a whole number. A share of 0.75 then becomes a share of 1.",
        ),
        Wrong(
            "all pairs turn",
            _dialled(share=False),
            "You do not read `partial_rotary_factor`: all pairs turn. It may stand in one kind and not in "
            "the other.",
        ),
        Wrong(
            "channels, not pairs",
            _dialled(channels=True),
            "You count the channels that turn. Two of them make a pair.",
        ),
        Wrong(
            "the window everywhere",
            _dialled(window=lambda full, w: w),
            "You give layers of full attention a window, too. They see everything, so their window is 0.",
        ),
        Wrong(
            "windows swapped",
            _dialled(window=lambda full, w: w if full else 0),
            "The window stands at the layers that see everything, and is missing at the others.",
        ),
        Wrong(
            "the fastest pair",
            _dialled(wave=lambda b, n, d: 2 * math.pi),
            "This is the shortest wavelength. It is the same in every model: the first pair turns by one "
            "radian a token.",
        ),
        Wrong(
            "one pair too far",
            _dialled(wave=lambda b, n, d: 2 * math.pi * b ** (2 * n / d)),
            "Pairs are numbered from 0, so the last of n pairs has the number n − 1. Your wavelength "
            "belongs to a pair that is not there.",
        ),
        Wrong(
            "2π forgotten",
            _dialled(wave=lambda b, n, d: b ** (2 * (n - 1) / d)),
            "This is the way to one radian. A wave is a whole turn.",
        ),
        Wrong(
            "frequency, not wavelength",
            _dialled(wave=lambda b, n, d: b ** (-2 * (n - 1) / d)),
            "This is the angle per token of the slowest pair. Asked for is how many tokens it needs for a "
            "whole turn.",
        ),
        Wrong(
            "half the exponent",
            _dialled(wave=lambda b, n, d: 2 * math.pi * b ** ((n - 1) / d)),
            "The exponent lacks a 2: pair t turns by base^(−2t/d), with d counted in channels.",
        ),
        Wrong(
            "the base itself",
            _dialled(wave=lambda b, n, d: 2 * math.pi * b),
            "You take 2π times the base. No pair is that slow: the last one has the exponent 2(n − 1)/d, "
            "which is below 1.",
        ),
    ),
    variants=(
        Variant(
            "a list of tuples",
            lambda config: [tuple(_dial(config, kind)) for kind in _kinds(config)],
            "A list of rows holds the same numbers.",
        ),
        Variant(
            "by the angles", _by_angles, "2π over the smallest angle per token is the longest wavelength."
        ),
    ),
    hints=(
        "Three questions for each layer, one after the other: which kind is it? Does this kind turn at all, "
        "and how many pairs? How slow is the last of those?",
        "First make a list of kinds, from `layer_types` or from the pattern. Then one function for a kind "
        "gives the three numbers.",
        "Pair t of d channels needs 2π·base^(2t/d) tokens for a turn. What counts as d differs between "
        '`"default"` and `"proportional"`; the last pair that turns has the number n − 1 in both.',
    ),
)


# ---- grid_angles ----
def _grid_angles_cases(draw: Draw) -> list[Case]:
    def places(length, axes):
        """A picture in a text: three numbers that differ wherever they can."""
        start = draw.integer(2, 60)
        at = start + draw.integers(0, 90, length, axes) + torch.arange(axes) * draw.integer(100, 200)
        return 2 * at + 2049 if length == 10 else at  # odd and beyond 2048: 16 bits can't hold them

    base, n = draw.choice([1_000.0, 10_000.0]), draw.integer(2, 4)
    return [
        Case(
            (places(length, len(sections)), sections, base, interleaved),
            what.format(pairs=" + ".join(str(count) for count in sections)),
        )
        for what, length, sections, base, interleaved in (
            (_("chunked, {pairs} pairs"), 6, (n, n + 1, n + 2), base, False),
            (_("interleaved, {pairs} pairs"), 9, (n + 2, n, n), base, True),
            (_("interleaved, {pairs} pairs"), 5, (n + 1, n + 1, n), 500.0, True),
            (_("two axes, interleaved, {pairs} pairs"), 7, (2 * n, n), 50.0, True),
            (_("two axes, chunked, {pairs} pairs"), 8, (n, 2 * n), 100.0, False),
            (_("interleaved, {pairs} pairs"), 4, (n + 4, n + 2, n - 1), base, True),
            (_("far into a text, chunked, {pairs} pairs"), 10, (n, n, n + 1), base, False),
        )
    ]


def _chunked(sections):
    return [axis for axis, count in enumerate(sections) for _each in range(count)]


def _interleaved(sections, rest=0):
    axes = len(sections)
    return [t % axes if t // axes < sections[t % axes] else rest for t in range(sum(sections))]


def _angles(positions, sections, base, interleaved, *, reads=None, theta=None):
    """grid_angles, with another choice of axes or other speeds."""
    axes = (reads or (lambda s, i: _interleaved(s) if i else _chunked(s)))(sections, interleaved)
    pairs = torch.arange(sum(sections), dtype=torch.float64)
    speeds = base ** (-pairs / sum(sections)) if theta is None else theta(sections, base, axes)
    return (positions[:, axes].double() * speeds).float()


def _grid_angles(positions, sections, base, interleaved):
    return _angles(positions, sections, base, interleaved)


def _turned(**options):
    return lambda *args: _angles(*args, **options)


def _own_speeds(sections, base, axes):
    """Each axis begins with the fastest pair again, as in axial RoPE."""
    count = [axes[:t].count(axis) for t, axis in enumerate(axes)]
    return base ** -torch.tensor(
        [n / sections[axis] for n, axis in zip(count, axes, strict=True)], dtype=torch.float64
    )


def _shared_speeds(sections, base, axes):
    """Each axis counts its own pairs, by the speeds of the whole head."""
    count = [axes[:t].count(axis) for t, axis in enumerate(axes)]
    return base ** -(torch.tensor(count, dtype=torch.float64) / sum(sections))


def _dealt(sections):
    """Round by round, one pair to each axis that has some left."""
    left, order = list(sections), []
    while any(left):
        for axis in range(len(left)):
            if left[axis]:
                order.append(axis)
                left[axis] -= 1
    return order


def _strided(sections):
    reads = [0] * sum(sections)
    for axis, count in enumerate(sections[1:], 1):
        reads[axis : count * len(sections) : len(sections)] = [axis] * count
    return reads


GRID_ANGLES = Question(
    name="grid_angles",
    exercise="10",
    title="The angle of each pair of a head, for tokens that stand at several numbers at once.",
    returns="a tensor of angles in radians, [L, pairs]",
    section=AXES,
    draw=_grid_angles_cases,
    reference=_grid_angles,
    tolerance=(1e-4, 1e-5),
    picture="heat",
    wrong=(
        Wrong(
            "chunked in both",
            _turned(reads=lambda s, i: _chunked(s)),
            "The interleaved form is cut into blocks, too. There the axes take turns, from pair to pair.",
        ),
        Wrong(
            "interleaved in both",
            _turned(
                reads=lambda s, i: [t % len(s) if t // len(s) < s[t % len(s)] else 0 for t in range(sum(s))]
            ),
            "The chunked form takes turns, too. There each axis has a block: the first pairs read the "
            "first axis, the next ones the second.",
        ),
        Wrong(
            "the two forms swapped",
            _turned(reads=lambda s, i: _chunked(s) if i else _interleaved(s)),
            "Chunked and interleaved have changed places.",
        ),
        Wrong(
            "turns without an end",
            _turned(reads=lambda s, i: [t % len(s) for t in range(sum(s))] if i else _chunked(s)),
            "The axes take turns up to the last pair. Once an axis has its share it reads no more; what is "
            "left at the end belongs to the first one.",
        ),
        Wrong(
            "the rest to the last axis",
            _turned(reads=lambda s, i: _interleaved(s, len(s) - 1) if i else _chunked(s)),
            "The pairs that are left at the end read the last axis. They belong to the first: that is why "
            "its share is the largest.",
        ),
        Wrong(
            "a finished axis is skipped",
            _turned(reads=lambda s, i: _dealt(s) if i else _chunked(s)),
            "Once an axis has its share you leave it out, so the others come sooner. Its turn stays: that "
            "pair reads axis 0.",
        ),
        Wrong(
            "axes in reverse order",
            _turned(
                reads=lambda s, i: [len(s) - 1 - axis for axis in (_interleaved(s) if i else _chunked(s))]
            ),
            "The axes are read from the last to the first. Positions and sections have the same order.",
        ),
        Wrong(
            "fast pairs for each axis anew",
            _turned(theta=_own_speeds),
            "Every axis begins with the fastest pair and ends with the slowest. That is axial RoPE; here "
            "one list of speeds is shared out, and no speed is there twice.",
        ),
        Wrong(
            "each axis counts its own pairs",
            _turned(theta=_shared_speeds),
            "The speeds are those of the whole head, but each axis starts at the first of them. A pair "
            "keeps its own number t, whatever it reads.",
        ),
        Wrong(
            "half the exponent",
            _turned(
                theta=lambda s, b, axes: b ** (-torch.arange(sum(s), dtype=torch.float64) / (2 * sum(s)))
            ),
            "The speeds fall half as fast as they should. Pair t turns by base^(−2t/d), and d is the "
            "number of *channels*, twice that of the pairs.",
        ),
        Wrong(
            "all axes summed",
            lambda p, s, b, i: _angles(p.sum(-1, keepdim=True).expand_as(p), s, b, i),
            "Each pair is turned by the sum of all numbers. Each pair reads one of them.",
        ),
        Wrong(
            "the first axis alone",
            lambda p, s, b, i: _angles(p[:, :1].expand_as(p), s, b, i),
            "All pairs read the first axis. For words that is right, for they have the same number "
            "everywhere; the patches of a picture then all stand at one place.",
        ),
        Wrong(
            "a power and a product, without brackets",
            _turned(theta=lambda s, b, axes: b**-2 * torch.arange(sum(s)) / (2 * sum(s))),
            "A power binds tighter than a product: without brackets, base ** −2 is taken first, and then "
            "multiplied and divided. The whole exponent needs brackets.",
        ),
        Wrong(
            "the exponent doubled",
            _turned(theta=lambda s, b, axes: b ** (-2 * torch.arange(sum(s), dtype=torch.float64) / sum(s))),
            "The speeds fall twice as fast as they should. Pair t turns by base^(−2t/d), and d is the number "
            "of channels, twice that of the pairs.",
        ),
        *[
            Wrong(
                f"positions in {what}",
                lambda p, s, b, i, dtype=dtype: _angles(p.to(dtype), s, b, i),
                "Positions pass through 16 bits. Far out, such numbers can't tell neighbours apart: keep "
                "positions whole, or in float32.",
            )
            for what, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16))
        ],
        Wrong(
            "growing speeds",
            _turned(theta=lambda s, b, axes: b ** (torch.arange(sum(s), dtype=torch.float64) / sum(s))),
            "The exponent has lost its minus: later pairs turn faster and faster.",
        ),
        Wrong(
            "slowest pair first",
            _turned(
                theta=lambda s, b, axes: (b ** (-torch.arange(sum(s), dtype=torch.float64) / sum(s))).flip(0)
            ),
            "The speeds stand in reverse order: pair 0 should be the fastest one.",
        ),
        Wrong(
            "pairs counted from 1",
            _turned(
                theta=lambda s, b, axes: b ** (-(torch.arange(sum(s), dtype=torch.float64) + 1) / sum(s))
            ),
            "Pairs count from 0, so that the first one turns by one radian for each step.",
        ),
    ),
    variants=(
        Variant(
            "slices with a step, as in the released code",
            lambda p, s, b, i: (
                p[:, _strided(s) if i else _chunked(s)] * b ** (-torch.arange(sum(s)) / sum(s))
            ),
            "All pairs read axis 0 at first; then every other axis takes each n-th pair up to its share.",
        ),
        Variant(
            "all axes first",
            lambda p, s, b, i: torch.einsum(
                "la,tl,at->lt",
                p.double(),
                torch.ones(sum(s), len(p), dtype=torch.float64),
                torch.nn.functional.one_hot(torch.tensor(_interleaved(s) if i else _chunked(s)), len(s)).T
                * b ** (-torch.arange(sum(s), dtype=torch.float64) / sum(s)),
            ),
            "A table of axes and pairs with a single entry for each pair picks the same numbers.",
        ),
    ),
    hints=(
        "Two lists are enough: which axis each pair reads, and how fast each pair turns. The second does not "
        "know of axes at all.",
        "Make the list of axes for both forms by hand first, for sections of (4, 2, 2). Then index the "
        "columns of the positions with it.",
        "In the interleaved form pair t reads axis t mod n as long as that axis has pairs left; how many it "
        "has had by then is t divided by n, rounded down.",
    ),
)


# ---- sink_attention ----
def _sink_attention_cases(draw: Draw) -> list[Case]:
    single, double = torch.float32, torch.float64
    sizes = (
        (_("a text at once"), 2, 4, 4, 6, 6, 8, 0, single, 2, 1),
        (_("a window, grouped heads"), 1, 6, 2, 9, 9, 4, 3, single, 2, 1),
        (_("one new query, a window and a cache"), 3, 2, 1, 1, 10, 6, 4, single, 2, 1),
        (_("large scores"), 2, 6, 3, 3, 8, 16, 5, single, 200, 100),
        (_("float64, 2 new queries"), 1, 8, 2, 2, 7, 10, 0, double, 2, 1),
    )
    cases = []
    for what, batch, heads, kv_heads, queries, keys, dim, window, dtype, size, sink_size in sizes:
        q = size * draw.normal(batch, heads, queries, dim, dtype=dtype)
        k, v = (draw.normal(batch, kv_heads, keys, dim, dtype=dtype) for _each in range(2))
        sinks = sink_size * draw.uniform(heads, low=0.5, high=2.5, dtype=dtype)
        told = (
            _("{what} (Lq = {queries}, Lk = {keys}, window {window})")
            if window
            else _("{what} (Lq = {queries}, Lk = {keys}, window none)")
        )
        cases.append(
            Case((q, k, v, sinks, window), told.format(what=what, queries=queries, keys=keys, window=window))
        )
    return cases


def _sinking(
    q,
    k,
    v,
    sinks,
    window,
    *,
    grouped=torch.Tensor.repeat_interleave,
    scale=None,
    wider=0,
    start=None,
    future=False,
    sink=lambda s, d: s,
    reach=True,
    own=True,
):
    """sink_attention in parts, each of which can be replaced."""
    times, keys = q.shape[1] // k.shape[1], k.shape[2]
    k, v = (
        (grouped(x, times, 1) if grouped is torch.Tensor.repeat_interleave else grouped(x, times))
        for x in (k, v)
    )
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale(q))
    start = keys - q.shape[2] if start is None else start
    back = torch.arange(start, start + q.shape[2])[:, None] - torch.arange(keys)
    hidden = back < (0 if own else 1)
    hidden = torch.zeros_like(hidden) if future else hidden
    hidden = hidden | (back >= window + wider) if window and reach else hidden
    scores = scores.masked_fill(hidden, -math.inf)
    column = sink(sinks, q.shape[-1]).view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1] @ v


def _sink_attention(q, k, v, sinks, window):
    times, ahead = q.shape[1] // k.shape[1], k.shape[2] - q.shape[2]
    k, v = (x.repeat_interleave(times, 1) for x in (k, v))
    back = ahead + torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
    hidden = (back < 0) | (back >= (window or k.shape[2]))
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
    top = torch.maximum(scores.amax(-1, keepdim=True), sinks[:, None, None])
    weights = (scores - top).exp()
    return weights @ v / (weights.sum(-1, keepdim=True) + (sinks[:, None, None] - top).exp())


def _sunk(**options):
    return lambda *args: _sinking(*args, **options)


def _plain_exp(q, k, v, sinks, window, below=lambda total, s: total + s.exp()):
    scores, ours = _masked_scores(q, k, v, window)
    weights = scores.exp()
    return weights @ ours / below(weights.sum(-1, keepdim=True), sinks.view(-1, 1, 1))


def _masked_scores(q, k, v, window):
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    back = (k.shape[2] - q.shape[2] + torch.arange(q.shape[2])[:, None]) - torch.arange(k.shape[2])
    hidden = (back < 0) | (back >= window if window else back < 0)
    return (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -math.inf), v


def _open_at_0(q, k, v, sinks, window):
    scores, ours = _masked_scores(q, k, v, window)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    scores = torch.cat([scores.masked_fill(scores.isinf(), 0), column], -1)
    return scores.softmax(-1)[..., :-1] @ ours


def _stable(q, k, v, sinks, window, below):
    """Weights over a sum that stays finite; ``below`` gives the sum from its parts."""
    scores, ours = _masked_scores(q, k, v, window)
    top = scores.amax(-1, keepdim=True)
    weights = (scores - top).exp()
    return weights @ ours / below(weights.sum(-1, keepdim=True), sinks.view(-1, 1, 1), top)


def _gated(q, k, v, sinks, window):
    plain = _stable(q, k, v, sinks, window, lambda total, s, top: total)
    return plain * (1 - sinks.view(-1, 1, 1).sigmoid())


def _by_sigmoid(q, k, v, sinks, window):
    """The sink takes its share of the whole: a gate that compares it with log Σ exp of the scores."""
    scores, ours = _masked_scores(q, k, v, window)
    return scores.softmax(-1) @ ours * (scores.logsumexp(-1, keepdim=True) - sinks.view(-1, 1, 1)).sigmoid()


def _one_more_key(q, k, v, sinks, window):
    scores, ours = _masked_scores(q, k, v, window)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    ours = torch.cat([torch.zeros_like(ours[:, :, :1]), ours], 2)
    return torch.cat([column, scores], -1).softmax(-1) @ ours


def _first_key_lost(q, k, v, sinks, window):
    scores, ours = _masked_scores(q, k, v, window)
    column = sinks.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
    return torch.cat([column, scores], -1).softmax(-1)[..., :-1] @ ours


SINK_ATTENTION = Question(
    name="sink_attention",
    exercise="10",
    title="Causal attention with a learned sink in each head, a window and grouped heads.",
    returns="a tensor of the shape and dtype of q, [B, H, Lq, d]",
    section=MODELS,
    draw=_sink_attention_cases,
    reference=_sink_attention,
    bonus=True,
    wrong=(
        Wrong(
            "no sink",
            lambda q, k, v, s, w: _stable(q, k, v, s, w, lambda total, s, top: total),
            "The weights of the keys sum to 1, as if there were no sink. If you did put it in, take its "
            "column out only *after* the softmax, and do not divide by the sum once more.",
        ),
        Wrong(
            "the sink is scaled",
            _sunk(sink=lambda s, d: s / d**0.5),
            "The sink is divided by √d. It is a score already, learned as it is; only products of queries "
            "and keys are scaled.",
        ),
        Wrong(
            "the sink beside shifted scores",
            lambda q, k, v, s, w: _stable(q, k, v, s, w, lambda total, s, top: total + s.exp()),
            "The largest score was subtracted from the keys' scores, but not from the sink. Both have to be "
            "shifted by the same number, or their shares change.",
        ),
        Wrong(
            "the sign of the sink",
            _sunk(sink=lambda s, d: -s),
            "The sink's score has the wrong sign: the heads that should rest most rest least.",
        ),
        Wrong(
            "the exponential of the sink as a score",
            _sunk(sink=lambda s, d: s.exp()),
            "You put exp(sink) beside the scores. It is a score like the others: the softmax takes the "
            "exponential.",
        ),
        Wrong(
            "the sink's place taken from the keys",
            _first_key_lost,
            "The column of the sink stands in front, and the last one is cut off: the weights belong to the "
            "wrong keys.",
        ),
        Wrong(
            "own key hidden",
            lambda q, k, v, s, w: _sinking(q, k, v, s, w, own=False),
            "A query does not see its own key.",
        ),
        Wrong(
            "a sink of 0 for all",
            _sunk(sink=lambda s, d: 0 * s),
            "You add 1 to the sum below: that is a sink with the score 0 in every head. Here each head has "
            "learned its own.",
        ),
        Wrong(
            "the sink is no exponent",
            lambda q, k, v, s, w: _stable(q, k, v, s, w, lambda total, s, top: total + s * (-top).exp()),
            "The sink is added to the sum as it is. It is a *score*: what stands in the sum is its "
            "exponential.",
        ),
        Wrong(
            "the sink's share is fixed",
            _gated,
            "The output is multiplied by a number that does not depend on the scores. A sink competes with "
            "the keys: beside a key that fits well it takes next to nothing.",
        ),
        Wrong(
            "one sink for all heads",
            _sunk(sink=lambda s, d: s.mean().expand_as(s)),
            "All heads have the same sink. Each of them has its own number.",
        ),
        Wrong(
            "sinks in reverse order",
            _sunk(sink=lambda s, d: s.flip(0)),
            "The sinks stand at the wrong heads.",
        ),
        Wrong(
            "exponentials that overflow",
            _plain_exp,
            "For small scores this is right. exp(89) is more than float32 holds, and inf / inf is NaN: "
            "subtract the largest score first, the sink's included.",
        ),
        Wrong(
            "grouped heads tiled",
            _sunk(grouped=lambda x, n: x.repeat(1, n, 1, 1)),
            "Queries meet the wrong keys: heads of keys are repeated as a whole, 0 1 0 1. Neighbouring "
            "heads of queries share a head of keys: 0 0 1 1.",
        ),
        Wrong(
            "the window has one key too many",
            _sunk(wider=1),
            "Each query sees one key too many. A window of 3 holds the query's own key and two before it.",
        ),
        Wrong(
            "the window has one key too few",
            _sunk(wider=-1),
            "Each query sees one key too few. A window of 3 holds the query's own key and two before it.",
        ),
        Wrong(
            "no window",
            _sunk(reach=False),
            "Every query sees all keys before it. Where `window` is not 0 it sees that many.",
        ),
        Wrong(
            "rows counted from 0",
            _sunk(start=0),
            "Row 0 is taken for the first token. The queries are the last ones of the keys.",
        ),
        Wrong("future not hidden", _sunk(future=True), "Queries see keys that stand after them."),
        Wrong("scores not scaled", _sunk(scale=lambda q: 1.0), "The scores lack their 1/√d."),
        Wrong(
            "a window of 0 hides everything",
            lambda q, k, v, sinks, window: (
                _sinking(q, k, v, sinks, window)
                if window
                else torch.zeros_like(_sinking(q, k, v, sinks, window))
            ),
            "With the window 0 nothing is seen, and the output is 0. There it means that there is no window.",
        ),
        Wrong(
            "a window of 0 taken for 1",
            lambda q, k, v, sinks, window: _sinking(q, k, v, sinks, window or 1),
            "With the window 0 a query sees itself alone. There it means that there is no window.",
        ),
        Wrong(
            "0 in place of −inf",
            _open_at_0,
            "What is hidden gets the score 0. After the softmax that is a weight like any other; −inf gives "
            "none.",
        ),
        Wrong(
            "values tiled",
            lambda q, k, v, sinks, window: _sinking(
                q,
                k.repeat_interleave(q.shape[1] // k.shape[1], 1),
                v.repeat(1, q.shape[1] // k.shape[1], 1, 1),
                sinks,
                window,
            ),
            "Queries meet the right keys, but the values are repeated as a whole, 0 1 0 1. They belong to "
            "their keys: 0 0 1 1.",
        ),
        Wrong(
            "keys tiled",
            lambda q, k, v, sinks, window: _sinking(
                q,
                k.repeat(1, q.shape[1] // k.shape[1], 1, 1),
                v.repeat_interleave(q.shape[1] // k.shape[1], 1),
                sinks,
                window,
            ),
            "Queries meet the wrong keys: heads of keys are repeated as a whole, 0 1 0 1. Neighbouring "
            "heads of queries share a head of keys: 0 0 1 1.",
        ),
    ),
    variants=(
        Variant(
            "one more column", _sunk(), "A column of sinks beside the scores, taken away after the softmax."
        ),
        Variant("one more key", _one_more_key, "A sink is a key whose value is zero."),
        Variant(
            "a gate behind plain attention",
            _by_sigmoid,
            "The sink's share is a sigmoid of the difference between log Σ exp of the scores and the sink.",
        ),
    ),
    hints=(
        "A sink is like one more key: it has a score and it takes its share of the softmax. What would its "
        "value have to be?",
        "Put the scores together with a column for the sink, take the softmax over all of them, and use the "
        "weights of the real keys only.",
        "Mask by the distance from the query back to the key: hidden is what is below 0 and, with a window, "
        "what is not below it. Repeat the heads of keys so that neighbours share one.",
    ),
)

QUESTIONS = (FORGET_BIAS, TEMPERED_QUERIES, LAYER_DIALS, GRID_ANGLES, SINK_ATTENTION)
