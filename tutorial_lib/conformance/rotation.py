"""``rotate(x, positions)``: which RoPE it is, or which bug it has."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..language import _
from .evidence import Call, Subject, changed, fit
from .report import FAILED, OPEN, PASSED, Finding, Report, passed, undecided
from .rope import BASES, Measured, Rope, Turn, mutations

Names = tuple[str, ...]


def check_rotation(function: Callable[..., Any], rope: Rope, axes: str | None = None) -> Report:
    """The report on ``function(x, positions)``."""
    subject = Subject(function, rope.head_dim, axes, len(rope.sections) if rope.sections else 1)
    calls = subject.reach()
    singles = [subject(subject.x[..., i : i + 1, :], subject.where(0, 12)[i : i + 1]) for i in (0, 1, 5)]
    report = Report("rotate(x, positions)")
    if len(calls) < 2:
        raise ValueError(f"it raised an error for 12 tokens: {subject.chunk(0).error}")
    report.measured["positions tested up to"] = int(max(call.positions.max() for call in calls))
    diagnosis = Diagnosis(rope, calls)
    golden = diagnosis.golden([*calls, *(call for call in singles if call.y is not None)])
    report.measured |= diagnosis.measured
    report.findings = [
        golden,
        _shift(calls, golden),
        _causality(subject),
        _cache(calls, singles, diagnosis),
        _padding(subject, diagnosis),
        _packing(subject, diagnosis),
        _dtype(subject, diagnosis),
    ]
    return report


class Diagnosis:
    """What is right for what was declared and measured, which of it fits, and which bugs do."""

    def __init__(self, rope: Rope, calls: Sequence[Call]):
        self.rope, self.calls, self.measured = rope, calls, dict[str, Any]()
        near = next((call for call in calls if int(call.positions.flatten()[0]) == 0), calls[0])
        assert near.y is not None
        turned = (torch.stack([call.y[0, -1] != call.x[0, -1] for call in calls if call.y is not None])).any(
            0
        )
        self.channels = turned.any(0).nonzero().flatten().tolist()
        d, part = rope.rotary_dim or rope.head_dim, rope.part
        n = len(self.channels)
        if rope.rotary_dim is None and 0 < n < rope.head_dim and n % 2 == 0:
            if self.channels == list(range(n)):
                d = n
                self.measured["channels that turn"] = _("the first {n} of {all}").format(
                    n=n, all=rope.head_dim
                )
            elif self.channels == list(range(rope.head_dim - n, rope.head_dim)):
                d = n  # and part stays what was declared
                self.measured["channels that turn"] = _("the last {n} of {all}").format(
                    n=n, all=rope.head_dim
                )
        turning = near.x[0, -1][:, self.channels].double(), near.y[0, -1][:, self.channels].double()
        x_norm, y_norm = (float(part.norm()) for part in turning)
        self.factor = float(f"{y_norm / x_norm:.4g}") if x_norm and math.isfinite(y_norm) else 1.0
        layouts = (rope.layout,) if rope.layout else ("half", "interleaved")
        self.d = None if d == rope.head_dim else d
        self.steps = {its: _steps(near, its, d, self.channels) for its in ("half", "interleaved")}
        self.bases = {its: _base(steps, d) for its, steps in self.steps.items()}
        self.rights = [
            rope.turn(base, layout, self.d, part)
            for layout in layouts
            for base in ((rope.base,) if rope.base is not None else self._bases(layout))
        ]
        self.right: Turn | None = None
        self.turn = self.rights[0]

    def seen(self, layout: str) -> Measured:
        return Measured(self.bases[layout], len(self.channels), self.factor)

    def _bases(self, layout: str) -> list[float]:
        measured = self.bases[layout]
        likely = [base for base in BASES if measured is not None and abs(measured / base - 1) < 0.01]
        return [*likely, *(base for base in BASES[:3] if base not in likely)]

    def golden(self, calls: Sequence[Call]) -> Finding:
        """Whether some right RoPE fits all calls, or which bugs explain them."""
        for turn in self.rights:
            if fit(turn, calls):
                if not fit(turn, calls, whole=True):
                    break
                self.right = self.turn = turn
                return passed("golden values", self._says(turn))
        for layout in (self.rope.layout,) if self.rope.layout else ("half", "interleaved"):
            base = self.bases[layout]
            for digits in (3, 4, 5) if self.rope.base is None and base is not None else ():
                nice = float(f"{base:.{digits}g}")
                turn = self.rope.turn(nice, layout, self.d)
                if fit(turn, calls, whole=True):
                    self.right = self.turn = turn
                    self.measured |= {"layout": layout, "base": nice}
                    names, _also = self.names(calls)
                    says = _(
                        "the angles are those of RoPE with base {b:g}, which few models use: give base=…"
                    )
                    return undecided("golden values", says.format(b=nice), _unique([*names, "base"]))
        best = min(self.rights, key=lambda turn: _distance(turn, calls))
        names, also = self.names(calls)
        shown, error = _shown(best, calls)
        says = (
            _("The numbers are those of a known bug.") if names else _("This is not one of the known bugs.")
        )
        if also:
            says = _("The numbers are those of two known bugs at once.")
        if not names and not all(bool(call.y.isfinite().all()) for call in calls if call.y is not None):
            names, says = ("inv_freq never filled",), _("There are NaNs or infinities in the output.")
        if not names and any(_is_garbage(self.steps[layout]) for layout in {t.layout for t in self.rights}):
            names = ("inv_freq never filled",)
            says = _("Pairs turn, but not by angles that fall from pair to pair.")
        return Finding("golden values", FAILED, says, names, also, shown, error)

    def _says(self, turn: Turn) -> str:
        self.measured |= {"layout": turn.layout, "base": turn.base}
        its = _("RoPE of layout {layout!r} and base {base:g}").format(layout=turn.layout, base=turn.base)
        if turn.head_dim != 2 * len(turn.theta):
            n = 2 * len(turn.theta)
            its = _("{its} on {n} of {all} channels").format(its=its, n=n, all=turn.head_dim)
        missing = [name for name in ("layout", "base") if getattr(self.rope, name) is None]
        if missing:
            names = missing[0] if len(missing) == 1 else _("{a} and {b}").format(a=missing[0], b=missing[1])
            note = _("{its} ({names} measured: whether your weights have them is not tested)")
            its = note.format(its=its, names=names)
        return _("The numbers are those of {its}.").format(its=its)

    def names(self, calls: Sequence[Call]) -> tuple[Names, Names]:
        """The bugs that fit: a class of single ones, or the two classes of two at once."""
        calls = sorted(calls, key=lambda call: call.x.shape[-2])
        found: list[str] = []
        bases = () if self.rope.base is None else BASES
        for turn in self.rights:
            for name, changes in mutations(turn, self.rope, self.seen(turn.layout), bases):
                if name not in found and fit(wrong := changed(turn, changes), calls):
                    found.append(name)
                    self.turn = wrong
        if found:
            return _unique(found), ()
        firsts: list[str] = []
        seconds: list[str] = []
        for turn in self.rights[: 2 if self.rope.base is not None else 4]:
            single = list(mutations(turn, self.rope, self.seen(turn.layout)))
            single += [("base", {"theta": self.rope.turn(b, turn.layout, self.d).theta}) for b in BASES[:6]]
            for (a, one), (b, two) in itertools.combinations(single, 2):
                if a != b and not one.keys() & two.keys() and fit(wrong := changed(turn, one, two), calls):
                    firsts.append(a)
                    seconds.append(b)
                    self.turn = wrong
        return _unique(firsts), _unique(name for name in seconds if name not in firsts)


def _unique(names: Any) -> Names:
    return tuple(dict.fromkeys(names))


def _distance(turn: Turn, calls: Sequence[Call]) -> float:
    differences = [
        (call.y[:1, -1:].double() - call.predicted(turn)).abs().mean() for call in calls if call.y is not None
    ]
    return float(torch.stack(differences).nan_to_num(math.inf).mean())


def _shown(turn: Turn, calls: Sequence[Call]) -> tuple[str, float]:
    """The lowest position at which a number is off, that number, and the largest error of all."""
    off: list[tuple[int, str]] = []
    worst = 0.0
    for call in calls:
        if call.y is None:
            continue
        y, expected = call.y[0, -1].double(), call.predicted(turn)[0, 0]
        far = (y - expected).abs()
        worst = max(worst, float(far.max()))
        wrong = far > call.tolerance(turn)
        if call.positions.ndim == 1 and bool(wrong.any()):
            i = int(wrong.any(-1).nonzero()[0])
            c = int(far[i].argmax())
            p = int(call.positions[i])
            text = _("position {p}, channel {c}: yours {yours:.4f}, right {right:.4f} (in a call with {n})")
            tokens = _("1 token") if len(y) == 1 else _("{n} tokens").format(n=len(y))
            off.append(
                (p, text.format(p=p, c=c, yours=float(y[i, c]), right=float(expected[i, c]), n=tokens))
            )
    return (min(off)[1] if off else ""), worst


def _steps(call: Call, layout: str, d: int, channels: list[int]) -> Tensor | None:
    """How each pair turns from one position to the next, as complex numbers ``[L − 1, d/2]``."""
    if call.y is None or call.positions.ndim > 1 or len(call.positions) < 2 or d < 4:
        return None
    first = channels[0] if channels and len(channels) == d else 0

    def pairs(x: Tensor) -> Tensor:
        x = x[0, 0, :, first : first + d].double()
        a, b = (x[:, 0::2], x[:, 1::2]) if layout == "interleaved" else x.chunk(2, -1)
        return torch.complex(a, b)

    phase = pairs(call.y) / pairs(call.x)
    return phase[1:] / phase[:-1]


def _base(steps: Tensor | None, d: int) -> float | None:
    """The base, from how these angles fall from pair to pair."""
    if steps is None:
        return None
    theta = steps.angle().abs().median(0).values
    t = torch.arange(d // 2, dtype=torch.float64)
    use = (theta > 0.01) & (t > 0)
    if not bool(use.any()) or not bool(theta[0] > 0):
        return None
    log = ((theta[0] / theta[use]).log() * d / (2 * t[use])).median()
    return float(log.exp()) if 0.1 < float(log) < 60 else None


def _is_garbage(steps: Tensor | None) -> bool:
    """Whether pairs do turn evenly, but by angles that do not fall from pair to pair."""
    if steps is None or not bool((steps - steps[:1]).abs().max() < 0.01):
        return False
    return bool(steps[0].angle().abs().diff().max() > 0.01)


# ---- promises ----
def _shift(calls: Sequence[Call], golden: Finding) -> Finding:
    scores = [
        (int(c.positions.flatten()[0]), c.y[0, 0].double() @ c.y[0, 0].double().T)
        for c in calls
        if c.y is not None
    ]
    scores.sort(key=lambda each: each[0])
    at, first = scores[0]
    worst = max((float((s - first).abs().max()), p) for p, s in scores[1:])
    top = float(first.abs().max())
    if worst[0] <= 0.01 * top:
        says = _("Scores stay when all positions move by up to {n}.").format(n=scores[-1][0] - at)
        return passed("shift", says)
    says = _("Scores of the same tokens change by {change:.3g} (of {top:.3g}) when all positions move.")
    says = says.format(change=worst[0], top=top)
    return Finding(
        "shift",
        FAILED,
        says,
        golden.bugs,
        golden.also,
        _("positions from {a} and from {b}").format(a=at, b=worst[1]),
        error=worst[0],
    )


def _causality(subject: Subject) -> Finding:
    x = subject.x.clone()
    x[..., -1, :] += 1
    plain, other = subject.chunk(0), subject(x, subject.where(0, 12))
    if plain.y is None or other.y is None:
        return undecided("causality", f"it raised {plain.error or other.error}")
    change = float((plain.y - other.y)[..., :-1, :].abs().max())
    if change <= 1e-5:
        return passed("causality", _("A token's numbers do not depend on the tokens behind it."))
    says = _("Changing the last token changes earlier ones by {change:.3g}.").format(change=change)
    return Finding("causality", FAILED, says, error=change)


def _cache(calls: Sequence[Call], singles: Sequence[Call], diagnosis: Diagnosis) -> Finding:
    whole = next((call for call in calls if int(call.positions.flatten()[0]) == 0), None)
    done = [(call, i) for call, i in zip(singles, (0, 1, 5), strict=True) if call.y is not None]
    if whole is None or whole.y is None or len(done) < len(singles):
        return undecided("cache", f"one token alone raised {singles[-1].error}")
    errors = [
        float((call.y - whole.y[..., i : i + 1, :]).abs().max()) for call, i in done if call.y is not None
    ]
    if all(error <= 1e-3 for error in errors):
        return passed("cache", _("Tokens one by one get the numbers that they get together."))
    names, also = diagnosis.names([*calls, *singles])
    says = _("A token that comes alone is turned otherwise than among others.")
    at = next(i for (_call, i), error in zip(done, errors, strict=True) if not error <= 1e-3)
    return Finding("cache", FAILED, says, names, also, f"one token at position {at}", max(errors))


def _rows(subject: Subject, diagnosis: Diagnosis, positions: Tensor) -> tuple[Call, bool, bool]:
    """The call, whether each row is right for itself, and whether all follow the first one's."""
    call = subject(subject.x, positions)
    if call.y is None or call.y.shape[0] < 2:
        return call, False, False
    rows = [Call(call.x[b : b + 1], positions[b], call.y[b : b + 1]) for b in range(2)]
    alone = [subject(subject.x, positions[b]) for b in range(2)]
    own = all(
        one.y is not None and row.y is not None and bool((one.y[b : b + 1] - row.y).abs().max() <= 1e-3)
        for b, (row, one) in enumerate(zip(rows, alone, strict=True))
    )
    first = alone[0].y is not None and bool((alone[0].y[1:] - call.y[1:]).abs().max() <= 1e-3)
    return call, own, first


