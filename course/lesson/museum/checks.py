"""Properties that an implementation should have, measured on any exhibit that promises them.

A check compares attention weights, not scores: a constant per query is no mistake, because a softmax
does not see it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tutorial_lib.language import _
from tutorial_lib.properties import relative_error
from tutorial_lib.training import seeded

from .exhibits import Exhibit

CHANNELS = 16
SAME = 0.001  # what rounding in float32 may change
NEAR = 0.1  # and in bfloat16


@dataclass(frozen=True)
class Verdict:
    """``found`` is None where the check does not apply; ``short`` is the measurement alone."""

    found: bool | None
    words: str
    short: str = ""

    def __str__(self):
        if self.found is None:
            return _("does not apply: {reason}").format(reason=self.words)
        said = _("{measured} → FOUND") if self.found else _("{measured}: this check sees nothing")
        return said.format(measured=self.words)


@dataclass(frozen=True)
class Check:
    """``applies`` to an exhibit, or there is a ``reason`` why not; ``measure`` gives the verdict."""

    label: str
    applies: Callable[[Exhibit], bool]
    reason: str
    measure: Callable[[Exhibit, type[nn.Module]], Verdict]

    def __call__(self, exhibit: Exhibit, kind: type[nn.Module] | None = None) -> Verdict:
        """Run it on the broken class, or on another one of that form."""
        if not self.applies(exhibit):
            return Verdict(None, _(self.reason))
        try:
            return seeded(lambda: self.measure(exhibit, kind or exhibit.broken), seed=0)
        except (RuntimeError, IndexError) as error:
            last = str(error).splitlines()[-1].strip().rstrip(".")
            said = _("it stops with {error}: {says}").format(error=type(error).__name__, says=last)
            return Verdict(True, said, _("stops"))


# ---- how an exhibit is run ----
def words(exhibit: Exhibit, n: int) -> tuple[Tensor, Tensor]:
    """Random queries and keys, ``[H, n, D]``."""
    n = min(n, exhibit.length)
    return torch.randn(exhibit.heads, n, CHANNELS), torch.randn(exhibit.heads, n, CHANNELS)


def embed(subject, x: Tensor, mask: Tensor | None = None) -> Tensor:
    if len(inspect.signature(subject.embed).parameters) == 1:
        return subject.embed(x)
    return subject.embed(x, torch.ones(x.shape[:2], dtype=torch.long) if mask is None else mask)


def scores(subject, q: Tensor, k: Tensor) -> Tensor:
    """The scores of a class of any of the three forms, ``[H, Lq, Lk]``."""
    if hasattr(subject, "scores"):
        return subject.scores(q, k)
    if hasattr(subject, "embed"):
        q, k = embed(subject, q), embed(subject, k)
    else:
        q, k = subject.rotate(q, k.shape[1] - q.shape[1]), subject.rotate(k)
    return q @ k.mT / CHANNELS**0.5


def weights(exhibit: Exhibit, s: Tensor) -> Tensor:
    """Softmax, under a causal mask where words come one by one. Queries are the last keys."""
    s = s.detach().double()
    if exhibit.decodes:
        s = s.masked_fill(torch.ones(s.shape[-2:]).triu(s.shape[-1] - s.shape[-2] + 1).bool(), -torch.inf)
    return s.softmax(-1)


def elsewhere(actual: Tensor, expected: Tensor) -> Tensor:
    """For each query, the share of its attention that goes to other words, 0 … 1: the worst head."""
    return (actual - expected).abs().sum(-1).amax(0) / 2


# ---- the checks ----
FRONT = 40


def in_front(exhibit: Exhibit, kind: type[nn.Module]) -> tuple[Tensor, Tensor]:
    """Weights ``[H, 8, 8]`` of eight words behind ``FRONT`` others, and of the same words alone.

    Vectors of position are compared alone: what a word itself adds may change.
    """
    subject, n, front = kind(), 8, FRONT
    q, k = words(exhibit, front + n)
    if hasattr(kind, "embed"):
        q, k = torch.zeros_like(q), torch.zeros_like(k)
    late = weights(exhibit, scores(subject, q, k)[:, -n:, -n:])
    return late, weights(exhibit, scores(subject, q[:, -n:], k[:, -n:]))


def moved(exhibit, kind):
    return _shares(_("with {n} words put in front").format(n=FRONT), elsewhere(*in_front(exhibit, kind)))


def norm(exhibit, kind):
    x = torch.randn(exhibit.heads, 8, CHANNELS)
    # six digits: what float32 rounds differs between processors
    error = round(float(relative_error(kind().rotate(x).norm(dim=-1), x.norm(dim=-1))), 6)
    said = _("turning changes a length by {error} of the longest").format(error=f"{error:.2g}")
    return Verdict(error > SAME, said, f"{error:.2g}")


def stepwise(exhibit, kind):
    subject, (q, k) = kind(), words(exhibit, 24)
    fresh, share = copy.deepcopy(subject), []
    for t in range(q.shape[1]):
        whole = scores(copy.deepcopy(fresh), q[:, : t + 1], k[:, : t + 1])[:, -1:]
        if hasattr(subject, "step"):
            one = subject.step(q[:, t : t + 1], k[:, t : t + 1])
        else:
            one = scores(subject, q[:, t : t + 1], k[:, : t + 1])
        share.append(elsewhere(weights(exhibit, one), weights(exhibit, whole)))
    return _shares(_("read one word at a time, not all at once"), torch.cat(share))


def mirror(exhibit, kind):
    subject, (q, k) = kind(), words(exhibit, 24)
    back = weights(exhibit, scores(subject, q.flip(1), k.flip(1))).flip(1, 2)
    share = elsewhere(back, weights(exhibit, scores(subject, q, k))).max().item()
    said = _("{how}, up to {share} of a word's attention goes elsewhere").format(
        how=_("read backwards, against the mirror image"), share=f"{share:.1%}"
    )
    return Verdict(share < SAME, said, f"{share:.1%}")


def equation(exhibit, kind):
    subject, (q, k) = kind(), words(exhibit, 512)
    slow = exhibit.equation(subject, q.double(), k.double())
    share = elsewhere(weights(exhibit, scores(subject, q, k)), weights(exhibit, slow))
    return _shares(_("against the equation in float64"), share)


def half(exhibit, kind):
    subject, (q, k) = kind(), words(exhibit, 512)
    q, k = q.bfloat16(), k.bfloat16()
    rounded = weights(exhibit, scores(copy.deepcopy(subject).bfloat16(), q, k))
    return _shares(
        _("in bfloat16, against float32"),
        elsewhere(rounded, weights(exhibit, scores(subject, q.float(), k.float()))),
        NEAR,
    )


def resize(exhibit, kind):
    kind(max_len=1024).load_state_dict(kind(max_len=512).state_dict())
    return Verdict(False, _("a model twice as long loads the checkpoint"), _("loads"))


def padding(exhibit, kind):
    said = _("{n} tokens of padding on the left change the words' vectors by {error} of the largest entry")
    return _behind(0, said, kind())


def packing(exhibit, kind):
    said = _("{n} words of another text in the row change the words' vectors by {error} of the largest entry")
    return _behind(1, said, kind())


def _behind(mark: int, said: str, subject: nn.Module) -> Verdict:
    """The verdict on eight words behind five tokens of padding (mark 0), or of another text (1)."""
    n, front = 8, 5
    x = torch.randn(1, n, CHANNELS)
    marks = torch.tensor([[mark] * front + [mark + 1] * n])
    row = embed(subject, torch.cat([torch.zeros(1, front, CHANNELS), x], 1), marks)[:, front:]
    error = relative_error(row, embed(subject, x))
    return Verdict(error > SAME, said.format(n=front, error=f"{error:.2g}"), f"{error:.2g}")


def gradient(exhibit, kind):
    subject, (q, k) = kind(), words(exhibit, 512)
    s = scores(subject, q, k)
    (s * torch.randn_like(s)).sum().backward()
    (table,) = subject.parameters()
    never, rows = (table.grad == 0).all(-1).sum().item(), len(table)
    share = {"number": never, "all": rows}  # T5 itself leaves 1 of its 32 rows unused
    said = _("{number} of {all} rows of the table get no gradient").format(**share)
    return Verdict(never > 0.1 * rows, said, _("{number} of {all}").format(**share))


def _shares(how: str, share: Tensor, limit: float = SAME) -> Verdict:
    """The verdict on :func:`elsewhere` of each query."""
    most, wrong = share.max().item(), (share > limit).nonzero().flatten().tolist()
    text = _("{how}, up to {share} of a word's attention goes elsewhere").format(how=how, share=f"{most:.1%}")
    if wrong:
        text = _("{said}, first at word {n} of {all}").format(said=text, n=wrong[0] + 1, all=len(share))
    return Verdict(bool(wrong), text, f"{most:.1%}")


def _takes(method: str, argument: str) -> Callable[[Exhibit], bool]:
    def condition(exhibit):
        function = getattr(exhibit.broken, method, None)
        return function is not None and argument in inspect.signature(function).parameters

    return condition


CHECKS = {
    "moved": Check(
        "Put words in front: the others' weights stay",
        lambda e: e.relative,
        "it does not promise that only distances count",
        moved,
    ),
    "norm": Check(
        "Turning keeps the length of a vector",
        lambda e: hasattr(e.broken, "rotate"),
        "it turns no vectors",
        norm,
    ),
    "stepwise": Check(
        "One word at a time equals all at once",
        lambda e: e.decodes,
        "it gets the whole text at once",
        stepwise,
    ),
    "mirror": Check(
        "Read backwards: more than a mirror image",
        lambda e: not e.decodes,
        "a causal mask hides the words ahead",
        mirror,
    ),
    "equation": Check(
        "The equation, slowly and in float64",
        lambda e: e.equation is not None,
        "no paper gives an equation",
        equation,
    ),
    "half": Check("Half precision stays near", lambda _exhibit: True, "", half),
    "resize": Check(
        "A checkpoint loads at another length",
        _takes("__init__", "max_len"),
        "it computes no table of a given length",
        resize,
    ),
    "padding": Check(
        "Padding on the left changes nothing",
        lambda e: _takes("embed", "attention_mask")(e) or _takes("embed", "documents")(e),
        "it is not told what is padding",
        padding,
    ),
    "packing": Check(
        "A second text in the row is as it is alone",
        _takes("embed", "documents"),
        "it is not told which text a word belongs to",
        packing,
    ),
    "gradient": Check(
        "A gradient reaches the whole table",
        lambda e: bool([*e.broken().parameters()]),
        "nothing is trained",
        gradient,
    ),
}
