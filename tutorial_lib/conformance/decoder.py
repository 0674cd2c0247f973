"""A whole decoder, ``logits(tokens, positions?)`` or any model of Transformers: what its numbers give away.

Nobody can predict the logits of unknown weights. But what a decoder computes without a cache says what it
must compute with one, and alone what padded or packed; and with other positions, what a bug would make of it.
A rotary module that stands in the model is looked at for itself, against the config.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from .clocks import check_clocks
from .report import FAILED, OPEN, Finding, Report, passed, undecided
from .rope import Rope
from .rotation import check_rotation

L = 12
NAMES = {
    "positions": ("position_ids", "positions", "position"),
    "mask": ("attention_mask", "keep", "padding_mask", "mask"),
    "documents": ("documents", "document_ids", "segment_ids", "seq_idx"),
    "cache": ("past_key_values", "cache", "past", "past_kv"),
}


class Decoder:
    """What can be asked: it finds out by the names of the parameters of ``given``."""

    def __init__(self, given: Callable[..., Any], vocab: int | None, cache: Callable[[], Any] | None):
        function = getattr(given, "forward", given)
        signature = inspect.signature(function).parameters
        known = list(signature)
        self.given, self.new_cache = given, cache
        self.has = {what: name for what, names in NAMES.items() for name in names[::-1] if name in known}
        its = self.has.get("positions")
        self.always = its is not None and signature[its].default is inspect.Parameter.empty
        self.extra: dict[str, Any] = {"use_cache": True} if "use_cache" in known else {}
        config: Any = getattr(given, "config", None)
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        self.config: Any = config
        self.vocab = vocab or getattr(config, "vocab_size", None) or 50
        generator = torch.Generator().manual_seed(0)
        first = min(5, self.vocab // 2)  # not the special ones
        self.tokens = torch.randint(first, self.vocab, (1, L), generator=generator)
        if isinstance(given, nn.Module):
            given.eval()
            self.tokens = self.tokens.to(next((p.device for p in given.parameters()), torch.device("cpu")))
        self.full = self(self.tokens)
        low = self.full.dtype.itemsize < 4
        scale = float((self.full - self.full.mean(1, True)).abs().max())
        self.tolerance = (2e-2 if low else 3e-5) * scale + 1e-7
        others = (self(self.tokens[:, : L - 4]), self.full[:, : L - 4]), (self.some(3), self.full)
        noise = max(self.off(*pair) for pair in others)  # of many layers, or experts, with other shapes
        if noise <= 1e-3 * scale:
            self.tolerance = max(self.tolerance, 10 * noise)
        self.blind = ""
        if "positions" in self.has:  # untrained weights hardly look at positions: then nothing can be seen
            other = self(self.tokens, positions=(torch.arange(L)[None] * 5) % L)
            if self.off(other, self.full) < 50 * self.tolerance:
                self.blind = (
                    "its logits hardly depend on positions (untrained weights, or no encoding at all?)"
                )

    def __call__(self, tokens: Tensor, cache: Any = None, **options: Any) -> Tensor:
        return self.with_cache(tokens, cache, **options)[0]

    def with_cache(self, tokens: Tensor, cache: Any, at: int = 0, **options: Any) -> tuple[Tensor, Any]:
        """Logits, and the cache after them; ``at`` is the number of tokens in it."""
        if self.always:
            options = {"positions": torch.arange(at, at + tokens.shape[1])[None], **options}
        asked = {self.has[name]: value.to(tokens.device) for name, value in options.items()}
        if cache is not None:
            asked[self.has["cache"]] = cache
        with torch.no_grad():
            out = self.given(tokens.clone(), **asked, **self.extra)
        past = getattr(out, "past_key_values", cache)
        if isinstance(out, (tuple, list)):
            out, past = out[0], out[1] if len(out) > 1 else cache
        logits = getattr(out, "logits", getattr(out, "last_hidden_state", out))
        if not isinstance(logits, Tensor) or logits.shape[:2] != tokens.shape:
            what = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ValueError(
                f"logits(tokens {tuple(tokens.shape)}) gave {what}: it must be [batch, length, vocab]"
            )
        return logits, past

    def at(self, positions: Tensor) -> Tensor:
        """The logits of all tokens at other positions."""
        return self(self.tokens, positions=positions)

    def last(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The logits of each row's last token."""
        return self(tokens.to(self.tokens.device), positions=positions)[:, -1].cpu()

    def gives(self, logits: Tensor, *positions: Tensor) -> bool:
        """Whether the tokens have these logits at some of these positions."""
        return any(self.off(self.at(each), logits) <= 10 * self.tolerance for each in positions)

    def some(self, rows: int) -> Tensor:
        """The logits of the first of so many equal rows, or of one, if it takes no more."""
        try:
            return self(self.tokens.expand(rows, -1))[:1]
        except Exception:
            return self.full

    def off(self, a: Tensor, b: Tensor) -> float:
        return float((a.double() - b.double()).abs().nan_to_num(float("inf")).max())


