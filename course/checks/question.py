"""What a question of an exercise is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch


@dataclass(frozen=True)
class Case:
    """One call of an answer: its arguments, and what is special about them, in words."""

    args: tuple
    what: str


class Draw:
    """Inputs from a seed: the same on every machine, whatever the caller's defaults are."""

    def __init__(self, seed: int):
        self.generator = torch.Generator("cpu").manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, generator=self.generator, dtype=torch.float64, device="cpu").to(dtype)

    def uniform(
        self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Uniform numbers in ``[low, high)``."""
        drawn = torch.rand(shape, generator=self.generator, dtype=torch.float64, device="cpu")
        return (low + (high - low) * drawn).to(dtype)

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Whole numbers from ``low`` to ``high``, both included (int64)."""
        return torch.randint(low, high + 1, shape, generator=self.generator, dtype=torch.int64, device="cpu")

    def integer(self, low: int, high: int) -> int:
        """One whole number from ``low`` to ``high``, both included."""
        return int(self.integers(low, high))

    def number(self, low: float, high: float) -> float:
        """One number in ``[low, high)``."""
        return float(self.uniform(low=low, high=high, dtype=torch.float64))

    def choice(self, options: Sequence):
        """One of ``options``."""
        return options[self.integer(0, len(options) - 1)]

    def permutation(self, n: int) -> torch.Tensor:
        """The numbers 0 … n − 1 in random order, which is never the old one if n > 1."""
        drawn = torch.randperm(n, generator=self.generator, device="cpu")
        return drawn.roll(1) if n > 1 and torch.equal(drawn, torch.arange(n)) else drawn


#: A text that calls something right, or says that nothing has changed, is about a whole answer.
WHOLE = re.compile(
    r"(?<!That )(?<!it )(?<!It )\b(?:is|are) right\b|still there"
    r"|still what the given|what the broken code returns"
)


@dataclass(frozen=True)
class Wrong:
    """A wrong answer that learners give, and the misconception behind it.

    ``name`` is what a teacher's report counts; ``says`` is what the learner reads: what the answer
    does and why that is wrong, never the solution. ``reread`` is a section of the notebook.
    """

    name: str
    answer: Callable
    says: str
    reread: str = ""

    @property
    def whole(self) -> bool:
        """Is the text true only of who agrees with this one everywhere? Then it is said of no part."""
        return bool(WHOLE.search(self.says))


@dataclass(frozen=True)
class Variant:
    """An answer that is written or laid out differently, and just as right as the reference."""

    name: str
    answer: Callable
    why: str


@dataclass(frozen=True)
class Question:
    """A coded question.

    ``draw(Draw) -> list[Case]``: at least three cases of several sizes. ``reference`` is the right
    answer; it runs in the judging process only. ``same(value, case) -> value`` brings a value to a
    normal form where several answers are right (a bias without its row means); ``equivalent`` then
    says why they are. ``tolerance`` is ``(relative, absolute)`` for float32 and float64; coarser dtypes
    take their own. ``returns`` names what comes back ("a tensor [L, d]"); if it names a dtype, float32 for
    float64 is wrong; else they count as one. ``picture`` draws target beside answer: "heat", "lines" or ""
    (none); ``axes`` labels it (along, up), and ``drawn(value, case)`` is what to draw in place of a value,
    where that shows more. ``exact_dtype``: not even float64 for float32 is right.
    ``faults(value, case) -> str`` takes the place of a comparison where many answers are right: what is wrong
    with this one, as the learner reads it, or "". With ``own_words`` these words are all that is said; the
    catalogue then only gives a name to the teacher. ``trial(values, cases, seed) -> (name, lines)`` is what
    the judge does where nothing is wrong yet: it tries what was proposed, with all of the values at hand. It
    returns the name of the mistake in the catalogue, or "", and what came out, for the learner.
    ``use(answer) -> function``, of a turn whose answer is a class: what is called with the arguments of a
    case. ``reference`` and the catalogue are what it makes of their classes. ``library``: the answer may call
    the course's own code.
    """

    name: str
    exercise: str
    title: str
    returns: str
    section: str
    draw: Callable[[Draw], list[Case]]
    reference: Callable
    wrong: tuple[Wrong, ...]
    hints: tuple[str, str, str]
    variants: tuple[Variant, ...] = ()
    same: Callable | None = None
    equivalent: str = ""
    tolerance: tuple[float, float] = (1e-4, 1e-5)
    picture: str = ""
    axes: tuple[str, str] = ("", "")
    drawn: Callable | None = None
    seconds: float = 10.0
    exact_dtype: bool = False
    faults: Callable | None = None
    own_words: bool = False
    trial: Callable | None = None
    use: Callable | None = None
    library: bool = False
    bonus: bool = False

    @property
    def names_dtype(self) -> bool:
        """Is the learner told which dtype the result has?"""
        return any(word in self.returns for word in ("dtype", "float", "int64"))

    @property
    def points(self) -> int:
        return 2 if self.bonus else 4

    def cases(self, seed: int) -> list[Case]:
        """The inputs that belong to ``seed``."""
        return list(self.draw(Draw(seed)))


@dataclass
class Verdict:
    """What came of a check. ``kind`` is one of

    right, equivalent — passed;
    mistake (``name`` says which misconception), near (the right answer but for one change, which ``name``
    says), symptom (what is wrong with the numbers),
    stub, syntax, raised, none, type, shape, dtype, device, nan, modified, slow, borrowed — not passed.

    ``text`` is for the learner; ``reread`` the section to read again; ``picture`` holds what is to
    be drawn: ``{"kind", "target", "yours", "what", "axes"}``.
    """

    question: str
    passed: bool
    kind: str
    text: str
    name: str = ""
    reread: str = ""
    picture: dict | None = None

    def message(self) -> dict:
        """As the tree that :mod:`.messaging` sends."""
        return asdict(self)