def _padding(subject: Subject, diagnosis: Diagnosis) -> Finding:
    p = subject.where(0, 12)
    positions = torch.stack([p, (p - 4).clamp(min=0)])
    call, own, first = _rows(subject, diagnosis, positions)
    if call.y is None or call.y.shape[0] < 2:
        reason = call.error or "it has no batch"
        return undecided(
            "padding", _("it takes one list of positions for all rows ({reason})").format(reason=reason)
        )
    if own:
        return passed("padding", _("Each row of a batch is turned by its own positions [B, L]."))
    names = ("rows share positions",) if first else ()
    says = _("With positions [B, L] the second row is not turned by its own positions.")
    return Finding("padding", FAILED, says, names, shown="positions [[0, 1, …], [0, 0, 0, 0, 0, 1, …]]")


def _packing(subject: Subject, diagnosis: Diagnosis) -> Finding:
    p = torch.cat([subject.where(0, 5), subject.where(0, 4), subject.where(20, 3)])
    call = subject(subject.x, p)
    if call.y is None:
        return undecided("packing", f"positions that restart raised {call.error}")
    alone = subject(subject.x[..., 5:9, :], subject.where(0, 4))
    if alone.y is None:
        return undecided("packing", f"four tokens raised {alone.error}")
    error = float((call.y[..., 5:9, :] - alone.y).abs().max())
    if error <= 1e-3:
        return passed("packing", _("Positions may restart within a row: each token follows its own."))
    names, also = diagnosis.names([*diagnosis.calls, call])
    says = _("A second document in the row is not turned as it is alone.")
    return Finding("packing", FAILED, says, names, also, "positions 0 … 4, 0 … 3, 20 … 22", error)


