"""The golden vectors: inputs and right outputs in float64 for each encoding, made by this file.

They stand twice, with the same numbers: in ``golden/golden.json``, which every language reads, and in
``golden/golden.safetensors`` (8 bytes of length, a JSON header, raw numbers; the cases are its metadata).
:func:`write` makes both anew.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..attention import attention
from ..encodings import (
    ALiBi,
    Frequencies,
    Llama3,
    MRoPE,
    NTKAware,
    PositionInterpolation,
    Rotary,
    T5Bias,
    XPos,
    YaRN,
    sinusoidal,
)
from ..encodings.pope import PoPE
from ..encodings.t5 import bucket
from . import attend as attends
from . import bias as biases
from .bias import Bias
from .evidence import Call
from .report import FAILED, Finding, Report, passed, undecided
from .rope import Rope
from .rotation import Diagnosis, _unique

FOLDER = Path(__file__).with_name("golden")
VERSION = 1
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 0.012, "bfloat16": 0.06}
D, POSITIONS = 16, (0, 1, 2, 3, 8, 100, 300)
ROPE = (
    "x at position p: the pair t (a, b) becomes factor·(a cos p·θ_t − b sin p·θ_t, a sin p·θ_t + b cos p·θ_t)"
)
SCORES = "softmax(q'kᵀ'/√d + bias, keys up to the query's own place) v"


def _x(*shape: int) -> Tensor:
    """Numbers from −2 to 2 that need no generator: multiples of 1/256, exact in each dtype but bfloat16."""
    n = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    return (((n * 7919 + 104729) % 1021 - 510).double() / 256).view(shape)


def _rope(theta: Any, layout: str, factor: float = 1.0, **parameters: Any) -> dict[str, Any]:
    x, p = _x(len(POSITIONS), D), torch.tensor(POSITIONS)
    return {
        "parameters": {"layout": layout, "theta": theta, "factor": factor, **parameters},
        "x": x,
        "positions": p,
    }


def _rotary(layout: str, **parameters: Any) -> dict[str, Any]:
    scaling = parameters.get("scaling")
    kinds: dict[str, Callable[..., Any]] = {
        "linear": lambda p: PositionInterpolation(p["factor"]),
        "ntk": lambda p: NTKAware(p["factor"]),
        "llama3": lambda p: Llama3(
            p["factor"], p["original_max_position_embeddings"], p["low_freq_factor"], p["high_freq_factor"]
        ),
        "yarn": lambda p: YaRN(
            p["factor"],
            p["original_max_position_embeddings"],
            ramp="rounded index" if p["truncate"] else "index",
        ),
    }
    its: Any = Frequencies(
        D,
        parameters.get("base", 1e4),
        parameters.get("rotary_dim"),
        kinds[scaling["rope_type"]](scaling) if scaling else None,
    )
    case = _rope(its.theta().tolist(), layout, its.attention_factor, head_dim=D, base=1e4) | {
        "equation": ROPE
    }
    case["parameters"] |= parameters
    x, p = case["x"], case["positions"]
    turned: Any = Rotary(D, layout=layout, frequencies=its)
    case["y"] = turned.rotate(x[None, None], x[None, None], p, p)[0][0, 0]
    return case


def _mrope(order: str, sections: tuple[int, ...]) -> dict[str, Any]:
    its: Any = MRoPE(D, sections=sections, order=order)
    x = _x(len(POSITIONS), D)
    p = torch.tensor([[p, (3 * p) % 7, (5 * p) % 11] for p in POSITIONS])
    parameters = {"layout": "half", "head_dim": D, "base": 1e4, "sections": list(sections), "order": order}
    parameters |= {"theta": its.theta().tolist(), "axis_of_each_pair": its.reads()}
    turned: Any = Rotary(D, layout="half", frequencies=its)
    y = turned.rotate(x[None, None], x[None, None], p, p)[0][0, 0]
    equation = "RoPE whose pair t reads p[axis_of_each_pair[t]]"
    return {"equation": equation, "parameters": parameters, "x": x, "positions": p, "y": y}


def _alibi(n: int) -> dict[str, Any]:
    p = torch.arange(7).double()
    its: Any = ALiBi(n)
    equation = "bias[h, i, j] = −slopes[h]·(i − j) for j ≤ i; what stands above is masked"
    return {"equation": equation, "parameters": {"heads": n, "slopes": list(its.m)}, "y": its.bias(p, p)}


def _t5(bidirectional: bool) -> dict[str, Any]:
    r = torch.tensor(
        [
            -1000,
            -128,
            -113,
            -112,
            -91,
            -90,
            -64,
            -17,
            -16,
            -15,
            -9,
            -8,
            -7,
            -1,
            0,
            1,
            7,
            8,
            15,
            16,
            90,
            91,
            128,
        ]
    )
    parameters = {"bidirectional": bidirectional, "n_buckets": 32, "max_distance": 128}
    y = bucket(r, bidirectional=bidirectional)
    return {
        "equation": "y = bucket(r), r = key position − query position",
        "parameters": parameters,
        "r": r,
        "y": y,
    }


def _attention(its: Any, equation: str, **parameters: Any) -> dict[str, Any]:
    q, k, v = _x(3, 2, 6, D).unbind(0)
    k, v = k.flip(-1), v.flip(0)
    y: Tensor = attention(q[None], k[None], v[None], its.double(), causal=True, backend="eager")[0].detach()
    return {"equation": equation, "parameters": {"heads": 2, **parameters}, "q": q, "k": k, "v": v, "y": y}


def _t5_bias() -> T5Bias:
    its = T5Bias(2, n_buckets=8, max_distance=16)
    its.b.data = _x(2, 8).float()
    return its


def cases() -> dict[str, dict[str, Any]]:
    """All of them, computed now: parameters and equation, and float64 tensors."""
    L, llama = 64, {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": L}
    p = torch.tensor(POSITIONS)
    made = {
        "sinusoidal": {
            "equation": "y[p, 2t] = sin(p·ω_t), y[p, 2t+1] = cos(p·ω_t), ω_t = 10000^(−2t/d)",
            "parameters": {"d": D, "base": 1e4},
            "positions": p,
            "y": sinusoidal(p.double(), D),
        },
        "rope_half": _rotary("half"),
        "rope_interleaved": _rotary("interleaved"),
        "rope_base_500000": _rotary("half", base=5e5),
        "rope_partial": _rotary("half", rotary_dim=8),
        "rope_linear": _rotary("half", scaling={"rope_type": "linear", "factor": 8.0}),
        "rope_ntk": _rotary("half", scaling={"rope_type": "ntk", "factor": 4.0}),
        "rope_llama3": _rotary(
            "half",
            base=5e5,
            scaling={"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": L, **llama},
        ),
        "rope_yarn": _rotary("half", scaling=yarn | {"truncate": True}),
        "rope_yarn_not_truncated": _rotary("half", scaling=yarn | {"truncate": False}),
        "mrope_chunked": _mrope("chunked", (4, 2, 2)),
        "mrope_interleaved": _mrope("interleaved", (4, 2, 2)),
        "alibi_4_heads": _alibi(4),
        "alibi_6_heads": _alibi(6),
        "t5_buckets_causal": _t5(False),
        "t5_buckets_bidirectional": _t5(True),
        "attention_rope_half": _attention(Rotary(D, layout="half"), SCORES, layout="half", base=1e4),
        "attention_alibi": _attention(ALiBi(2), SCORES),
        "attention_t5": _attention(
            _t5_bias(), "softmax(q kᵀ + table[h, bucket(j − i)]) v, without 1/√d", n_buckets=8,
            max_distance=16, table=_x(2, 8).tolist(),
        ),
        "attention_xpos": _attention(
            XPos(D, layout="interleaved"), "RoPE, and q·ζ^(m/512), k·ζ^(−n/512)", layout="interleaved"
        ),
        "attention_pope": _attention(
            PoPE(2, D), "Σ_c softplus(q_c)·softplus(k_c)·cos((n − m)·10000^(−c/d)) / √d, δ = 0"
        ),
    }  # fmt: skip
    for case in made.values():
        integer = not case["y"].is_floating_point()
        case["tolerance"] = dict.fromkeys(TOLERANCE, 0) if integer else TOLERANCE
    return made


# ---- files ----
def write(folder: Path = FOLDER) -> None:
    """Both files, from what this library computes."""
    made = cases()
    described: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for name, case in made.items():
        described[name] = {key: value for key, value in case.items() if not isinstance(value, Tensor)}
        tensors |= {f"{name}/{key}": value for key, value in case.items() if isinstance(value, Tensor)}
    whole = {
        name: {
            **described[name],
            **{key: v.tolist() for key, v in made[name].items() if isinstance(v, Tensor)},
        }
        for name in made
    }
    text = json.dumps({"version": VERSION, "cases": whole}, ensure_ascii=False, separators=(",", ":"))
    (folder / "golden.json").write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
    metadata = {"version": str(VERSION), "cases": json.dumps(described, ensure_ascii=False)}
    (folder / "golden.safetensors").write_bytes(packed(tensors, metadata))


NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
}


def packed(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """A safetensors file: the length of the header, the header as JSON, the numbers, little-endian."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    raw = b""
    for name, tensor in tensors.items():
        numbers = bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(raw), len(raw) + len(numbers)],
        }
        raw += numbers
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + raw


