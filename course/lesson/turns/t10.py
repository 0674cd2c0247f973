"""The turns of notebook 10: alternating layers, latent attention; of its side quests: longer queries, a gate
like ALiBi, places of a picture."""

from __future__ import annotations

import math

import torch

from ...checks.question import Case, Draw, Question, Wrong

LAYERS = '10, section "Take positions away"'
BUILD = '10, section "Build: two clocks"'
CROWD = 'deeper/10_nope, section "The crowd grows"'
GATE = 'deeper/10_nope, section "Positions that depend on the text"'
PICTURE = 'deeper/10_pictures, section "A picture in a sentence"'


# ---- pattern ----
def pattern(layers, every):
    """For each layer, True if it has positions: every so many layers, the last of them has none."""
    return [(n + 1) % every != 0 for n in range(layers)]


def _pattern_cases(draw: Draw) -> list[Case]:
    return [
        Case((8, 4), "8 layers, every fourth without"),
        Case((draw.integer(5, 7), 2), "every second without"),
        Case((draw.integer(9, 14), draw.integer(3, 5)), "a last group that is not full"),
        Case((4, 1), "every layer without"),
    ]


PATTERN = Question(
    name="pattern",
    exercise="10",
    title="Which layers have positions.",
    returns="a list of as many True or False as there are layers",
    section=LAYERS,
    draw=_pattern_cases,
    reference=pattern,
    wrong=(
        Wrong(
            "the first of each group",
            lambda layers, every: [n % every != 0 for n in range(layers)],
            "You take them from the first layer of each group. It is the last one that has none.",
        ),
        Wrong(
            "True for none",
            lambda layers, every: [(n + 1) % every == 0 for n in range(layers)],
            "Your True stands where positions are missing. Asked for is True where a layer has them.",
        ),
        Wrong(
            "first of a group, turned",
            lambda layers, every: [n % every == 0 for n in range(layers)],
            "In your list only one layer of each group has positions, its first. All have them but the last.",
        ),
        Wrong(
            "numbers, not a list of all",
            lambda layers, every: [n for n in range(layers) if (n + 1) % every],
            "Those are the numbers of the layers with positions. Asked for is one True or False for each "
            "layer.",
        ),
        Wrong(
            "one group alone",
            lambda layers, every: [n + 1 != every for n in range(layers)],
            "Only one layer of the whole stack has no positions. The group begins anew after it.",
        ),
        Wrong(
            "the very last alone",
            lambda layers, every: [n + 1 != layers for n in range(layers)],
            "Only the last layer of the stack has no positions, whatever the size of a group is.",
        ),
    ),
    hints=(
        "Layers are counted from 0. With groups of four the ones without are 3, 7, 11 …",
        "Add 1, and these are the multiples of the group's size. The remainder of a division tells.",
        "A list of (n + 1) % every != 0, for n in range(layers).",
    ),
)


# ---- latent_attention ----
def latent_attention(q, q_turned, c, k_turned, W_UK, W_UV, allowed):
    """Outputs [B, H, L, d]. q [B, H, L, d], q_turned [B, H, L, R], c [B, L, r], k_turned [B, 1, L, R];
    W_UK, W_UV [H, d, r]; allowed [L, L]: True where a query may look."""
    c = c[:, None]
    s = (q @ W_UK) @ c.mT + q_turned @ k_turned.mT
    s = s / (q.shape[-1] + q_turned.shape[-1]) ** 0.5
    return s.masked_fill(~allowed, -torch.inf).softmax(-1) @ c @ W_UV.mT


def _latent_cases(draw: Draw) -> list[Case]:
    def case(B, H, L, d, R, r, window):
        shapes = (B, H, L, d), (B, H, L, R), (B, L, r), (B, 1, L, R), (H, d, r), (H, d, r)
        back = torch.arange(L)[:, None] - torch.arange(L)
        allowed = (back >= 0) & (back < window)
        return Case(
            (*(draw.normal(*shape) for shape in shapes), allowed),
            f"B = {B}, H = {H}, L = {L}, d = {d}, R = {R}, r = {r}, window {window}",
        )

    return [
        case(1, 2, 4, 6, 2, 3, 99),
        case(2, 3, draw.integer(5, 7), 4, 4, 8, 3),
        case(2, 2, 5, 3, 0, 4, 99),
        case(3, 1, 6, 8, 2, 5, 2),
    ]