def check_decoder(
    given: Callable[..., Any],
    *,
    vocab: int | None = None,
    relative: bool | None = None,
    cache: Callable[[], Any] | None = None,
    causal: bool = True,
    window: int | None = None,
    rope: Rope | None = None,
    reference: Callable[..., Any] | None = None,
) -> Report:
    """The report on a decoder.

    ``relative`` says that distances alone count, ``cache`` makes an empty one, ``window`` is the number of
    keys that a cache keeps when it drops others, ``rope`` is that of all its layers. ``reference``
    is a decoder with the same weights that is right, such as the one that this is a port of.
    """
    if window is not None and not 1 < window <= 128:
        raise ValueError(f"window={window}: it must be 2 … 128, since it is filled token by token")
    decoder = Decoder(given, vocab, cache)
    original = None if reference is None else Decoder(reference, vocab, cache)
    report = Report(f"{type(given).__name__ if isinstance(given, nn.Module) else 'logits(tokens)'}")
    rotary = list(rotary_reports(given, decoder.config)) if isinstance(given, nn.Module) else []
    if relative is None and rotary:
        relative = all(known is not None for _, known in rotary)
        relative = relative and not _learned(given)
    golden, dtype = _inside(rotary)
    right_clocks = False
    if rope is not None and golden.status == OPEN and "positions" in decoder.has:
        try:
            golden, right_clocks = check_clocks(decoder.last, decoder.vocab, rope)
        except Exception as error:  # a table may end before
            because = f"positions up to 2500 raised {type(error).__name__}: {error}"[:200]
            golden = undecided("golden values", because)
    if original is not None and golden.status == OPEN:
        golden = _beside(decoder, original, rope, right_clocks)
    if "inv_freq never filled" in golden.bugs or not bool(decoder.full.isfinite().all()):
        others = ("shift", "causality", "cache", "padding", "packing")
        because = "its logits are made of frequencies that were never filled, or are not finite"
        report.findings = [golden, *(undecided(each, because) for each in others), dtype]
        return report
    report.findings = [
        golden,
        _shift(decoder, relative),
        _causality(decoder, causal),
        _cache(decoder, window),
        _padding(decoder, original),
        _packing(decoder),
        (None if dtype.status == FAILED else _in_16_bits(decoder)) or dtype,
    ]
    return report


def _learned(given: Any) -> bool:
    names = ("wpe", "embed_positions", "position_embeddings", "position_embedding")
    return any(
        name.rpartition(".")[2] in names for name, m in given.named_modules() if isinstance(m, nn.Embedding)
    )


# ---- the rotary modules inside ----
def rotary_reports(model: nn.Module, config: Any) -> Iterator[tuple[str, Report | None]]:
    """The report on each rotary module, by its name (and kind of layer); None if the config says nothing."""
    for name, module in model.named_modules():
        names = [key for key, _ in module.named_buffers(recurse=False) if key.endswith("inv_freq")]
        kinds = [key.removesuffix("_inv_freq") for key in names if "original" not in key]
        for kind in kinds:
            where = name if kind == "inv_freq" else f"{name} ({kind})"
            yield where, _of_module(module, config, None if kind == "inv_freq" else kind)