def unpacked(data: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a safetensors file. ValueError for a dtype not in :data:`NAMES`."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata, tensors = header.pop("__metadata__", {}), {}
    dtypes = {name: dtype for dtype, name in NAMES.items()}
    for name, its in header.items():
        if its["dtype"] not in dtypes:
            raise ValueError(f"{name} is {its['dtype']}: save it as one of {', '.join(dtypes)}")
        start, end = its["data_offsets"]
        numbers = bytearray(data[8 + length + start : 8 + length + end])
        tensors[name] = torch.frombuffer(numbers, dtype=dtypes[its["dtype"]]).view(its["shape"])
    return tensors, metadata


def load(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The cases as they stand in golden.json, with tensors."""
    text = (folder / "golden.json").read_text(encoding="utf-8")
    read: dict[str, dict[str, Any]] = json.loads(text)["cases"]
    for case in read.values():
        for key in ("x", "positions", "y", "r", "q", "k", "v"):
            if key in case:
                whole = isinstance(torch.tensor(case[key]).flatten()[0].item(), int)
                case[key] = torch.tensor(case[key], dtype=torch.int64 if whole else torch.float64)
    return read


# ---- outputs of others ----
def check_outputs(path: str | Path, dtype: str | None = None) -> Report:
    """The report on a file with your outputs, ``{case: numbers}`` in JSON or tensors in safetensors.

    ``dtype`` says in which one they were computed; by default that of the tensors, and float32 for JSON.
    Raises ValueError, naming the cases there are, if none of them is in the file.
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        given = {name.removesuffix("/y"): tensor for name, tensor in unpacked(path.read_bytes())[0].items()}
    else:
        read = json.loads(path.read_text(encoding="utf-8"))
        dtype = dtype or read.pop("dtype", "float32")
        given = {name: torch.tensor(numbers, dtype=torch.float64) for name, numbers in read.items()}
    if dtype is not None and dtype not in TOLERANCE:
        raise ValueError(f"dtype={dtype!r}: it must be one of {', '.join(TOLERANCE)}")
    golden = load()
    if not given.keys() & golden.keys():
        raise ValueError(f"{path} has {', '.join(given) or 'nothing'}: give some of {', '.join(golden)}")
    report = Report(f"outputs in {path.name}")
    for name, case in golden.items():
        if name not in given:
            report.findings.append(undecided(name, "the file does not have it"))
            continue
        its = dtype or str(given[name].dtype).removeprefix("torch.")
        report.findings.append(_compared(name, case, given[name].double(), case["tolerance"].get(its, 0)))
    return report


def _compared(name: str, case: dict[str, Any], y: Tensor, tolerance: float) -> Finding:
    right = case["y"].double()
    if y.shape != right.shape:
        says = f"It has the shape {list(y.shape)}, and must have {list(right.shape)}."
        return Finding(name, FAILED, says)
    off = (y - right).abs().nan_to_num(float("inf"))
    if name.startswith("alibi"):  # the keys ahead are masked, and a softmax sees no constant of a row
        y, right = (_own(b) for b in (y, right))
        off = (y - right).abs().tril().nan_to_num(float("inf"))
    if bool((off <= tolerance).all()):
        return passed(name, f"Within {tolerance:g} of the golden values.")
    at = [int(i) for i in (off > tolerance).nonzero()[0]]
    shown = f"y{at}: yours {y[tuple(at)]:.6g}, right {right[tuple(at)]:.6g}"
    names, also = _names(name, case, y)
    says = "The numbers are those of a known bug." if names else "This is not one of the known bugs."
    return Finding(name, FAILED, says, names, also, shown, float(off.max()))


def _names(name: str, case: dict[str, Any], y: Tensor) -> tuple[tuple[str, ...], tuple[str, ...]]:
    its = case["parameters"]
    if name == "sinusoidal":  # (sin, cos) is (0, 1) turned backwards
        x = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(D // 2).expand(len(y), D)
        flip = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(D // 2)
        call = Call(x[None, None], case["positions"], (y * flip)[None, None].float())
        return Diagnosis(Rope(D, 1e4, "interleaved"), [call]).names([call])
    if name.startswith(("rope", "mrope")) and its.get("scaling", {}).get("rope_type") != "ntk":
        rope = Rope(
            D,
            its["base"],
            its["layout"],
            its.get("rotary_dim"),
            scaling=its.get("scaling"),
            sections=tuple(its["sections"]) if "sections" in its else None,
            order=its.get("order", "chunked"),
        )
        call = Call(case["x"][None, None], case["positions"], y[None, None].float())
        return Diagnosis(rope, [call]).names([call])
    if name.startswith("alibi"):
        wrongs = biases._wrong_alibi(its["heads"], Bias())
        return _unique(n for n, wrong in wrongs if _near((y - _own(wrong(7, 7))).tril())), ()
    if name.startswith("t5"):
        entries = torch.arange(256)[None]
        declared = Bias(causal=not its["bidirectional"])
        wrongs = biases._wrong_table(declared, entries, "t5", [biases._t5(declared, entries)])
        r = case["r"]
        return _unique(
            n for n, w in wrongs if w.scale == 1 and _near(y - w.of(-r if w.mirrored else r)[0])
        ), ()
    if name in ("attention_rope_half", "attention_alibi"):
        encoding = "rope" if "rope" in name else "alibi"
        search = attends._Search(Rope(D, 1e4, "half"), encoding, 2, True)
        q, k, v = (case[key][None].float() for key in "qkv")
        return search.names([attends._Call(q, k, v, y[None].float())])
    return (), ()


def _own(bias: Tensor) -> Tensor:
    return bias - bias.diagonal(dim1=-2, dim2=-1)[..., None]


def _near(difference: Tensor) -> bool:
    return bool((difference.abs() <= 1e-4).all())
