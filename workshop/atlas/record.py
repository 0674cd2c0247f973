"""A row of the atlas: what was measured on a type, beside what its configuration says."""

from __future__ import annotations

from typing import Any

import torch

from tutorial_lib import from_config
from tutorial_lib.encodings import ALiBi, Learned, NoPosition, PositionalEncoding, Rotary, T5Bias

from . import probe, tiny

LEAVE = ((), ("head_dim",), ("num_key_value_heads", "head_dim"))
UNBUILT = {  # why a type has no row, where what Python says does not tell
    "blt": "it reads bytes through three stacks, whose sizes stand in configurations of their own",
    "cohere_compass_text": "its rotation asks for a kind of layer that its own defaults do not have",
    "cpmant": "it puts tokens of its own before the text, so its layers read another length",
    "dbrx": "Transformers can't build it from its own defaults, which lack rope_theta",
    "dots3_note_text": "its latent widths differ from layer to layer, and its own sizes are too big",
    "emu3": "its text model can't be built alone, and with its images it is too big",
    "gemma4_assistant": "its class refuses its own defaults",
    "gemma4_unified_assistant": "its layers read the keys of another model's cache",
    "git": "its larger stack is the one for images, which a text alone does not run",
    "granitemoehybrid": "by default all its layers are recurrences, and its code asks one of attention",
    "lfm2_moe": "its class has no default for layer_types",
    "longcat_flash": "no small sizes were found for its heads, whose widths hang together",
    "mllama": "its text model can't be built alone, and with its images it is too big",
    "musicgen": "it needs the configurations of three models, and has no defaults for them",
    "musicgen_melody": "it needs the configurations of three models, and has no defaults for them",
    "phi4_multimodal": "its stacks for sound and images, which text does not need, are too big",
    "prophetnet": "its layers read several copies of the text at once",
    "qwen4_exp_text": "its own defaults lack numbers that it divides by",
    "xlnet": "its layers read the tokens before the rows, and the probes look for rows first",
    "zaya": "it takes one expert for a token only, and the small sizes say two",
}
SETTINGS = {"tokens": probe.LENGTH, "shift": probe.SHIFT, "stretch": probe.STRETCH, "cuts": list(probe.CUTS)}
MEASURES = ("shift", "far", "stretch", "swap", "state", "values")
STATES = {"linear_attention", "conv", "mamba", "recurrent", "linear", "kda", "gdn"}


def kind(layer: dict[str, Any], embedding: bool) -> str:
    """What a layer does about order, in a word; course/atlas.py says what each means."""
    turns, order = layer["stretch"] > probe.USED, layer["swap"] > probe.USED * 10
    state = layer["state"] > probe.USED * 10
    if layer["reach"] == 1:
        return "alone"
    if not order and (turns or (layer["far"] or 0) > probe.USED):
        return "sharp"
    if turns and layer["shift"] > probe.ABSOLUTE * layer["stretch"]:
        return "absolute"
    if turns and state:
        return "both"
    if turns:
        return "part" if layer["share"] and layer["share"] < 1 else "full"
    if state:
        return "state"
    if order:
        return "bias"
    return "added" if embedding else "none"


def measured(name: str) -> dict[str, Any]:
    """The probes of a type, in double precision if its code allows it."""
    errors: list[Exception] = []
    for leave in LEAVE:
        for dtype in (torch.float64, torch.float32):
            try:
                config = tiny.small(name, leave)
                its = probe.probe(tiny.model(config).to(dtype))
                return {**its, "config": config, "dtype": str(dtype).removeprefix("torch.")}
            except Exception as error:  # any of a hundred authors' codes
                errors.append(error)
                if "too big" in str(error) or "longer than" in str(error):
                    raise
    raise errors[0]


def in_a_line(error: Exception) -> str:
    said = " ".join(str(error).split())
    return said if type(error) is ValueError else f"{type(error).__name__}: {said[:150]}"


