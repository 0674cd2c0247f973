"""The turns of notebook 00: what a probability costs, positions shifted and reversed, a loss read back."""

from __future__ import annotations

import torch

from tutorial_lib.language import _

from ...checks.question import Case, Draw, Question, Variant, Wrong

COST = '00, section "How much was lost?"'
SHIFT = '00, section "Shifted"'
REVERSE = '00, section "Reversed, and switched off"'


# ---- loss_of ----
def loss_of(p):
    """The loss, in nats, of tokens that had the probabilities p: minus the natural logarithm."""
    return -p.log()


def _loss_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.uniform(*shape, low=0.02, high=0.98),), what)
        for shape, what in (
            ((3,), _("three probabilities")),
            ((7,), _("seven probabilities")),
            ((2, 5), _("a table of them")),
        )
    ]


LOSS_OF = Question(
    name="loss_of",
    exercise="00",
    title="What a token costs that had this probability.",
    returns="a tensor as large as p",
    section=COST,
    draw=_loss_cases,
    reference=loss_of,
    wrong=(
        Wrong(
            "sign forgotten",
            lambda p: p.log(),
            "The logarithm of a probability is negative, so your model would earn nats for its mistakes. "
            "A loss is 0 or more.",
        ),
        Wrong(
            "in bits",
            lambda p: -p.log2(),
            "That is the loss in bits: the logarithm to base 2. Nats take the natural one, to base e.",
        ),
        Wrong(
            "to base 10",
            lambda p: -p.log10(),
            "That is a logarithm to base 10. Nats take the natural one, to base e.",
        ),
        Wrong(
            "distance from 1",
            lambda p: 1 - p,
            "That says how far p is from 1, and is never more than 1. A token that was thought impossible "
            "should cost any amount.",
        ),
        Wrong(
            "one over p",
            lambda p: 1 / p,
            "That is how many equally likely tokens the model seemed to choose from: 1 for a sure hit. But "
            "a sure hit should cost nothing.",
        ),
        Wrong(
            "one mean for all",
            lambda p: -p.log().mean(),
            "You have taken the mean already. Here each probability keeps a loss of its own.",
        ),
    ),
    variants=(Variant("one over p, then the logarithm", lambda p: (1 / p).log(), "log(1/p) is −log p."),),
    hints=(
        "A sure hit, p = 1, costs nothing. The smaller p, the more it costs.",
        "A tensor has its functions after a dot: p.exp(), p.sqrt(), … The one here is called log.",
        "The logarithm of a number below 1 is negative. Flip its sign, and return the whole tensor.",
    ),
)


# ---- shifted ----
def shifted(positions, by):
    """The positions, all of them moved by the same number of places."""
    return positions + by


def _ascending(draw: Draw, length: int) -> torch.Tensor:
    return torch.arange(length) + draw.integer(0, 5)


def _shift_cases(draw: Draw) -> list[Case]:
    return [
        Case((_ascending(draw, length), by), _("{n} positions, moved by {by}").format(n=length, by=by))
        for length, by in ((6, 3), (9, 1000), (4, draw.integer(10, 50)))
    ]


SHIFTED = Question(
    name="shifted",
    exercise="00",
    title="The same text, further on.",
    returns="a tensor as long as the positions",
    section=SHIFT,
    draw=_shift_cases,
    reference=shifted,
    wrong=(
        Wrong(
            "pushed round",
            lambda positions, by: positions.roll(by),
            "You move the numbers round in a circle, so the last ones come out in front. The numbers stay "
            "the same, and two neighbours are torn apart.",
        ),
        Wrong(
            "stretched",
            lambda positions, by: positions * by,
            "You multiply, so the positions get further apart. The text should only begin further on.",
        ),
        Wrong(
            "the other way",
            lambda positions, by: positions - by,
            "Right distance, wrong way: the text moves towards the front.",
        ),
        Wrong(
            "counted from zero",
            lambda positions, by: torch.arange(by, by + len(positions)),
            "You count anew from the shift, and forget where the text began. It may have begun at 3.",
        ),
        Wrong(
            "only the first",
            lambda positions, by: torch.cat([positions[:1] + by, positions[1:]]),
            "Only the first position has moved. All of them should.",
        ),
    ),
    hints=(
        "The first position, the last one and each between them move by the same amount.",
        "You can calculate with a tensor as with a number: what you do happens to each entry.",
        "One sign stands between positions and by.",
    ),
)