def _latent(
    still=lambda q, c, W: (q @ W) @ c.mT,
    runs=lambda q, k: q @ k.mT,
    size=lambda q, t: q.shape[-1] + t.shape[-1],
    hide=lambda s, allowed: s.masked_fill(~allowed, -torch.inf),
    values=lambda c, W: c @ W.mT,
):
    """Latent attention, one of its parts done in another way."""

    def attend(q, q_turned, c, k_turned, W_UK, W_UV, allowed):
        c = c[:, None]
        s = (still(q, c, W_UK) + runs(q_turned, k_turned)) / size(q, q_turned) ** 0.5
        return hide(s, allowed).softmax(-1) @ values(c, W_UV)

    return attend


LATENT_ATTENTION = Question(
    name="latent_attention",
    exercise="10",
    title="Latent attention: a clock that stands still, and one that runs.",
    returns="a tensor [B, H, L, d]",
    section=BUILD,
    draw=_latent_cases,
    reference=latent_attention,
    wrong=(
        Wrong(
            "no running clock",
            _latent(runs=lambda q, k: 0),
            "The turned key plays no part, so the layer knows no place. Its product with q_turned belongs in "
            "the score.",
        ),
        Wrong(
            "no content",
            _latent(still=lambda q, c, W: 0 * (q @ W) @ c.mT),
            "Only the turned parts meet, so no head sees what the words are. Their contents are in c.",
        ),
        Wrong(
            "scale of the still channels",
            _latent(size=lambda q, t: q.shape[-1]),
            "You divide by √d. The sum runs over d + R channels, and so does the scale.",
        ),
        Wrong(
            "no scale",
            _latent(size=lambda q, t: 1),
            "The scores are not divided by the square root of d + R.",
        ),
        Wrong(
            "everybody sees everybody",
            _latent(hide=lambda s, allowed: s),
            "Every query looks everywhere. Where `allowed` is False, a score should be −∞.",
        ),
        Wrong(
            "hidden as 0",
            _latent(hide=lambda s, allowed: s * allowed),
            "Where a query may not look, your score is 0, and a softmax gives that a weight, too. "
            "−∞ gives none.",
        ),
        Wrong(
            "allowed the other way",
            _latent(hide=lambda s, allowed: s.masked_fill(allowed, -1e30)),
            "Your queries look just where they may not: `allowed` is True where they may.",
        ),
        Wrong(
            "values with W_UK",
            lambda q, q_turned, c, k_turned, W_UK, W_UV, allowed: latent_attention(
                q, q_turned, c, k_turned, W_UK, W_UK, allowed
            ),
            "Your values are made with W_UK, the matrix of the keys. Theirs is W_UV.",
        ),
        Wrong(
            "keys with W_UV",
            lambda q, q_turned, c, k_turned, W_UK, W_UV, allowed: latent_attention(
                q, q_turned, c, k_turned, W_UV, W_UV, allowed
            ),
            "Your keys are made with W_UV, the matrix of the values. Theirs is W_UK.",
        ),
        Wrong(
            "both scores softened apart",
            lambda q, q_turned, c, k_turned, W_UK, W_UV, allowed: (
                sum(
                    (each / (q.shape[-1] + q_turned.shape[-1]) ** 0.5)
                    .masked_fill(~allowed, -torch.inf)
                    .softmax(-1)
                    for each in ((q @ W_UK) @ c[:, None].mT, q_turned @ k_turned.mT)
                )
                @ c[:, None]
                @ W_UV.mT
            ),
            "Each clock has a softmax of its own. The two scores are added first, and one softmax follows.",
        ),
        Wrong(
            "c not made into values",
            lambda q, q_turned, c, k_turned, W_UK, W_UV, allowed: _latent(values=lambda c, W: c)(
                q, q_turned, c, k_turned, W_UK, W_UV, allowed
            ),
            "You have mixed the vectors c, of r numbers. W_UV makes values of d numbers from them.",
        ),
    ),
    hints=(
        "Two scores, one for each clock, are added; then scale, mask, softmax. Write the shape behind each "
        "product.",
        "c has no axis of heads: c[:, None] is [B, 1, L, r]. q @ W_UK is [B, H, L, r], so it can meet c "
        "without making any key.",
        "s = (q @ W_UK) @ c[:, None].mT + q_turned @ k_turned.mT; after scale, mask and softmax comes "
        "@ c[:, None] @ W_UV.mT.",
    ),
)


# ---- sharper ----
def sharper(q, n, trained):
    """The queries q [..., d] as they should be when they see n keys and were trained on ``trained``."""
    return q * math.log(n) / math.log(trained)