def _dtype(subject: Subject, diagnosis: Diagnosis) -> Finding:
    tested, raised = [], []
    for dtype, cast in itertools.product((torch.bfloat16, torch.float16), (False, True)):
        for start in (0, 250, 4090):
            full = subject.chunk(start)
            call = subject.cast(dtype, start) if cast else subject.chunk(start, dtype=dtype)
            if call is None or full.y is None or not bool(full.y.isfinite().all()):
                continue
            name = str(dtype).removeprefix("torch.")
            if call.y is None:
                raised.append(f"{name}: {call.error}")
                continue
            error = float((call.y.double() - full.y.double()).abs().max())
            tested.append(name)
            if not error <= call.tolerance(diagnosis.turn) * max(1.0, float(full.y.abs().max()) / 2):
                names = _precision(diagnosis, [call])
                where = f"{name}, module.to({name})" if cast else name
                says = _("In {where} the numbers at positions from {start} on are off by {error:.3g}.")
                says = says.format(where=where, start=start, error=error)
                bugs = names or ("angles in half precision", "positions in bf16")
                shown = f"x.to({name}) at positions {start} … {start + 11}"
                return Finding("dtype", FAILED, says, bugs, shown=shown, error=error)
    if not tested:
        because = f"16 bits raised an error ({raised[0]})" if raised else "its numbers are not finite"
        return undecided("dtype", because)
    a, *more = dict.fromkeys(tested)
    its = _("{a} and {b}").format(a=a, b=more[0]) if more else a
    says = _("In {its} the numbers are those of float32, up to the rounding of x.").format(its=its)
    return passed("dtype", says)