# ---- backwards ----
def backwards(positions):
    """The same positions, the last one first."""
    return positions.flip(0)


def _backwards_cases(draw: Draw) -> list[Case]:
    return [
        Case(
            (_ascending(draw, length) + first,),
            _("{n} positions from {first} or a bit later").format(n=length, first=first),
        )
        for length, first in ((5, 0), (8, 3), (3, 20))
    ]


BACKWARDS = Question(
    name="backwards",
    exercise="00",
    title="The same positions, reversed.",
    returns="a tensor as long as the positions",
    section=REVERSE,
    draw=_backwards_cases,
    reference=backwards,
    wrong=(
        Wrong(
            "negative numbers",
            lambda positions: -positions,
            "The order is reversed, but the numbers are negative now. The same numbers should come back.",
        ),
        Wrong(
            "starts again at 0",
            lambda positions: positions.max() - positions,
            "Your last token always gets 0. The same numbers should come back, and a text may begin at 3.",
        ),
        Wrong(
            "off by one",
            lambda positions: len(positions) - positions,
            "Five positions run from 0 to 4, and yours from 5 to 1. And a text may begin later.",
        ),
        Wrong(
            "turned by one place",
            lambda positions: positions.roll(1),
            "Only the last number has come to the front. All others are still in their old order.",
        ),
        Wrong(
            "nothing changed",
            lambda positions: positions.sort().values,
            "These are the positions in their old order. Sorting them upwards changes nothing.",
        ),
        Wrong(
            "ends exchanged",
            lambda positions: (
                torch.cat([positions[-1:], positions[1:-1], positions[:1]])
                if len(positions) > 3
                else positions.roll(1)
            ),
            "Only the first and the last have changed places. Reverse the ones in between, too.",
        ),
    ),
    variants=(
        Variant(
            "sorted downwards",
            lambda positions: positions.sort(descending=True).values,
            "Sorting them downwards reverses positions that go up.",
        ),
    ),
    hints=(
        "[0, 1, 2, 3] becomes [3, 2, 1, 0].",
        "A list would take [::-1]; a tensor has the function flip instead.",
        "flip wants to know along which axis. A row of numbers has only one: axis 0.",
    ),
)


# ---- times_less_likely ----
def times_less_likely(nats):
    """The factor by which a probability has dropped if its loss has risen by this many nats."""
    return nats.exp()


def _times_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.uniform(length, low=0.2, high=4.0),), _("{n} losses").format(n=length))
        for length in (3, 5, 9)
    ]


TIMES_LESS_LIKELY = Question(
    name="times_less_likely",
    exercise="00",
    title="A loss, read as a factor.",
    returns="a tensor as large as nats, all of it 1 or more",
    section=REVERSE,
    draw=_times_cases,
    reference=times_less_likely,
    wrong=(
        Wrong(
            "what is left",
            lambda nats: (-nats).exp(),
            "That is the share of the probability that is left, about a third for one nat. The question is "
            "how many times smaller it has become.",
        ),
        Wrong(
            "powers of two",
            lambda nats: 2**nats,
            "That would be right for bits. A nat belongs to the base e = 2.718…",
        ),
        Wrong(
            "powers of ten",
            lambda nats: 10**nats,
            "That would be right for the logarithm to base 10. A nat belongs to the base e = 2.718…",
        ),
        Wrong(
            "the logarithm once more",
            lambda nats: nats.log(),
            "You take the logarithm of what is a logarithm already. The way back is another function.",
        ),
        Wrong(
            "as it is",
            lambda nats: nats + 0,
            "Two nats do not mean “two times less likely”. Nats are logarithms; undo the logarithm first.",
        ),
    ),
    variants=(Variant("divided by what is left", lambda nats: 1 / (-nats).exp(), "1 / exp(−x) is exp(x)."),),
    hints=(
        "Your loss_of took a logarithm. Which function undoes it?",
        "loss_of used p.log(). The function that undoes it is just as short.",
        "e to the power of 1 is 2.7: one nat more makes a token 2.7 times less likely.",
    ),
)

QUESTIONS = (LOSS_OF, SHIFTED, BACKWARDS, TIMES_LESS_LIKELY)