def _sharper_cases(draw: Draw) -> list[Case]:
    return [
        Case((draw.normal(3, 4), 64, 8), "8 keys in training, 64 now"),
        Case((draw.normal(2, 6), draw.integer(200, 900), 16), "16 keys in training"),
        Case((draw.normal(1, 3), draw.integer(3000, 9000), draw.integer(20, 90)), "a long text"),
    ]


SHARPER = Question(
    name="sharper",
    exercise="10",
    title="Queries for a larger crowd.",
    returns="a tensor of the shape of q",
    section=CROWD,
    draw=_sharper_cases,
    reference=sharper,
    wrong=(
        Wrong(
            "ratio of the numbers",
            lambda q, n, trained: q * n / trained,
            "You multiply by the ratio of the numbers of keys. The lead that is needed grows with the "
            "logarithm of that number only.",
        ),
        Wrong(
            "difference of the logarithms",
            lambda q, n, trained: q * math.log(n / trained),
            "At the trained number of keys your factor is 0. There it should be 1. You need the ratio of "
            "two logarithms, which is not the logarithm of the ratio.",
        ),
        Wrong(
            "added",
            lambda q, n, trained: q + math.log(n) - math.log(trained),
            "You add the same number to every channel. That moves the query to another place; it should "
            "keep its direction and get longer.",
        ),
        Wrong(
            "upside down",
            lambda q, n, trained: q * math.log(trained) / math.log(n),
            "Your queries get shorter as the crowd grows. The scores should grow with it.",
        ),
        Wrong(
            "not compared with training",
            lambda q, n, trained: q * math.log(n),
            "At the trained number of keys your factor isn't 1, so you change what was trained. `trained` "
            "plays no part.",
        ),
        Wrong(
            "one key less",
            lambda q, n, trained: q * math.log(n - 1) / math.log(trained - 1),
            "You take the logarithm of one key less. A query sees n keys, its own included.",
        ),
        Wrong(
            "square root",
            lambda q, n, trained: q * math.sqrt(n / trained),
            "A square root grows much faster than what the softmax needs: its lead is a logarithm.",
        ),
    ),
    hints=(
        "In training a lead of log(trained) was about enough. Now it must be log(n). By which factor do all "
        "scores have to grow?",
        "A score is q · k, so a factor on q is a factor on every score of this query.",
        "q times math.log(n), divided by math.log(trained).",
    ),
)


# ---- gate_like_alibi ----
def gate_like_alibi(m):
    """The bias b of a gate σ(b), the same for all words, that lowers scores by m for each token."""
    f = math.exp(-m)
    return math.log(f / (1 - f))


def _gate_cases(draw: Draw) -> list[Case]:
    return [
        Case((0.5,), "m = 1/2"),
        Case((1 / 256,), "m = 1/256"),
        Case((draw.number(0.02, 0.4),), "another slope"),
        Case((draw.number(0.8, 2.0),), "a steep one"),
    ]


GATE_LIKE_ALIBI = Question(
    name="gate_like_alibi",
    exercise="10",
    title="A gate that forgets as ALiBi does.",
    returns="one number",
    section=GATE,
    draw=_gate_cases,
    reference=gate_like_alibi,
    wrong=(
        Wrong(
            "the gate itself",
            lambda m: math.exp(-m),
            "That is how far the gate stands open. Asked for is b, the number that goes into the sigmoid.",
        ),
        Wrong(
            "the slope",
            lambda m: -m,
            "That is the logarithm of the gate, which is added to the scores. Which b makes the sigmoid "
            "give such a gate?",
        ),
        Wrong(
            "the other way",
            lambda m: math.log((1 - math.exp(-m)) / math.exp(-m)),
            "Your gate is shut where it should be open: with a small slope nearly everything must be "
            "kept, so b is large.",
        ),
        Wrong(
            "the slope as a gate",
            lambda m: math.log(m / (1 - m)) if 0 < m < 1 else 0.0,
            "Your gate is m. The gate's logarithm should be −m.",
        ),
        Wrong(
            "one minus the slope",
            lambda m: math.log((1 - m) / m) if 0 < m < 1 else 0.0,
            "Your gate is 1 − m. That is close for small slopes; but what is added is the logarithm of the "
            "gate, and it should be −m exactly.",
        ),
        Wrong(
            "sigmoid instead of its inverse",
            lambda m: 1 / (1 + math.exp(m)),
            "You have put −m into a sigmoid. The sigmoid comes after b; you need its inverse.",
        ),
    ),
    hints=(
        "Each token between key and query adds log f to the score. ALiBi adds −m. So how large is f?",
        "f = e^(−m). Now find b with σ(b) = f. The inverse of the sigmoid is log(f / (1 − f)).",
        "f = math.exp(-m), and then math.log(f / (1 - f)).",
    ),
)


