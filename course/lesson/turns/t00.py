"""The turns of notebook 00: what a probability costs, positions reversed, and blocks that change places."""

from __future__ import annotations

import torch

from tutorial_lib.language import _

from ...checks.question import Case, Draw, Question, Variant, Wrong

COST = '00, section "How much was lost?"'
REVERSE = '00, section "Backwards"'
BUILD = '00, section "Build: a numbering of your own"'


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


# ---- backwards ----
def backwards(positions):
    """The same positions, the last one first."""
    return positions.flip(0)


def _ascending(draw: Draw, length: int) -> torch.Tensor:
    return torch.arange(length) + draw.integer(0, 5)


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
            "from 47 down",
            lambda positions: 47 - positions,
            "You count down from 47. That is right for the 48 tokens of this lesson, and for no other text. "
            "Turn round the numbers that come in, whatever they are.",
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


# ---- blocks_swapped ----
def blocks_swapped(positions, size):
    """The positions [L], cut into blocks of this size, with neighbouring blocks swapped in pairs.

    L is a multiple of 2 · size. Inside a block the order stays as it is.
    """
    return positions.view(-1, 2, size).flip(1).flatten()


def _blocks_cases(draw: Draw) -> list[Case]:
    return [
        Case(
            (_ascending(draw, length) + 1, size),
            _("{n} positions in blocks of {size}").format(n=length, size=size),
        )
        for length, size in ((6, 1), (12, 2), (24, 4), (12, 6))
    ]


def _loop(positions, size):
    blocks = list(positions.split(size))
    for n in range(0, len(blocks), 2):
        blocks[n], blocks[n + 1] = blocks[n + 1], blocks[n]
    return torch.cat(blocks)


def _ends(positions, size):
    return torch.cat([positions[size : 2 * size], positions[:size], positions[2 * size :]])


BLOCKS_SWAPPED = Question(
    name="blocks_swapped",
    exercise="00",
    title="Neighbouring blocks of positions, in each other's place.",
    returns="a tensor as long as the positions",
    section=BUILD,
    draw=_blocks_cases,
    reference=blocks_swapped,
    wrong=(
        Wrong(
            "only the first two",
            _ends,
            "The first two blocks have changed places, and the rest of the text stayed as it was. Go on to "
            "the end, two blocks at a time.",
        ),
        Wrong(
            "turned round in the block",
            lambda positions, size: positions.view(-1, 2 * size).flip(1).flatten(),
            "The blocks have changed places, but each of them now runs backwards. Inside a block the order "
            "should stay as it is.",
        ),
        Wrong(
            "inside instead of outside",
            lambda positions, size: positions.view(-1, 2, size).flip(2).flatten(),
            "Each block is turned round in its own place. The blocks should change places and stay as they "
            "are inside.",
        ),
        Wrong(
            "all blocks backwards",
            lambda positions, size: positions.view(-1, size).flip(0).flatten(),
            "The last block has come to the front, the first one to the end. Each block should only change "
            "places with its neighbour.",
        ),
        Wrong(
            "moved on",
            lambda positions, size: positions.roll(-size),
            "All blocks have moved up by one, and the first came out at the end. Two blocks should change "
            "places, then the next two.",
        ),
        Wrong(
            "added",
            lambda positions, size: positions + size,
            "Every number has grown by the size of a block. Only each first block of two should; the second "
            "one has to come down again.",
        ),
        Wrong(
            "counted from zero",
            lambda positions, size: blocks_swapped(torch.arange(len(positions)), size),
            "The blocks are right, but you count from 0. The numbers that come in may begin at 3: move them, "
            "and make no new ones.",
        ),
        Wrong(
            "still in blocks",
            lambda positions, size: positions.view(-1, 2, size).flip(1),
            "The numbers are right, but they still lie in blocks. The model wants one row of them: "
            "flatten() makes it.",
        ),
    ),
    variants=(
        Variant("a loop over blocks", _loop, "Cut into a list, exchanged two by two, and joined again."),
        Variant(
            "calculated",
            lambda positions, size: positions + size * (1 - 2 * (torch.arange(len(positions)) // size % 2)),
            "Plus the size in each first block, minus the size in each second one: right for positions that "
            "go up by 1.",
        ),
    ),
    hints=(
        "Take blocks of 2 and write down the first eight numbers: 2 3 0 1, and then?",
        "A loop over starts 0, 2·size, 4·size, … collects two slices in turn, the second one first. "
        "torch.cat joins them.",
        "Without a loop: positions.view(-1, 2, size) lays the blocks out in pairs. flip turns an axis round.",
    ),
)

QUESTIONS = (LOSS_OF, BACKWARDS, BLOCKS_SWAPPED)
