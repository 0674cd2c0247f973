"""``resize(table, size)``: how an image's learned table of positions is made larger, or which bug it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate

from .report import FAILED, PROMISES, Finding, Report, passed, undecided

MODES = ("bilinear", "bicubic")
SIZES = ((6, 5), (7, 9), (12, 8))


def check_resize(
    function: Callable[..., Any], *, mode: str | None = None, antialias: bool | None = None
) -> Report:
    """The report on ``function(table [rows, columns, d], size)``, which gives ``[*size, d]``."""
    if mode not in (None, *MODES):
        raise ValueError(f"mode={mode!r}: it must be 'bilinear', 'bicubic' or None (measured)")
    table = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0))
    given = []
    for size in SIZES:
        with torch.no_grad():
            y = function(table.clone(), size)
        if not isinstance(y, Tensor) or y.shape != (*size, 2):
            what = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise ValueError(f"resize(table [3, 4, 2], {size}) gave {what}: it must be [*size, d]")
        given.append(y.double())

    def fits(change: Callable[[Tensor], Tensor], back: bool, mixed: bool = False, **how: Any) -> bool:
        """``back``: it is resized lying on its side, and put upright again."""
        for size, y in zip(SIZES, given, strict=True):
            image = change(table).permute(2, 0, 1)[None].double()
            made = _sampled if mixed else interpolate
            expected = made(image, size=size[::-1] if back else size, **how)[0].permute(1, 2, 0)
            if not bool((y - (expected.transpose(0, 1) if back else expected)).abs().max() < 1e-4):
                return False
        return True

    hows: list[dict[str, Any]] = [
        {"mode": each, "antialias": smooth}
        for each in ([mode] if mode else MODES)
        for smooth in ((False, True) if antialias is None else (antialias,))
    ]
    report = Report("resize(table, size)")
    right = [how for how in hows if fits(_same, False, align_corners=False, **how)]
    if right:
        report.measured |= right[0]
        golden = passed("golden values", f"The numbers are those of a {right[0]['mode']} interpolation.")
    else:
        names = [
            name
            for how in hows
            for name, change, back, corners in _wrong()
            if fits(change, back, align_corners=corners, **how)
        ]
        for corners in (False, True):
            if mode != "bicubic" and fits(_same, False, True, align_corners=corners):
                names.append("corners aligned")
        says = "The numbers are those of a known bug." if names else "This is not one of the known bugs."
        golden = Finding(
            "golden values", FAILED, says, tuple(dict.fromkeys(names)), shown="a table [3, 4, 2]"
        )
    because = "a table that is resized has no tokens in it"
    report.findings = [golden, *(undecided(each, because) for each in PROMISES[1:])]
    return report


def _sampled(image: Tensor, size: tuple[int, int], align_corners: bool) -> Tensor:
    """Read at places of one convention as if they were of the other."""
    places = [torch.arange(n).double() for n in size]
    if align_corners:
        y, x = ((2 * at + 1) / len(at) - 1 for at in places)
    else:
        y, x = (2 * at / (len(at) - 1) - 1 for at in places)
    grid = torch.stack(torch.meshgrid(y, x, indexing="ij")[::-1], -1)[None]
    return grid_sample(image, grid, padding_mode="border", align_corners=align_corners)


def _same(table: Tensor) -> Tensor:
    return table


def _wrong() -> Iterator[tuple[str, Callable[[Tensor], Tensor], bool, bool]]:
    yield "corners aligned", _same, False, True
    for corners in (False, True):
        yield "axes swapped", lambda t: t.transpose(0, 1), False, corners
        yield "axes swapped", lambda t: t.reshape(t.shape[1], t.shape[0], -1), False, corners
        yield "axes swapped", lambda t: t.reshape(t.shape[1], t.shape[0], -1).transpose(0, 1), False, corners
        yield "axes swapped", _same, True, corners
