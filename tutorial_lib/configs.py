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
    r"(^|_)(rope|nope|rotary|rot|mrope|pos|posi\w*|alibi|yarn|ntk|logn|theta|relative|mscale|sinus\w*|bias_max"
    r"|attn_scale|floor_scale|attn_temperature\w*|log_scaling\w*)(_|$)|^(layer_types|per_layer_config)$"
)
"""Which keys speak of positions."""

HARMLESS = {"max_position_embeddings", "n_positions", "max_sequence_length"}
"""How long a text may be; where it counts, it is read as well."""

ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}
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

    Layers that do the same share one encoding, and one that knows no position has :class:`NoPosition`. So it
    can be given to :class:`tutorial_lib.model.Transformer` as it is, or to attention layer by layer:

    - RoPE is a :class:`Rotary` for one head. Where a head is cut (DeepSeek's MLA), it is for the
      ``qk_rope_head_dim`` channels alone, and its ``scale`` is that of the whole head.
    - A learned table is in the first layer, where tokens are embedded; fill it with the last rows of the
      checkpoint's table, as many as it has. T5's and learned numbers are random until you fill them.
    - Windows, sinks and caps are no positions, so they are not told.

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
    ValueError: llama: beta_fast=32 in rope_scaling is a key about positions that is not known for "linear": ...
    """
    given = _as_dict(config)
    if isinstance(given.get("text_config"), Mapping):
        text = {"model_type": given.get("model_type"), **given.pop("text_config")}
        outside = _Keys(str(given.get("model_type")), {TOP: given})
        outside.all_read("beside text_config")
        return from_config(text, stack=stack)
    model = given.get("model_type")
    if not isinstance(model, str) or model not in known()["read"]:
        why = known()["refused"].get(model, "it is not among those that were compared with their own code")
        raise ValueError(
            f"model_type={model!r} can't be read: {why}. Known are {', '.join(known()['read'])}; for any other "
            "build the encoding by hand, from the model's own code"
        )
    entry = known()["read"][model]
    inside = given.get(entry.get("inside")) or {}
    keys = _Keys(model, {TOP: given | {key: inside[key] for key in inside if POSITIONS.search(key)}})
    for key in ("model_type", *entry.get("ignores", ())):
        keys.get(key)
    for key in entry.get("needs", ()):
        keys.need(key)
    for key, only in entry.get("only", {}).items():
        if (value := keys.get(key)) not in (None, only):
            keys.refuse(f"{key}={value!r}: of this model type only {only!r} is known here; build it by hand")
    if (stack is not None) != (entry.get("family") == "t5") or stack not in (None, "encoder", "decoder"):
        allowed = "'encoder' or 'decoder'" if entry.get("family") == "t5" else "None, as there is one stack"
        raise ValueError(f"{model}: stack={stack!r}, but it must be {allowed}")
    try:
        layers = FAMILIES[entry.get("family", "rope")](keys, entry, stack or "")
    except _Refusal as refusal:
        raise ValueError(*refusal.args) from None
    except ValueError as error:  # of an encoding, which names its argument
        raise ValueError(f"{model}: the values given make no encoding: {error}") from error
    keys.all_read(f"for {model!r}")
    return layers


def _as_dict(config: Any) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        if isinstance(config, type) or not hasattr(config, "to_dict"):
            raise TypeError(
                f"config is a {type(config).__name__}: give config.json as a dict, such as "
                "json.load(open('config.json')), or a configuration object of Transformers"
            )
        config = config.to_dict()
    return dict(config)


class _Refusal(ValueError):
    """An error whose message is whole."""


@dataclass
class _Keys:
    """What a file says, at each place where it says something; and which keys of it were read."""

    model: str
    places: dict[str, Mapping[str, Any]]
    read: set[tuple[str, str]] = field(default_factory=set)

    def at(self, places: Mapping[str, Mapping[str, Any]]) -> _Keys:
        return _Keys(self.model, {**self.places, **places}, self.read)

    def refuse(self, what: str) -> NoReturn:
        raise _Refusal(f"{self.model}: {what}")

    def get(self, *names: str) -> Any:
        """The value that has one of these names at any place, None if there is none."""
        found = [
            (f"{name}={keys[name]!r} {_in(place)}", keys[name])
            for place, keys in self.places.items()
            for name in names
            if keys.get(name) is not None
        ]
        self.read |= {(place, name) for place in self.places for name in names}
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
                f"{' or '.join(names)} is missing in {' and in '.join(self.places)}, and nothing is assumed: "
                "add it, or give the configuration object of Transformers, which knows what it assumes"
            )
        return value

    def flag(self, *names: str) -> bool | None:
        value = self.get(*names)
        if value not in (None, True, False):
            self.refuse(f"{names[0]}={value!r}: it must be true or false")
        return None if value is None else bool(value)

    def size(self, what: str) -> int:
        value = self.need(*SIZES.get(what, (what,)))
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.refuse(f"{' or '.join(SIZES.get(what, (what,)))} is {value!r}: it must be a positive integer")
        return value

    def all_read(self, where: str, *, top: bool = True) -> None:
        """Refuse keys about positions that nobody asked for: those at the top, or those at all other places,
        where every key is about them."""
        for place, keys in self.places.items():
            for name, value in keys.items():
                if value is None or (place, name) in self.read or top is not (place == TOP):
                    continue
                if not top or POSITIONS.search(name) and name not in HARMLESS:
                    self.refuse(
                        f"{name}={value!r} {_in(place)} is a key about positions that is not known {where}: "
                        "take it out only if the model's own code does not read it, or build the encoding by hand"
                    )


def _in(place: str) -> str:
    return place if place == TOP else f"in {place}"


# ---- the families: what each kind of model makes of its keys ----


def _none(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    keys.get("layer_types")
    return [NoPosition()] * keys.size("layers")


def _alibi(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    return [ALiBi(keys.size("heads"))] * keys.size("layers")


def _t5(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    n = keys.size("num_layers")
    if stack == "decoder" and (given := keys.get("num_decoder_layers")) is not None:
        n = given
    buckets, distance, heads = (
        keys.size(key)
        for key in ("relative_attention_num_buckets", "relative_attention_max_distance", "heads")
    )

    def table() -> PositionalEncoding:
        sizes = {"n_buckets": buckets, "max_distance": distance}
        return T5Bias(heads, bidirectional=stack == "encoder", **sizes)

    return [table() for _ in range(n)] if entry.get("each") else [table()] * n


def _learned(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    rows = keys.size(entry["rows"])
    if entry.get("after_padding"):
        rows -= keys.need("pad_token_id") + 1
    dim = keys.size(entry.get("dim", "hidden_size"))
    return [Learned(rows, dim), *[NoPosition()] * (keys.size("layers") - 1)]


def _rope(keys: _Keys, entry: dict[str, Any], stack: str) -> list[PositionalEncoding]:
    n = keys.size("layers")
    kinds = _kinds(keys, entry, n)
    turning = _turning(keys, entry, kinds)
    bases = keys.get("layer_rope_theta") if entry.get("turns") == "layer_rope_theta" else None
    heads = _head_dims(keys, entry, kinds)
    still = _still(keys, entry)
    made: dict[Any, PositionalEncoding] = {}
    layers: list[PositionalEncoding] = []
    for number, kind in enumerate(kinds):
        its = _of_kind(keys, entry, kind) if turning[number] else None
        if its is None:
            layers.append(made.setdefault(None, NoPosition()) if kind in entry.get("recurrent", ()) else still)
            continue
        if bases is not None:
            its = its.at({"layer_rope_theta": {"layer_base": bases[number]}})
        frequencies, layout, scale = _angles(its, entry, heads[number])
        its.all_read(f"for rope_type={its.get('rope_type', 'type') or 'default'!r}", top=False)
        rotary = made.get((frequencies, layout, scale))
        if rotary is None:
            rotary = Rotary(heads[number], layout=layout, frequencies=frequencies)
            rotary.scale = scale
            made[frequencies, layout, scale] = rotary
        layers.append(rotary)
    if not any(turning):  # what the angles would be is then of no account
        keys.get("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor")
    return layers


FAMILIES = {"rope": _rope, "alibi": _alibi, "t5": _t5, "learned": _learned, "none": _none}


# ---- RoPE: which layers turn ----


def _kinds(keys: _Keys, entry: dict[str, Any], n: int) -> list[str]:
    """The kind of each layer, as ``layer_types`` names it."""
    kinds = keys.get("layer_types")
    key, other = entry.get("every", ("", ""))
    if kinds is None and isinstance(every := keys.get(key), int):
        kinds = [other if (i + 1) % every else "full_attention" for i in range(n)]
    if kinds is None and (entry.get("turns") == "sliding" or "recurrent" in entry or "by_kind" in entry):
        keys.need("layer_types")
    kinds = ["full_attention"] * n if kinds is None else list(kinds)
    if len(kinds) != n:
        keys.refuse(f"layer_types names {len(kinds)} layers, but there are {n}: give one kind for each layer")
    allowed = {*ATTENTION, *entry.get("kinds", ()), *entry.get("recurrent", ())}
    for kind in kinds:
        if kind not in allowed:
            keys.refuse(f"{kind!r} in layer_types: it must be one of {', '.join(sorted(allowed))}")
    return kinds


def _turning(keys: _Keys, entry: dict[str, Any], kinds: list[str]) -> list[bool]:
    """Whether each layer turns its queries and keys."""
    n = len(kinds)
    turning = [kind not in entry.get("recurrent", ()) for kind in kinds]
    match entry.get("turns"):
        case "sliding":
            if "without_window" in entry and keys.get("sliding_window") is None:
                return turning
            return [kind == "sliding_attention" for kind in kinds]
        case "no_rope_layers":
            listed, every = keys.get("no_rope_layers"), keys.get("no_rope_layer_interval")
            if not listed:
                every = keys.size("no_rope_layer_interval")
                listed = [int((i + 1) % every != 0) for i in range(n)]
            if len(listed) != n or not all(flag in (0, 1) for flag in listed):
                keys.refuse(f"no_rope_layers={listed!r}: it must be {n} numbers, 1 for a layer that turns, or 0")
            return [bool(flag) for flag in listed]
        case "layer_rope_theta":
            bases = keys.need("layer_rope_theta")
            if not isinstance(bases, Sequence) or len(bases) != n:
                keys.refuse(f"layer_rope_theta={bases!r}: it must be {n} bases, 0 for a layer without")
            return [turns and bool(base) for turns, base in zip(turning, bases, strict=True)]
        case "position_embedding_type":
            kind = keys.get("position_embedding_type")
            if kind not in (None, "nope", *entry["with"]):
                keys.refuse(f"position_embedding_type={kind!r}: it must be null or one of {entry['with']}")
            return [turns and kind in entry["with"] for turns in turning]
    return turning


def _still(keys: _Keys, entry: dict[str, Any]) -> PositionalEncoding:
    """What attention does with positions where it does not turn."""
    if "temperature" in entry and keys.flag("attn_temperature_tuning"):
        return Temperature(keys.need("floor_scale"), keys.need("attn_scale"))
    if "temperature" in entry:
        keys.get("floor_scale", "attn_scale") if keys.get("attn_temperature_tuning") is None else None
        keys.read |= {(TOP, "floor_scale"), (TOP, "attn_scale")}
    return NoPosition()


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
    if "cut" in entry:
        return [keys.size("qk_rope_head_dim")] * len(kinds)
    name = entry.get("head_dim", "head_dim")
    if keys.get(name) is not None:
        one = keys.size(name)
    else:
        one = keys.size("hidden_size") // keys.size("heads")
    heads_of = [one] * len(kinds)
    if "global_head_dim" in entry:
        wide, each = keys.get("global_head_dim"), keys.get("per_layer_config") or {}
        if wide is None and not each:
            keys.need("global_head_dim", "per_layer_config")
        if wide is not None:
            heads_of = [wide if kind == "full_attention" else one for kind in kinds]
        for number, its in each.items():
            heads_of[int(number)] = its.get("head_dim", one)
    return heads_of


def _angles(
    keys: _Keys, entry: dict[str, Any], head_dim: int
) -> tuple[Frequencies, str, float | None]:
    """The angles, the layout, and the scale if positions change it."""
    layout = _layout(keys, entry)
    kind = keys.get("rope_type", "type") or "default"
    if kind == "mrope" and "order" in entry:  # Qwen2-VL's name: how positions are read, not how θ are scaled
        kind = "default"
    base = keys.get("layer_base") or entry.get("fixed_base")
    if base is None:
        base = keys.need("rope_theta", *entry.get("base", ()))
    elif "fixed_base" not in entry:
        keys.get("rope_theta")
    share, p = _share(keys, entry, kind, head_dim)
    scaling = _scaling(keys, entry, kind)
    options = {"rotary_dim": share, "scaling": scaling, "p": p}
    scale = None
    if "cut" in entry:
        scale = (head_dim + keys.size("qk_nope_head_dim")) ** -0.5
        all_dim = keys.get("mscale_all_dim") if kind == "yarn" else None
        if all_dim:
            scale *= (0.1 * all_dim * math.log(keys.need("factor")) + 1) ** 2
    if "order" not in entry:
        return Frequencies(head_dim, base, **options), layout, scale
    sections = tuple(keys.need("mrope_section"))
    if (flag := keys.flag("mrope_interleaved")) not in (None, entry["order"] == "interleaved"):
        keys.refuse(f"mrope_interleaved={flag}, but the sections of this model type are {entry['order']}")
    return MRoPE(head_dim, base, **options, sections=sections, order=entry["order"]), layout, scale


def _layout(keys: _Keys, entry: dict[str, Any]) -> str:
    flag = keys.flag("rope_interleaved", "rope_interleave")
    layout: str = entry["layout"]
    if flag is None or flag is (layout == "interleaved"):
        return layout
    if "either" in entry:
        return "interleaved" if flag else "half"
    keys.refuse(f"rope_interleaved={flag}, but this model type has the layout {layout!r}, and reads no such key")


def _share(keys: _Keys, entry: dict[str, Any], kind: str, head_dim: int) -> tuple[int | None, float]:
    """How many channels turn, None for all; and the share of pairs that do (p-RoPE)."""
    part, d = keys.get("partial_rotary_factor", "rotary_pct", "rope_pct"), keys.get("rotary_dim")
    if kind == "proportional":
        return None, keys.need("partial_rotary_factor")
    if "part" not in entry:
        if part not in (None, 1) or d not in (None, head_dim):
            keys.refuse(
                f"{part if d is None else d!r} as partial_rotary_factor or rotary_dim, but this model type "
                "turns all channels of a head: take it out if that is what the weights were trained with"
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
    def original() -> Any:
        return keys.need("original_max_position_embeddings")

    match kind:
        case "default":
            keys.read.add((TOP, "original_max_position_embeddings"))  # Phi-3 has it with any type
            return None
        case "linear":
            return PositionInterpolation(keys.need("factor"))
        case "proportional":
            factor = keys.get("factor")
            return None if factor is None else PositionInterpolation(factor)
        case "dynamic" if "alpha" in entry and keys.get("alpha"):
            keys.read |= {(place, "factor") for place in keys.places}
            return NTKAware(keys.need("alpha"))
        case "dynamic":
            return DynamicNTK(L=keys.size("max_position_embeddings"), s=keys.need("factor"))
        case "llama3":
            low, high = keys.need("low_freq_factor"), keys.need("high_freq_factor")
            return Llama3(keys.need("factor"), original(), low, high)
        case "yarn" if "su" not in entry:
            return _yarn(keys, original())
        case "longrope" | "su" if kind == "longrope" or "su" in entry:
            L, factor = original(), keys.get("factor")
            if factor is None:
                factor = keys.size("max_position_embeddings") / L
            lists = (tuple(keys.need(key)) for key in ("short_factor", "long_factor"))
            return LongRoPE(*lists, L=L, s=max(factor, 1.0), attention=keys.get("attention_factor"))
    types = "default, linear, dynamic, llama3, yarn, longrope, proportional"
    keys.refuse(f"rope_type={kind!r}: known are {types}; build the frequencies by hand")


def _yarn(keys: _Keys, L: int) -> Scaling:
    s, slow, fast = keys.need("factor"), keys.get("beta_slow") or 1, keys.get("beta_fast") or 32
    attention = keys.get("attention_factor")
    mscales = keys.get("mscale"), keys.get("mscale_all_dim")
    if mscales != (None, None):
        if not all(isinstance(m, (int, float)) and m > 0 for m in mscales):
            keys.refuse(
                f"mscale={mscales[0]!r} and mscale_all_dim={mscales[1]!r}: give both, above 0; implementations "
                "differ in what they make of one alone"
            )
        if attention is None:
            top, bottom = (0.1 * m * math.log(s) + 1 for m in mscales)
            attention = top / bottom
    ramp = "index" if keys.flag("truncate") is False else "rounded index"
    return YaRN(s, L, slow, fast, ramp, attention)
