"""The ``config.json`` of a model, read as the positional encoding of each of its layers, or refused.

A file says in many ways what its model does with positions: ``rope_theta`` at the top or under
``rope_parameters``, once for all layers or once for each kind of layer. Some things it does not say at all,
such as which channels form a pair; they belong to the ``model_type``, and stand in ``configs.json``, which
``tests/parity/test_configs.py`` compares with the model of each type in Transformers.

What a wrong reading builds runs without an error, and is wrong. So a key about positions that nothing here
reads, or that contradicts another, is a ValueError; so is a number that is missing.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from .encodings import (
    ALiBi,
    DynamicNTK,
    Frequencies,
    Learned,
    Llama3,
    LongRoPE,
    MRoPE,
    NoPosition,
    NTKAware,
    PositionalEncoding,
    PositionInterpolation,
    Rotary,
    T5Bias,
    Temperature,
    YaRN,
)
from .encodings.scaling import Scaling

FILE = Path(__file__).with_suffix(".json")
TOP = "at the top"
POSITIONS = re.compile(
    r"(^|_)(rope|nope|rotary|mrope|pos|posi\w*|xpos|alibi|yarn|ntk|logn|theta|relative|mscale|sinus\w*"
    r"|bias_max|dual_chunk\w*|attn_scale|floor_scale|attn_temperature\w*|log_scaling\w*)(_|$)|^(layer_types|per_layer_config)$"
)
"""The keys at the top that speak of positions. Below ``rope_parameters`` and ``rope_scaling`` all do."""

LENGTHS = {"max_position_embeddings", "n_positions"}
"""How long a text may be: no position hangs on that, unless it is asked for."""

ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}
TYPES = ("default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional")
SIZES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
}


@functools.cache
def known() -> dict[str, dict[str, Any]]:
    """What no file says, for each ``model_type`` that :func:`from_config` reads, and why it refuses others.

    >>> known()["read"]["llama"], known()["refused"]["nanochat"]
    ({'layout': 'half'}, 'it turns the other way round')
    """
    stored: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return stored


def from_config(config: Any, *, stack: str | None = None) -> list[PositionalEncoding]:
    """The encoding of each layer, from the first on, of the model that ``config`` describes.

    Layers that are alike share one encoding; one that knows no position has :class:`NoPosition`. The list is
    what :class:`tutorial_lib.model.Transformer` takes for its ``encoding``.

    - RoPE is a :class:`Rotary` for one head ``[B, H, L, head_dim]``. Where a head is cut (DeepSeek's latent
      attention), it is for the last ``qk_rope_head_dim`` channels, with the ``scale`` of the whole head.
    - A learned table is in the first layer, because tokens are embedded once. The rows of the checkpoint that
      it takes are the last ``max_length`` ones; some have others before them. They and T5's biases are random
      until you fill them.
    - What is no position is left to you: windows, sinks, caps, and the scale of a head that is not cut.

    Args:
        config: a ``config.json`` as a dict, or a configuration object of Transformers. Of a model for
            several media, its ``text_config`` is read.
        stack: ``"encoder"`` or ``"decoder"``, for a model that has both.

    Raises:
        TypeError: ``config`` is neither a dict nor has ``to_dict``.
        ValueError: a ``model_type`` that isn't known, or does what no encoding here does; a key about
            positions that isn't known for it, contradicts another, is missing, or has no valid value.

    The formulas are those of Transformers 5.23 (``modeling_rope_utils.py``, and each model's own code).

    >>> llama = {"model_type": "llama", "num_hidden_layers": 2, "head_dim": 64, "rope_theta": 500_000.0}
    >>> from_config(llama)[0]
    Rotary(64, base=500000, layout='half')
    >>> from_config(llama | {"rope_scaling": {"type": "linear", "factor": 4, "beta_fast": 32}})
    Traceback (most recent call last):
    ValueError: llama: beta_fast=32 in rope_scaling is not known as a key of rope_type='linear': ...
    """
    given = _as_dict(config)
    named = given.get("model_type")
    model = str(named)
    if isinstance(given.get("text_config"), Mapping) and model not in known()["refused"]:
        text = given.pop("text_config")
        _Keys(model, {TOP: given}).all_read("as one beside text_config")
        return from_config(text, stack=stack)
    entry = known()["read"].get(model)
    if entry is None:
        why = known()["refused"].get(model, "no test here compares it with the model's own code")
        raise ValueError(
            f"model_type={named!r} can't be read: {why}. Build its encoding by hand, from that code. "
            f"What can be read: {', '.join(known()['read'])}"
        )
    inside = given.get(entry.get("inside")) or {}
    keys = _Keys(model, {TOP: given | {key: inside[key] for key in inside if POSITIONS.search(key)}})
    keys.ignore("model_type", *entry.get("ignores", ()))
    try:
        for key in entry.get("needs", ()):
            keys.need(key)
        for key, only in entry.get("only", {}).items():
            if (value := keys.get(key)) not in (None, only):
                keys.refuse(
                    f"{key}={value!r}: only {only!r} is known of this type; build the encoding by hand"
                )
        stacks = ("encoder", "decoder") if entry.get("family") == "t5" else (None,)
        if stack not in stacks:
            keys.refuse(f"stack={stack!r}: it must be {' or '.join(map(repr, stacks))}, as this type has it")
        layers = FAMILIES[entry.get("family", "rope")](keys, entry, stack or "")
        keys.all_read("of this type")
        return layers
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if str(error).startswith(f"{model}: "):
            raise
        raise ValueError(f"{model}: what config says makes no encoding: {error}") from error


def _as_dict(config: Any) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        if isinstance(config, type) or not hasattr(config, "to_dict"):
            raise TypeError(
                f"config is a {type(config).__name__}: give config.json as a dict, such as "
                "json.load(open('config.json')), or a configuration object of Transformers"
            )
        config = config.to_dict()
    return dict(config)


@dataclass
class _Keys:
    """What a file says, at each place where it says something; and which keys of it were read."""

    model: str
    places: dict[str, Mapping[str, Any]]
    read: set[tuple[str, str]] = field(default_factory=set)

    def at(self, places: Mapping[str, Mapping[str, Any]]) -> _Keys:
        return _Keys(self.model, {**self.places, **places}, self.read)

    def refuse(self, what: str) -> NoReturn:
        raise ValueError(f"{self.model}: {what}")

    def ignore(self, *names: str) -> None:
        """Their values change nothing here."""
        self.read |= {(place, name) for place in self.places for name in names}

    def get(self, *names: str) -> Any:
        """The value that has one of these names at any place, None if there is none."""
        found = [
            (f"{name}={keys[name]!r} {_in(place)}", keys[name])
            for place, keys in self.places.items()
            for name in names
            if keys.get(name) is not None
        ]
        self.ignore(*names)
        for says, value in found[1:]:
            if value != found[0][1]:
                self.refuse(
                    f"{found[0][0]} and {says} contradict each other: leave the one that the weights were "
                    "trained with"
                )
        return found[0][1] if found else None

    def need(self, *names: str) -> Any:
        value = self.get(*names)
        if value is None:
            self.refuse(
                f"{' or '.join(names)} is missing, and nothing is assumed: add it to the file, or give the "
                "configuration object of Transformers, which knows the defaults of the type"
            )
        return value

    def flag(self, *names: str) -> bool | None:
        value = self.get(*names)
        if value not in (None, True, False):
            self.refuse(f"{names[0]}={value!r}: it must be true or false")
        return None if value is None else bool(value)

    def size(self, what: str) -> int:
        names = SIZES.get(what, (what,))
        value = self.need(*names)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.refuse(f"{' or '.join(names)} is {value!r}: it must be a positive integer")
        return value

    def all_read(self, whose: str, *, top: bool = True) -> None:
        """Refuse what speaks of positions and nobody has asked for, at the top or at the other places."""
        for place, keys in self.places.items():
            for name, value in keys.items():
                about = POSITIONS.search(name) and name not in LENGTHS if top else True
                if top is (place == TOP) and about and value is not None and (place, name) not in self.read:
                    self.refuse(
                        f"{name}={value!r} {_in(place)} is not known as a key {whose}: take it out if the "
                        "model's own code does not read it, else build the encoding by hand"
                    )


def _in(place: str) -> str:
    return place if place == TOP else f"in {place}"


# ---- the families: what each kind of model makes of its keys ----


def _none(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    kinds = keys.get("layer_types", "layers_block_type")
    return [NoPosition()] * (len(kinds) if kinds else keys.size("layers"))


def _alibi(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    return [ALiBi(keys.size("heads"))] * keys.size("layers")


def _t5(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    own = stack == "decoder" and keys.get("num_decoder_layers") is not None
    n = keys.size("num_decoder_layers" if own else "num_layers")
    buckets, distance = (keys.size(f"relative_attention_{what}") for what in ("num_buckets", "max_distance"))

    def bias() -> PositionalEncoding:
        sizes = {"n_buckets": buckets, "max_distance": distance}
        return T5Bias(keys.size("heads"), bidirectional=stack == "encoder", **sizes)

    return [bias() for _ in range(n)] if "each" in entry else [bias()] * n


def _learned(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    if (kind := keys.get("position_embedding_type")) not in (None, "absolute"):
        keys.refuse(f"position_embedding_type={kind!r}: only 'absolute' is known, a learned table")
    rows = keys.size(entry["rows"])
    if entry.get("after_padding"):
        rows -= keys.need("pad_token_id") + 1
    dim = keys.size(entry.get("dim", "hidden_size"))
    return [Learned(rows, dim), *[NoPosition()] * (keys.size("layers") - 1)]


def _rope(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    kinds = _kinds(keys, entry, keys.size("layers"))
    turning, heads = _turning(keys, entry, kinds), _head_dims(keys, entry, kinds)
    silent = NoPosition()
    still = _temperature(keys) or silent if "temperature" in entry else silent
    made: dict[Any, PositionalEncoding] = {}
    layers: list[PositionalEncoding] = []
    for kind, turns, head_dim in zip(kinds, turning, heads, strict=True):
        its = _of_kind(keys, entry, kind) if turns else None
        if its is None:
            layers.append(silent if kind in entry.get("recurrent", ()) else still)
            continue
        rotary = _rotary(its, entry, head_dim, turns)
        layers.append(made.setdefault((rotary.frequencies, rotary.layout, rotary.scale), rotary))
    silent.axes = max(encoding.axes for encoding in layers)  # it reads none, but stands beside those that do
    if not made:  # then it does not matter by which angles
        keys.ignore("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor")
    return layers


FAMILIES = {"rope": _rope, "alibi": _alibi, "t5": _t5, "learned": _learned, "none": _none}


# ---- RoPE: which layers turn ----


def _kinds(keys: _Keys, entry: dict[str, Any], n: int) -> list[str]:
    """The kind of each layer, as ``layer_types`` names it."""
    kinds = keys.get("layer_types")
    key, other, first = entry.get("every", ("", "", 0))
    if kinds is None and isinstance(every := keys.get(key), int):
        kinds = [other if (i - first) % every else "full_attention" for i in range(n)]
    if kinds is None and (entry.get("turns") == "sliding" or "recurrent" in entry or "by_kind" in entry):
        keys.need("layer_types")
    if kinds is None:
        return ["full_attention"] * n
    if not isinstance(kinds, list | tuple) or len(kinds) != n:
        keys.refuse(f"layer_types={kinds!r}: it must be a list with the kind of each of {n} layers")
    allowed = {*ATTENTION, *entry.get("kinds", ()), *entry.get("recurrent", ())}
    for kind in kinds:
        if kind not in allowed:
            keys.refuse(f"{kind!r} in layer_types: it must be one of {', '.join(sorted(allowed))}")
    return list(kinds)


def _turning(keys: _Keys, entry: dict[str, Any], kinds: list[str]) -> Sequence[float]:
    """For each layer whether it turns queries and keys: 0 or 1, or the base of its own."""
    n, turning = len(kinds), [float(kind not in entry.get("recurrent", ())) for kind in kinds]
    rule = entry.get("turns")
    if rule == "sliding" and not ("without_window" in entry and keys.get("sliding_window") is None):
        return [float(kind == "sliding_attention") for kind in kinds]
    if rule == "position_embedding_type":
        kind = keys.get(rule)
        if kind not in (None, "nope", "rope"):
            keys.refuse(f"{rule}={kind!r}: it must be 'rope', 'nope' or null")
        return turning if kind == "rope" else [0.0] * n
    if rule in ("no_rope_layers", "layer_rope_theta"):
        listed = keys.get(rule)
        if not listed and rule == "no_rope_layers":
            listed = [int((i + 1) % keys.size("no_rope_layer_interval") != 0) for i in range(n)]
        keys.ignore("no_rope_layer_interval")  # a list comes first
        if not isinstance(listed, Sequence) or len(listed) != n:
            keys.refuse(f"{rule}={listed!r}: it must be {n} numbers, 0 for a layer that does not turn")
        return [float(number) for number in listed]
    return turning


def _temperature(keys: _Keys) -> PositionalEncoding | None:
    """What Llama 4 does in the layers that do not turn."""
    grows = keys.flag("attn_temperature_tuning")
    keys.ignore("floor_scale", "attn_scale")
    return Temperature(keys.need("floor_scale"), keys.need("attn_scale")) if grows else None


# ---- RoPE: by which angles ----


def _of_kind(keys: _Keys, entry: dict[str, Any], kind: str) -> _Keys | None:
    """The places that speak of the angles of this kind of layer; None where they say that there are none."""
    keys.read |= {(TOP, "rope_parameters"), (TOP, "rope_scaling")}
    places = {name: keys.places[TOP].get(name) or {} for name in ("rope_parameters", "rope_scaling")}
    for name, its in places.items():
        if not isinstance(its, Mapping):
            keys.refuse(f"{name}={its!r}: it must be a dict of parameters")
    nested = places["rope_parameters"]
    if nested and all(value is None or isinstance(value, Mapping) for value in nested.values()):
        unknown = sorted(nested.keys() - {*ATTENTION, *entry.get("kinds", ())})
        if "by_kind" not in entry or unknown or kind not in nested:
            keys.refuse(
                f"rope_parameters has parameters for {', '.join(nested)}, and this is a layer of {kind!r}: "
                + ("give one for each kind of layer" if "by_kind" in entry else "give one set for all layers")
            )
        if places["rope_scaling"]:
            keys.refuse("rope_parameters for each kind of layer, and rope_scaling: give the first alone")
        place = f"rope_parameters[{kind!r}]"
        return None if nested[kind] is None else keys.at({place: nested[kind]})
    if "by_kind" not in entry:
        return keys.at(places)
    if nested or "local" not in entry:
        keys.refuse(f"rope_parameters={nested!r}: give a set of parameters for each kind of layer")
    bases = {key: entry.get(key, "rope_theta") for key in ("local", "global")}  # as older files have it
    base = bases["local" if kind == "sliding_attention" else "global"]
    its = {base: {"rope_theta": keys.need(base)}}
    if kind in entry.get("scaled", ("full_attention",)):
        its["rope_scaling"] = places["rope_scaling"]
    keys.read |= {(TOP, name) for name in bases.values()}
    top = {name: value for name, value in keys.places[TOP].items() if name != "rope_theta"}
    return keys.at({TOP: top, **its})


def _head_dims(keys: _Keys, entry: dict[str, Any], kinds: list[str]) -> list[int]:
    """How many channels a head has in each layer; of a cut head, those that can turn."""
    name = "qk_rope_head_dim" if "cut" in entry else entry.get("head_dim", "head_dim")
    given = "cut" in entry or keys.get(name) is not None
    one = keys.size(name) if given else keys.size("hidden_size") // keys.size("heads")
    heads = [one] * len(kinds)
    if "wide" in entry:  # Gemma 4: other heads where a layer sees all
        wide, each = keys.get("global_head_dim"), keys.get("per_layer_config")
        if wide is None and each is None:
            keys.need("global_head_dim", "per_layer_config")
        for number, kind in enumerate(kinds):
            if wide is not None and kind == "full_attention":
                heads[number] = wide
        for number, its in (each or {}).items():
            if set(its) - {"head_dim", "num_key_value_heads"}:
                keys.refuse(f"per_layer_config[{number!r}]={its!r}: only head_dim is known")
            heads[int(number)] = its.get("head_dim", one)
    return heads


def _rotary(keys: _Keys, entry: dict[str, Any], head_dim: int, turns: float) -> Rotary:
    layout, reads = _layout(keys, entry), "order" in entry and keys.get("type") == "mrope"
    kind = (keys.get("rope_type") if reads else keys.get("rope_type", "type")) or "default"
    types = entry.get("types", (*TYPES, *(["mrope"] if "order" in entry else [])))
    if kind not in types:
        keys.refuse(f"rope_type={kind!r}: a model of this type knows {', '.join(types)}")
    if entry.get("turns") == "layer_rope_theta" or "fixed_base" in entry:
        base = entry.get("fixed_base", turns)
        if "fixed_base" not in entry:
            keys.ignore("rope_theta")
    else:
        base = keys.need("rope_theta", *entry.get("base", ()))
    d, p = _share(keys, entry, kind, head_dim)
    options: dict[str, Any] = {"rotary_dim": d, "p": p, "scaling": _scaling(keys, entry, kind)}
    angles = Frequencies(head_dim, base, **options)
    if (flag := keys.flag("use_mrope")) not in (None, "order" in entry):
        keys.refuse(f"use_mrope={flag}, but a model of this type turns by {1 if flag else 3} positions")
    if "order" in entry:
        sections, flag = keys.need("mrope_section"), keys.flag("mrope_interleaved")
        if flag not in (None, entry["order"] == "interleaved"):
            keys.refuse(f"mrope_interleaved={flag}, but a model of this type has them {entry['order']}")
        angles = MRoPE(head_dim, base, **options, sections=tuple(sections), order=entry["order"])
    rotary = Rotary(head_dim, layout=layout, frequencies=angles)
    if "cut" in entry:
        m = keys.get("mscale_all_dim") if kind == "yarn" else None
        sharper = 1 if m is None else 0.1 * m * math.log(keys.need("factor")) + 1
        rotary.scale = (head_dim + keys.size("qk_nope_head_dim")) ** -0.5 * sharper**2
    keys.all_read(f"of rope_type={kind!r}", top=False)
    return rotary


def _layout(keys: _Keys, entry: dict[str, Any]) -> str:
    flag = keys.flag("rope_interleaved", "rope_interleave")
    layout: str = entry["layout"]
    if flag is None or flag is (layout == "interleaved"):
        return layout
    if "either" in entry:
        return "interleaved" if flag else "half"
    keys.refuse(f"rope_interleaved={flag}, but a model of this type has the layout {layout!r}")


def _share(keys: _Keys, entry: dict[str, Any], kind: str, head_dim: int) -> tuple[int | None, float]:
    """How many channels turn, None for all; and the share of pairs that do (p-RoPE)."""
    part, d = keys.get("partial_rotary_factor", "rotary_pct", "rope_pct"), keys.get("rotary_dim")
    if kind == "proportional":
        return None, keys.need("partial_rotary_factor")
    if "part" not in entry:
        if part not in (None, 1) or d not in (None, head_dim):
            keys.refuse(
                f"partial_rotary_factor={part!r} or rotary_dim={d!r}, but a model of this type turns all "
                f"{head_dim} channels of a head: take it out if that is what the weights were trained with"
            )
        return None, 1.0
    if part is None and d is None and entry["part"] == "needed":
        keys.need("partial_rotary_factor", "rotary_dim")
    if part is not None and not (isinstance(part, (int, float)) and 0 < part <= 1):
        keys.refuse(f"partial_rotary_factor={part!r}: it must be a share above 0, at most 1")
    of_part = None if part is None else int(head_dim * part)
    if None not in (of_part, d) and of_part != d:
        keys.refuse(f"partial_rotary_factor={part} is {of_part} of {head_dim} channels, but rotary_dim={d}")
    return (d if of_part is None else of_part), 1.0


def _scaling(keys: _Keys, entry: dict[str, Any], kind: str) -> Scaling | None:
    L = "original_max_position_embeddings"
    if kind in ("default", "mrope"):  # the second says nothing of θ
        keys.read.add((TOP, L))  # Phi-3 has it with any type
        return None
    if kind == "proportional" and keys.get("factor") is None:
        return None
    if kind in ("linear", "proportional"):
        return PositionInterpolation(keys.need("factor"))
    if kind == "dynamic" and "alpha" in entry and keys.get("alpha") is not None:
        keys.ignore("factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")  # as Hunyuan does
        return NTKAware(keys.need("alpha"))
    if kind == "dynamic":
        return DynamicNTK(L=keys.size("max_position_embeddings"), s=keys.need("factor"))
    if kind == "llama3":
        return Llama3(*map(keys.need, ("factor", L, "low_freq_factor", "high_freq_factor")))
    if kind == "yarn":
        return _yarn(keys, keys.need(L))
    factor = keys.get("factor") or keys.size("max_position_embeddings") / keys.need(L)
    short, long = (tuple(keys.need(f"{which}_factor")) for which in ("short", "long"))
    return LongRoPE(short, long, keys.need(L), max(factor, 1.0), keys.get("attention_factor"))


def _yarn(keys: _Keys, L: int) -> Scaling:
    s, slow, fast = keys.need("factor"), keys.get("beta_slow") or 1, keys.get("beta_fast") or 32
    attention = keys.get("attention_factor")
    mscales = keys.get("mscale"), keys.get("mscale_all_dim")
    if mscales != (None, None):
        if not all(isinstance(m, (int, float)) and m > 0 for m in mscales):
            keys.refuse(
                f"mscale={mscales[0]!r} and mscale_all_dim={mscales[1]!r}: give both, above 0, "
                "because implementations differ in what they make of one alone"
            )
        if attention is None:
            top, bottom = (0.1 * m * math.log(s) + 1 for m in mscales)
            attention = top / bottom
    ramp = "index" if keys.flag("truncate") is False else "rounded index"
    return YaRN(s, L, slow, fast, ramp, attention)