def _of_module(module: nn.Module, config: Any, kind: str | None) -> Report | None:
    its = getattr(module, "config", config)
    parameters = getattr(its, "rope_parameters", None) or getattr(its, "rope_scaling", None)
    base = getattr(its, "rope_theta", None)
    others: dict[str, Any] = {}
    if isinstance(parameters, Mapping) and kind in parameters:
        others = {
            key: value for key, value in parameters.items() if key != kind and isinstance(value, Mapping)
        }
        parameters = parameters[kind]
    if not isinstance(parameters, Mapping):
        parameters = {"rope_type": "default"}
    parameters = {"rope_theta": base, **parameters}
    if parameters["rope_theta"] is None:
        return None
    try:
        rotate, d, layout = _as_rotation(module, kind)
        share = {"partial_rotary_factor": None}  # the module knows its own size
        report = check_rotation(rotate, Rope(d, layout=layout, scaling={**parameters, **share}))
        if not report.ok:
            for other in others.values():
                if check_rotation(rotate, Rope(d, layout=layout, scaling={**other, **share})).ok:
                    wrong = replace(report.findings[0], bugs=("scaling in the wrong layers",))
                    report.findings[0] = wrong
        return report
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, IndexError):
        return None


def _as_rotation(module: nn.Module, kind: str | None) -> tuple[Callable[[Tensor, Tensor], Tensor], int, str]:
    """``rotate(x, positions)`` of a module that gives cosines and sines, its channels and their layout."""
    extra = () if kind is None else (kind,)

    def cos_sin(x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = positions[None] if positions.ndim == 1 else positions
        given = module(x.reshape(-1, *x.shape[-2:])[:1], rows, *extra)
        if isinstance(given, Tensor) and given.is_complex():
            return given.real, given.imag
        return given[0], given[1]

    device = next((b.device for b in module.buffers()), torch.device("cpu"))
    n = next(len(b) for name, b in module.named_buffers() if name.endswith("inv_freq"))
    probe = cos_sin(torch.zeros(1, 1, 3, 2 * n, device=device), torch.arange(3, device=device))[1][0]
    doubled = probe.shape[-1] == 2 * n
    layout = "interleaved" if doubled and n > 1 and bool((probe[1, 0::2] == probe[1, 1::2]).all()) else "half"

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = (part[:, None] for part in cos_sin(x.to(device), positions.to(device)))
        if doubled:
            cos, sin = (p[..., 0::2] if layout == "interleaved" else p[..., :n] for p in (cos, sin))
        a, b = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else x.to(device).chunk(2, -1)
        parts = (a * cos - b * sin, a * sin + b * cos)
        turned = torch.stack(parts, -1).flatten(-2) if layout == "interleaved" else torch.cat(parts, -1)
        return turned.to(x.dtype).cpu()

    return rotate, 2 * n, layout


def _inside(rotary: list[tuple[str, Report | None]]) -> tuple[Finding, Finding]:
    known = [(name, report) for name, report in rotary if report is not None]
    if not known:
        because = "logits of unknown weights have no right numbers, and no rotary module was recognised"
        return undecided("golden values", because), undecided("dtype", because + ": give its rotation")
    found = []
    for promise in ("golden values", "dtype"):
        wrong = [(name, report[promise]) for name, report in known if report[promise].status == FAILED]
        if wrong:
            name, finding = wrong[0]
            found.append(replace(finding, says=f"In {name}: {finding.says}"))
        else:
            names = ", ".join(dict.fromkeys(name for name, _ in known))
            of = {"golden values": "turns by the angles of the config", "dtype": "keeps them in 16 bits"}
            found.append(passed(promise, f"{names} {of[promise]}; the layers around it are not tested."))
    return found[0], found[1]


# ---- beside a right one ----
def _beside(decoder: Decoder, original: Decoder, rope: Rope | None, right_clocks: bool) -> Finding:
    """Are the logits those of the reference? If not: are they those that it has at the positions of a bug?"""
    error = decoder.off(decoder.full, original.full)
    if error <= 10 * decoder.tolerance:
        return passed("golden values", f"Logits are those of the reference, for {L} tokens.")
    p = torch.arange(L)[None]
    if "positions" in decoder.has and decoder.off(decoder.at(p), original.full) <= 10 * decoder.tolerance:
        return passed("golden values", f"At positions 0 … {L - 1} logits are those of the reference.")
    mirrored = ("sign",) if rope is not None else ("sign", "bias sign", "table read i − j")
    rules = [
        (mirrored, -p),
        (("turned twice", "positions doubled"), 2 * p),
        (("inv_freq never filled", "no position"), 0 * p),
        (("positions from 1",), p + 1),
    ]
    if rope is None:
        rules += [(("bias before the scale",), p / d**0.5) for d in (4, 8, 16, 32, 64, 128)]
        rules += [(("slopes from 1",), p * 2 ** (8 / n)) for n in (4, 6, 8, 12, 16, 32)]
    names = tuple(name for each, wrong in rules if _has(original, wrong, decoder) for name in each)
    says = "Logits are not those of the reference."
    if not names:
        try:
            names = _unlike(decoder, original, rope, right_clocks)
        except Exception:  # a table has no such row
            names = ()
        says += " No other positions explain it" + (
            ", but at equal positions they are the same."
            if names
            else ": compare layout, base and slopes, then what is not position."
        )
    return Finding("golden values", FAILED, says, names, shown=f"{L} tokens", error=error)


def _unlike(decoder: Decoder, original: Decoder, rope: Rope | None, right_clocks: bool) -> tuple[str, ...]:
    """What distances do to the logits differs, and nothing else: what does it, if that can be known?"""
    p = torch.arange(L)[None]
    if not (decoder.gives(original.at(0 * p), 0 * p) and decoder.gives(decoder.full, p + 3)):
        return ()
    if rope is not None:
        if not right_clocks:
            return ()
        partial = rope.rotary_dim not in (None, rope.head_dim)  # each θ turns two channels, but which?
        return ("layout", "frequencies reversed", *(["partial part"] if partial else []))
    two, alone = decoder.tokens[:, :2], decoder.tokens[:, 1:2]
    far, near = torch.tensor([[0, 100_000]]), torch.tensor([[0, 1]])
    lone = decoder.last(alone, far[:, 1:])
    off = [decoder.off(decoder.last(two, each), lone) for each in (far, near)]
    return ("slopes",) if off[0] <= decoder.tolerance < off[1] else ()


def _has(original: Decoder, positions: Tensor, decoder: Decoder) -> bool:
    """Whether the reference has the decoder's logits at these positions."""
    try:
        return decoder.off(original.at(positions), decoder.full) <= 10 * decoder.tolerance
    except Exception:  # a table has no such row
        return False


# ---- promises ----
def _shift(decoder: Decoder, relative: bool | None) -> Finding:
    if "positions" not in decoder.has:
        return undecided("shift", "it takes no positions (position_ids=… or positions=…)")
    p, tolerance = torch.arange(L)[None], 10 * decoder.tolerance  # float32 angles lose some far out
    try:
        off = decoder.off(decoder.at(p), decoder.full)
    except Exception as error:
        return undecided("shift", f"positions raised {type(error).__name__}: {error}"[:200])
    if off > tolerance:
        says = "With positions 0, 1, 2, … given, logits are not those without positions."
        rules = {
            "positions from 1": (p + 1,),
            "positions lag by one": ((p - 1).clamp(min=0),),
            "one position for the chunk": (p * 0 + L - 1, p * 0),
        }
        found = [name for name, wrongs in rules.items() if decoder.gives(decoder.full, *wrongs)]
        return Finding("shift", FAILED, says, tuple(found), shown=f"{L} tokens", error=off)
    if decoder.blind:
        names = ("no position", "inv_freq never filled")
        return undecided(
            "shift", decoder.blind, names if relative and decoder.full.dtype.itemsize >= 4 else ()
        )
    errors = {}
    for by in (3, 17, 300):
        try:
            errors[by] = decoder.off(decoder.at(p + by), decoder.full)
        except Exception as error:
            if not errors:
                return undecided("shift", f"positions raised {type(error).__name__}: {error}"[:200])
    worst = max(errors.values())
    if worst <= tolerance:
        return passed("shift", f"Logits stay when all positions move by up to {max(errors)}.")
    if not relative:
        because = (
            f"logits change by {worst:.3g} when all positions move, which is right for absolute positions"
        )
        return undecided("shift", f"{because} and a bug for relative ones: say relative=True if yours are")
    by = next(by for by, error in errors.items() if error > tolerance)
    says = f"Only distances should count, but logits change by {worst:.3g} when all positions move."
    shown = f"{L} tokens, positions + {by}"
    return Finding("shift", FAILED, says, _moved_names(decoder, errors[3]), shown=shown, error=worst)


def _moved_names(decoder: Decoder, error: float) -> tuple[str, ...]:
    """What makes logits depend on where a text begins; ``error`` is what a move by 3 changes."""
    if error <= 0.1 * decoder.off(decoder.at((torch.arange(L)[None] * 5) % L), decoder.full):
        return "angles in half precision", "positions in bf16"

    def last(*positions: int) -> Tensor:
        given = torch.tensor([positions])
        return decoder(decoder.tokens[:, : len(positions)], positions=given)[:, -1]

    def differ(a: Tensor, b: Tensor) -> bool:
        return decoder.off(a, b) > 10 * decoder.tolerance

    if differ(last(0), last(3)) or differ(last(0), last(17)):  # one key has all the weight, whatever turns
        return ("values turned",)
    if not differ(last(0, 17), last(3, 17)):  # the first token is a key alone
        return ("only queries turned",)
    return "only keys turned", "queries against keys", "mixed layouts"


def _causality(decoder: Decoder, causal: bool) -> Finding:
    if not causal:
        return undecided("causality", "it was declared that all tokens see each other")
    tokens = decoder.tokens.clone()
    tokens[:, -1] = (tokens[:, -1] + 1) % decoder.vocab
    change = decoder.off(decoder(tokens)[:, :-1], decoder.full[:, :-1])
    if change <= decoder.tolerance / 10:
        return passed("causality", "No token's logits depend on the tokens behind it.")
    says = f"Changing the last token changes earlier logits by {change:.3g}."
    return Finding("causality", FAILED, says, ("future seen",), shown="12 tokens", error=change)


def _cache(decoder: Decoder, window: int | None) -> Finding:
    if "cache" not in decoder.has:
        return undecided("cache", "it takes no cache (past_key_values=… or cache=…)")
    steps = (7, 1, 1, 3)
    parts, at = [], 0
    try:
        past = decoder.new_cache() if decoder.new_cache is not None else None
        for n in steps:
            logits, past = decoder.with_cache(decoder.tokens[:, at : at + n], past, at)
            if past is None:
                return undecided("cache", "it gave no cache back (say cache=… to make an empty one)")
            parts.append(logits)
            at += n
    except Exception as error:
        return undecided("cache", f"with a cache it raised {type(error).__name__}: {error}"[:200])
    errors = [
        decoder.off(part, decoder.full[:, a : a + n])
        for part, a, n in zip(parts, (0, 7, 8, 9), steps, strict=True)
    ]
    if max(errors) <= decoder.tolerance:
        if decoder.blind:
            return undecided("cache", decoder.blind)
        if window is not None and (evicted := _evicts(decoder, window)) is not None:
            return evicted
        return passed("cache", "One by one, or three at once behind a cache: the logits are the same.")
    step = next(i for i, error in enumerate(errors) if error > decoder.tolerance)
    shown = f"{steps[step]} token(s) behind {sum(steps[:step])} cached ones"
    says = "With a cache logits are not those without it."
    names = _cached_names(decoder, parts, steps)
    return Finding("cache", FAILED, says, names, (), shown, max(errors))


def _cached_names(decoder: Decoder, parts: list[Tensor], steps: tuple[int, ...]) -> tuple[str, ...]:
    """What the same tokens give without a cache at the positions that a bug would count."""
    unknown = (
        "positions restart",
        "positions lag by one",
        "one position for the chunk",
        "mask starts at the top",
    )
    if "positions" not in decoder.has:
        return unknown
    starts = [sum(steps[:i]) for i in range(len(steps))]
    right = [torch.arange(a, a + n) for a, n in zip(starts, steps, strict=True)]
    rules: dict[str, list[Callable[[Tensor], Tensor]]] = {
        "positions restart": [lambda p: p - p[0]],
        "positions lag by one": [lambda p: p - 1, lambda p: p + 1],
        "one position for the chunk": [lambda p: p[-1:].expand(len(p)), lambda p: p[:1].expand(len(p))],
    }
    found = []
    for name, changes in rules.items():
        for change in changes:
            changed = [change(each).clamp(min=0) for each in right]
            wrongs = torch.cat([right[0], *changed[1:]]), torch.cat(changed)
            if decoder.gives(torch.cat(parts, 1), *(wrong[None] for wrong in wrongs)):
                found.append(name)
    if not found and decoder.new_cache is not None:
        behind = [_behind(decoder, *three) for three in ((7, 8, 9), (9, 9, 9), (7, 7, 7))]
        last, first = (decoder.off(behind[0], each) <= decoder.tolerance for each in behind[1:])
        if last != first:
            found.append("one position for the chunk")
    return tuple(dict.fromkeys(found))


def _behind(decoder: Decoder, *positions: int) -> Tensor:
    """Logits of three tokens at these positions, behind seven in a cache."""
    assert decoder.new_cache is not None
    _, past = decoder.with_cache(decoder.tokens[:, :7], decoder.new_cache())
    return decoder.with_cache(decoder.tokens[:, 7:10], past, 7, positions=torch.tensor([positions]))[0]


def _padding(decoder: Decoder, original: Decoder | None) -> Finding:
    if (rows := _rows(decoder)) is not None:
        return rows
    if "mask" not in decoder.has:
        return undecided("padding", "it takes no mask of the padding (attention_mask=…)")
    pad = 4
    filler = decoder.tokens[:, :1].expand(1, pad)
    tokens = torch.cat([filler, decoder.tokens], 1)
    keep = torch.cat([torch.zeros(1, pad), torch.ones(1, L)], 1).bool()
    others = (tokens + (~keep).long().to(tokens.device)) % decoder.vocab
    p = (keep.long().cumsum(-1) - 1).clamp(min=0)
    masks = [keep.long(), keep] if decoder.has["mask"] == "attention_mask" else [keep, ~keep]
    error = ""
    seen = torch.inf
    for each in masks:  # some want numbers, some truth values, and some say what is hidden
        try:
            plain, other = decoder(tokens, mask=each)[:, pad:], decoder(others, mask=each)[:, pad:]
        except Exception as raised:
            error = error or f"a mask raised {type(raised).__name__}: {raised}"[:200]
            continue
        if decoder.off(other, plain) < seen:
            seen, mask = decoder.off(other, plain), each
        if seen <= decoder.tolerance:
            break
    if seen == torch.inf:
        return undecided("padding", error or "with a mask its logits are not finite")
    shown = f"{pad} padded tokens before {L} others"
    plain = decoder(tokens, mask=mask)[:, pad:]
    right = decoder.full
    if "positions" in decoder.has:  # without them it may have another bug, which is named elsewhere
        right = decoder.at(torch.arange(L)[None])
    moved = decoder.off(plain, right)
    if seen > decoder.tolerance:
        says = "Other padding gives other logits, although the mask hides it."
        return Finding("padding", FAILED, says, ("padding seen",), shown=shown, error=seen)
    if moved <= decoder.tolerance:
        return passed("padding", "Padding on the left changes nothing.")
    told = decoder(tokens, mask=mask, positions=p)[:, pad:] if "positions" in decoder.has else plain
    if decoder.off(told, right) <= decoder.tolerance:
        if hasattr(decoder.given, "generate"):  # which gives them
            return passed("padding", "Padding on the left changes nothing, if positions are given.")
        if original is not None and "mask" in original.has:
            if decoder.off(original(tokens, mask=mask)[:, pad:], right) <= 10 * decoder.tolerance:
                says = "The padding on the left is counted, and the reference does not count it."
                return Finding("padding", FAILED, says, ("left padding counted",), shown=shown, error=moved)
        says = "padding on the left changes nothing if positions are given, and without them it is counted"
        return undecided("padding", f"{says}: do its callers give them?", ("left padding counted",))
    says = "Behind padding on the left the logits are others."
    return Finding("padding", FAILED, says, ("left padding counted",), shown=shown, error=moved)


def _rows(decoder: Decoder) -> Finding | None:
    """A failure where the rows of a batch get the positions of the first one."""
    if "positions" not in decoder.has or decoder.blind:
        return None
    p = torch.arange(L)[None]
    other = (p * 5) % L
    try:
        both = decoder(decoder.tokens.expand(2, -1), positions=torch.cat([p, other]))[1:]
    except Exception:
        return None  # it takes one row
    if decoder.off(both, decoder.at(other)) <= decoder.tolerance or not decoder.gives(both, p):
        return None
    says = "In a batch the second row has the logits that it would have at the positions of the first one."
    shown = f"positions [[0, 1, 2, …], {other[0, :3].tolist()}…]"
    return Finding("padding", FAILED, says, ("rows share positions",), shown=shown)


def _packing(decoder: Decoder) -> Finding:
    a = 5
    document = (torch.arange(L) >= a).long()
    alone = decoder(decoder.tokens[:, a:])
    if "documents" in decoder.has:
        options = {"documents": document[None]}
    elif "positions" in decoder.has and "mask" in decoder.has:
        allowed = (document[:, None] == document) & torch.ones(L, L).tril().bool()
        lowest = torch.finfo(decoder.full.dtype).min
        mask = torch.zeros(L, L, dtype=decoder.full.dtype).masked_fill(~allowed, lowest)
        p = torch.cat([torch.arange(a), torch.arange(L - a)])[None]
        options = {"positions": p, "mask": mask[None, None]}
    else:
        return undecided("packing", "it takes no documents=…, or no positions and a mask to keep them apart")
    try:
        packed = decoder(decoder.tokens, **options)[:, a:]
        other = torch.cat([(decoder.tokens[:, :a] + 1) % decoder.vocab, decoder.tokens[:, a:]], 1)
        seen = decoder.off(decoder(other, **options)[:, a:], packed)
    except Exception as error:
        what = "documents" if "documents" in options else "a mask [1, 1, L, L]"
        return undecided("packing", f"{what} raised {type(error).__name__}: {error}"[:150])
    off = decoder.off(packed, alone)
    if off <= decoder.tolerance:
        return passed("packing", "A second document in the row has the logits that it has alone.")
    shown = f"documents of {a} and {L - a} tokens"
    if seen > decoder.tolerance:
        if "documents" in options:
            says = "A second document sees the first one."
            return Finding("packing", FAILED, says, ("documents seen",), shown=shown, error=seen)
        return undecided(
            "packing", "a mask [1, 1, L, L] does not hide the first document from the second here"
        )
    says = "A second document does not have the logits that it has alone, although it sees nothing else."
    if (
        "positions" in decoder.has
        and not decoder.off(packed, decoder(decoder.tokens[:, a:], positions=torch.arange(a, L)[None]))
        <= decoder.tolerance
    ):
        return Finding("packing", FAILED, says, shown=shown, error=off)
    says = "A second document counts on from the first."
    return Finding("packing", FAILED, says, ("packing",), shown=shown, error=off)


def _evicts(decoder: Decoder, window: int) -> Finding | None:
    """A failure where a cache that has dropped keys is not like one that is just full.

    Many equal tokens have equal hidden states in all layers, wherever they stand. So one that comes behind
    them sees the same whether or not some of them are gone.
    """
    same, other = decoder.tokens[0, 0], (decoder.tokens[0, 0] + 1) % decoder.vocab

    def behind(n: int) -> Tensor:
        tokens = torch.cat([same.repeat(n), other[None]])[None]
        if decoder.new_cache is None:
            return decoder(tokens)[:, -1]
        past = decoder.new_cache()
        for at in range(n + 1):
            logits, past = decoder.with_cache(tokens[:, at : at + 1], past, at)
        return logits[:, -1]

    full = behind(window - 1)
    later = [behind(n) for n in (window, 3 * window, 3 * window + 3)]
    error = max(decoder.off(each, full) for each in later)
    if error <= decoder.tolerance:
        return None
    names = ["keys not turned", "keys turned anew"]
    if decoder.off(later[2], later[1]) > decoder.tolerance:  # and it goes on: absolute places show
        names += ["only keys turned", "only queries turned"]
    says = "A token sees the same keys, but once others have left the cache its logits are others."
    shown = f"one token behind {window} equal ones, and behind {window - 1}"
    return Finding("cache", FAILED, says, tuple(names), shown=shown, error=error)


def _in_16_bits(decoder: Decoder) -> Finding | None:
    """A failure where positions that 16 bits round to one number give the same logits."""
    if "positions" not in decoder.has or decoder.blind:
        return None
    for dtype, start in ((torch.bfloat16, 256), (torch.float16, 2048)):
        p = start + torch.arange(L)[None]
        rounded = p.to(dtype).long()
        try:
            far = decoder.off(decoder.at(p), decoder.at(rounded))
            near = decoder.off(decoder.at(p - start), decoder.at(rounded - start))
        except Exception:  # a table may end before
            return None
        if far <= decoder.tolerance < near / 50:
            says = f"Positions that {str(dtype)[6:]} rounds to one number have the same logits."
            shown = f"positions {start} … {start + L - 1}"
            return Finding("dtype", FAILED, says, ("positions in bf16",), shown=shown, error=near)
    return None