def row(name: str) -> dict[str, Any]:
    """What the atlas says of a type: measured, declared, and where the two differ; or why it says nothing."""
    try:
        text = getattr(tiny.config(name), "text_config", None)
        if text is not None and text.model_type != name and text.model_type in tiny.types():
            return {"type": name, "text": text.model_type}
        its = measured(name)
    except Exception as error:
        return {"type": name, "why": UNBUILT.get(name, in_a_line(error))}
    embedding = its["embedding"] > probe.USED
    kinds = [kind(layer, embedding) for layer in its["layers"]]
    for layer, what in zip(its["layers"], kinds, strict=True):
        if what not in ("full", "part", "both"):
            layer["share"] = None
        if what == "state" and layer["reach"] not in (2, 4):  # a memory that fades is no window; a kernel is
            layer["reach"] = None
    says = declared(name)
    types = says.pop("layer_types") or [None] * len(kinds)
    types = types if len(types) == len(kinds) else [None] * len(kinds)
    runs: list[list[Any]] = []
    for what in zip(
        kinds, (x["share"] for x in its["layers"]), (x["reach"] for x in its["layers"]), types, strict=True
    ):
        if runs and runs[-1][1:] == list(what):
            runs[-1][0] += 1
        else:
            runs.append([1, *what])
    return {
        "type": name,
        "dtype": its["dtype"],
        "embedding": embedding,
        "runs": runs,
        "largest": {key: largest(its["layers"], key) for key in MEASURES},
        "declared": says,
        "differs": differences(its, kinds, types, embedding),
    }


def largest(layers: list[dict[str, Any]], key: str) -> float | None:
    found = [layer[key] for layer in layers if layer[key] is not None]
    return float(f"{max(found):.1e}") if found else None


def declared(name: str) -> dict[str, Any]:
    """What the defaults of its class say: no checkpoint need have these numbers."""
    its = tiny.default(name).to_dict()
    parameters = its.get("rope_parameters") or {}
    sets = [each for each in parameters.values() if isinstance(each, dict)] or [parameters]

    def every(key: str) -> list[Any]:
        return sorted({each[key] for each in sets if each.get(key) is not None})

    windows = (
        "sliding_window",
        "attention_chunk_size",
        "window_size",
        "attention_window_size",
        "local_attention",
    )
    return {
        "base": every("rope_theta"),
        "share": every("partial_rotary_factor"),
        "scaling": [kind for kind in every("rope_type") if kind != "default"],
        "window": next((its[key] for key in windows if isinstance(its.get(key), int)), None),
        "length": its.get("max_position_embeddings") or its.get("n_positions"),
        "layer_types": its.get("layer_types") or its.get("layers_block_type"),
    }


def differences(its: dict[str, Any], kinds: list[str], types: list[Any], embedding: bool) -> list[str]:
    """Where what the configuration says of a layer is not what was measured."""
    found = []
    try:
        encodings: list[PositionalEncoding | None] = list(from_config(its["config"]))
    except (TypeError, ValueError):
        encodings = [None] * len(kinds)
    if len(encodings) != len(kinds):
        encodings = [None] * len(kinds)
    for layer, what, said, encoding in zip(its["layers"], kinds, types, encodings, strict=True):
        if said in ("sliding_attention", "chunked_attention") and layer["reach"] != tiny.WINDOW:
            found.append(f"{said}: reach {layer['reach']}")
        if said == "full_attention" and layer["reach"] is not None:
            found.append(f"{said}: reach {layer['reach']}")
        if said in STATES and what not in ("state", "both"):
            found.append(f"{said}: {what}")
        if isinstance(encoding, Rotary) and what not in ("full", "part", "both"):
            found.append(f"Rotary: {what}")
        if isinstance(encoding, NoPosition) and what not in ("none", "state", "alone", "added"):
            found.append(f"NoPosition: {what}")
        if isinstance(encoding, ALiBi | T5Bias) and what != "bias":
            found.append(f"{type(encoding).__name__}: {what}")
        if isinstance(encoding, Learned) and not embedding:
            found.append("Learned: not in what the first layer reads")
    return list(dict.fromkeys(found))