def _precision(diagnosis: Diagnosis, calls: Sequence[Call]) -> Names:
    found = []
    for turn in [diagnosis.turn]:
        for name, changes in mutations(turn, diagnosis.rope):
            if "rounds" in changes and fit(changed(turn, changes), calls):
                found.append(name)
    return _unique(found)


def check_pair(function: Callable[..., Any], rope: Rope, axes: str | None = None) -> Report:
    """The report on ``function(q, k, positions)``, which returns both: each side is looked at for itself."""
    sides = [
        check_rotation(lambda x, p, side=side: function(x, x.clone(), p)[side], rope, axes) for side in (0, 1)
    ]
    queries, keys = sides
    for side, other, name in ((queries, keys, "only keys turned"), (keys, queries, "only queries turned")):
        if "no position" in side["golden values"].bugs and "no position" not in other["golden values"].bugs:
            side.findings[0] = dataclasses.replace(side.findings[0], bugs=(name,))
    q_wrong, k_wrong = (side["golden values"].bugs for side in sides)
    if ("sign" in q_wrong) != ("sign" in k_wrong):
        wrong = queries if "sign" in q_wrong else keys
        wrong.findings[0] = dataclasses.replace(wrong.findings[0], bugs=("queries against keys",))
    order = {FAILED: 0, OPEN: 1, PASSED: 2}
    findings = []
    for pair in zip(queries.findings, keys.findings, strict=True):
        worse = min(pair, key=lambda finding: order[finding.status])
        which = (
            "" if pair[0].status == pair[1].status else f"In {'queries' if worse is pair[0] else 'keys'}: "
        )
        findings.append(dataclasses.replace(worse, says=which + worse.says))
    return Report("rotate(q, k, positions)", findings, keys.measured | queries.measured)