# ---- places ----
def places(before, rows, columns, after):
    """Positions [tokens, 3] of a text, a picture of rows × columns patches, and a text again."""
    text = torch.arange(before).repeat(3, 1).T
    r, c = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    picture = before + torch.stack([0 * r, r, c], -1).flatten(0, 1)
    again = before + max(rows, columns) + torch.arange(after).repeat(3, 1).T
    return torch.cat([text, picture, again])


def _positions(before, rows, columns, after, *, patch, resume=None):
    """A wrong answer: ``patch(start, row, column)`` for a patch; the text goes on at ``resume(…)``."""
    resume = resume or (lambda before, rows, columns: before + max(rows, columns))
    start = resume(before, rows, columns)
    listed = [[n] * 3 for n in range(before)]
    listed += [patch(before, r, c) for r in range(rows) for c in range(columns)]
    listed += [[start + n] * 3 for n in range(after)]
    return torch.tensor(listed)


def _right(start, r, c):
    return [start, start + r, start + c]


def _places_cases(draw: Draw) -> list[Case]:
    return [
        Case((3, 2, 3, 2), "3 words, a picture of 2 × 3, 2 words"),
        Case((draw.integer(1, 4), draw.integer(4, 5), draw.integer(2, 3), 2), "higher than wide"),
        Case((draw.integer(4, 6), 2, draw.integer(4, 6), draw.integer(1, 3)), "a wide picture"),
    ]


PLACES = Question(
    name="places",
    exercise="10",
    title="Three numbers for each token of a sentence with a picture.",
    returns="a tensor [tokens, 3] of whole numbers: time, row, column",
    section=PICTURE,
    draw=_places_cases,
    reference=places,
    wrong=(
        Wrong(
            "the text goes on by tokens",
            lambda *given: _positions(*given, patch=_right, resume=lambda b, r, c: b + r * c),
            "Your text goes on as if every patch had used up a number. A picture takes only as many as its "
            "longer side.",
        ),
        Wrong(
            "the text goes on after the rows",
            lambda *given: _positions(*given, patch=_right, resume=lambda b, r, c: b + r),
            "Your text goes on after the number of rows. In a wide picture, some columns have larger "
            "numbers than that, and the words would get numbers below theirs.",
        ),
        Wrong(
            "the text goes on after the columns",
            lambda *given: _positions(*given, patch=_right, resume=lambda b, r, c: b + c),
            "Your text goes on after the number of columns. In a high picture, some rows have larger "
            "numbers than that, and the words would get numbers below theirs.",
        ),
        Wrong(
            "one number for the picture",
            lambda *given: _positions(*given, patch=_right, resume=lambda b, r, c: b + 1),
            "Your text goes on as if the picture were one token. Then words get numbers that patches "
            "already have.",
        ),
        Wrong(
            "the picture starts at 0",
            lambda *given: _positions(*given, patch=lambda start, r, c: [start, r, c]),
            "Rows and columns begin at 0. They should go on from where the text has stopped, as time does.",
        ),
        Wrong(
            "row and column swapped",
            lambda *given: _positions(*given, patch=lambda start, r, c: [start, start + c, start + r]),
            "Row and column have changed places. The order is time, row, column.",
        ),
        Wrong(
            "time goes on in the picture",
            lambda before, rows, columns, after: _positions(
                before,
                rows,
                columns,
                after,
                patch=lambda start, r, c: [start + r * columns + c, start + r, start + c],
            ),
            "Time goes on from patch to patch. A picture is one moment: all its patches have the same time.",
        ),
        Wrong(
            "time at 0 in the picture",
            lambda *given: _positions(*given, patch=lambda start, r, c: [0, start + r, start + c]),
            "The picture's time is 0. It stands in the middle of a sentence, so its time is that of the "
            "place where it begins.",
        ),
    ),
    hints=(
        "Three pieces: words (p, p, p); patches (start, start + row, start + column); words again. Where "
        "must the last piece begin, so that it comes after everything?",
        'torch.arange(n).repeat(3, 1).T gives n words; torch.meshgrid(…, indexing="ij") gives the rows and '
        "columns of all patches. A loop and a list of lists do, too.",
        "start is before; the last piece begins at before + max(rows, columns); torch.cat joins the three.",
    ),
)

QUESTIONS = (PATTERN, LATENT_ATTENTION, SHARPER, GATE_LIKE_ALIBI, PLACES)