def check_indexer(
    function: Callable[..., Any],
    indexer: Callable[..., Any],
    rope: Rope,
    layout: str | None,
    axes: str | None,
) -> Report:
    """The report on an attention's rotation, and on that of the indexer which chooses its keys."""
    report = check_rotation(function, rope, axes)
    report.given = "rotate(x, positions), indexer(x, positions)"
    if not report.ok:
        return report
    its = check_rotation(indexer, dataclasses.replace(rope, layout=layout), axes)
    if its.failed:
        report.findings = [
            dataclasses.replace(
                finding,
                says=f"In the indexer: {finding.says}",
                bugs=tuple("indexer's layout" if name == "layout" else name for name in finding.bugs),
            )
            for finding in its.findings
        ]
    elif layout is None and its.measured.get("layout") != report.measured.get("layout"):
        says = (
            f"the indexer pairs its channels as {its.measured.get('layout')!r} and the attention as "
            f"{report.measured.get('layout')!r}, which is right for some models: say indexer_layout=…"
        )
        report.findings[0] = undecided("golden values", says, ("indexer's layout",))
    return report


def as_rotation(table: Callable[..., Any], layout: str | None) -> Callable[[Tensor, Tensor], Tensor]:
    """A table of sines and cosines ``[L, d]`` as what it would turn: so it has the same bugs, and names."""

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        given = table(positions)
        if positions.ndim == 2:
            given = given[:, None]
        elif given.ndim == 3:
            given = given[0]
        sin, cos = sides(given, its).to(x.dtype)
        a, b = (x[..., 0::2], x[..., 1::2]) if its == "interleaved" else x.chunk(2, -1)
        turned = a * cos - b * sin, a * sin + b * cos
        return torch.stack(turned, -1).flatten(-2) if its == "interleaved" else torch.cat(turned, -1)

    def sides(given: Tensor, its: str) -> Tensor:
        return torch.stack(
            (given[..., 0::2], given[..., 1::2]) if its == "interleaved" else given.chunk(2, -1)
        )

    probe = table(torch.arange(5))  # the squares of a sine and its cosine add up to 1
    fitting = [
        each
        for each in ("half", "interleaved")
        if bool((sides(probe, each).square().sum(0) - 1).abs().max() < 0.1)
    ]
    its = layout or "half"
    if fitting and its not in fitting:
        its = fitting[0]
    return rotate
