"""Exercise 03: learned position tables."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tutorial_lib.language import ENGLISH, _, speaking

from ..question import Case, Draw, Question, Variant, Wrong

TABLE = '03, section "A table of parameters"'
SCALE = 'deeper/03_tables, section "How large should the numbers start?"'
TRAINED = '03, section "Which rows get trained?"'
LONGER = '03, section "Beyond the wall"'
IMAGES = 'deeper/03_images, section "Two axes"'


# ---- lookup_test ----
# A test that the learner writes: it is good when none of these look-ups gets the right numbers on it.
def _look_up(tokens, E, P, positions):
    return E[tokens] + P[positions]


def _dropped(index, n):
    """Indices that never reach the last row: the clamp is too small by one."""
    return index.clamp(max=n - 2)


def _remembered(tokens, E, P, positions):
    """A cache by token: when a token recurs, it comes back with its first position."""
    first = [[text.index(token) for token in text] for text in tokens.tolist()]
    return E[tokens] + P[positions[torch.tensor(first)]]


def _padded(tokens, E, P, positions):
    return E[tokens] + P[positions] * (positions != 0)[:, None]


def _broken_look_ups():
    """The broken look-ups, each by what it does, in the words that the reader sees."""
    return {
        _("takes rows 0 … L − 1, whatever the positions are"): lambda tokens, E, P, positions: _look_up(
            tokens, E, P, torch.arange(len(positions))
        ),
        _("counts on from the first position"): lambda tokens, E, P, positions: _look_up(
            tokens, E, P, (positions[0] + torch.arange(len(positions))) % len(P)
        ),
        _("sorts the positions first"): lambda tokens, E, P, positions: _look_up(
            tokens, E, P, positions.sort().values
        ),
        _("never reaches the last row of P"): lambda tokens, E, P, positions: _look_up(
            tokens, E, P, _dropped(positions, len(P))
        ),
        _("never reaches the last row of E"): lambda tokens, E, P, positions: _look_up(
            _dropped(tokens, len(E)), E, P, positions
        ),
        _("takes position 0 for padding and adds nothing there"): _padded,
        _("keeps the vector of a token that it has seen, with its first position"): _remembered,
        _("reads the first text for the whole batch"): lambda tokens, E, P, positions: _look_up(
            tokens[:1].expand_as(tokens), E, P, positions
        ),
    }


NO_WORD = "A token lies outside of its table: tokens go from 0 to words − 1."
NO_ROW = "A position lies outside of its table: positions go from 0 to rows − 1."


def _input(value) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Tokens [B, L] and positions [L], each of them None where it is something else."""
    tokens, positions = value if isinstance(value, list) and len(value) == 2 else (None, None)
    return whole(tokens, 2), whole(positions, 1)


def _limit(tokens: torch.Tensor | None, positions: torch.Tensor | None, words: int, rows: int) -> str:
    """Which limit of an input is broken, as a learner reads it, or ""."""
    if tokens is None:
        return _(
            "The first of the two should be tokens: whole numbers, a list of them for each text, [B, L]."
        )
    if positions is None:
        return _("The second of the two should be positions: a list of whole numbers, [L], for all texts.")
    if tokens.shape[1] != len(positions):
        return _("A text has {n} tokens, and there are {m} positions: each place needs one.").format(
            n=tokens.shape[1], m=len(positions)
        )
    if len(tokens) > 3:
        return _("There are {n} texts, and 3 are the most.").format(n=len(tokens))
    if len(positions) > 6:
        return _("A text has {n} tokens, and 6 are the most.").format(n=len(positions))
    if tokens.min() < 0 or tokens.max() >= words:
        return _(NO_WORD)
    return _(NO_ROW) if positions.min() < 0 or positions.max() >= rows else ""


def _lookup_test_cases(draw: Draw) -> list[Case]:
    words, rows = 8 + draw.permutation(6), 9 + draw.permutation(6)
    return [
        Case((int(w), int(r)), _("{words} words and {rows} rows").format(words=int(w), rows=int(r)))
        for w, r in zip(words[:4], rows[:4], strict=True)
    ]


def whole(value, axes: int) -> torch.Tensor | None:
    """A value as a tensor of whole numbers with that many axes, or None."""
    try:
        value = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    whole = not value.is_floating_point() and not value.is_complex() and value.dtype != torch.bool
    return value.long() if whole and value.ndim == axes and value.numel() else None


def _survivors(tokens: torch.Tensor, positions: torch.Tensor, words: int, rows: int) -> list[str]:
    """The broken look-ups that give the right numbers for this input."""
    draw = Draw(words * rows)
    E, P = draw.normal(words, 4), draw.normal(rows, 4)
    right = _look_up(tokens, E, P, positions)
    return [
        what
        for what, broken in _broken_look_ups().items()
        if torch.allclose(broken(tokens, E, P, positions), right)
    ]


def told_green(*whats: str) -> str:
    """What a learner reads about broken look-ups that pass."""
    each = _("; ").join(_("one that {what}").format(what=what) for what in whats)
    return _("Your test is green for broken code: {each}. It gives the right numbers on your input.").format(
        each=each
    )


def green(*whats: str) -> str:
    """The same in English, as the texts of wrong answers are."""
    with speaking(ENGLISH):
        return told_green(*whats)


def _lookup_test_says(value, case: Case) -> str:
    tokens, positions = _input(value)
    if limit := _limit(tokens, positions, *case.args):
        return limit
    assert tokens is not None and positions is not None
    found = _survivors(tokens, positions, *case.args)
    return told_green(*found) if found else ""


def _lookup_test(words, rows):
    last = words - 1
    return [[2, last, 2, 0], [last, 1, 0, 3]], [rows - 1, 3, 0, 4]


def _test_but(tokens=None, positions=None):
    """A test that lacks one thing."""

    def answer(words, rows):
        texts, places = _lookup_test(words, rows)
        return (tokens(words, texts) if tokens else texts), (positions(rows) if positions else places)

    return answer


_IN_ORDER = (
    "takes rows 0 … L − 1, whatever the positions are",
    "counts on from the first position",
    "sorts the positions first",
    "never reaches the last row of P",
)

LOOKUP_TEST = Question(
    name="lookup_test",
    exercise="03",
    title="An input on which eight broken look-ups are all found out.",
    returns="two lists (or tensors): tokens [B, L] and positions [L]",
    section=TABLE,
    draw=_lookup_test_cases,
    reference=_lookup_test,
    faults=_lookup_test_says,
    own_words=True,
    wrong=(
        Wrong("positions in order from 0", _test_but(positions=lambda rows: [0, 1, 2, 3]), green(*_IN_ORDER)),
        Wrong(
            "one text",
            _test_but(tokens=lambda words, texts: texts[:1]),
            green("reads the first text for the whole batch"),
        ),
        Wrong(
            "no token twice",
            _test_but(tokens=lambda words, texts: [[2, words - 1, 1, 0], texts[1]]),
            green("keeps the vector of a token that it has seen, with its first position"),
        ),
        Wrong(
            "position 0 left out",
            _test_but(positions=lambda rows: [rows - 1, 3, 1, 4]),
            green("takes position 0 for padding and adds nothing there"),
        ),
        Wrong(
            "the last row left out",
            _test_but(positions=lambda rows: [rows - 2, 3, 0, 4]),
            green("never reaches the last row of P"),
        ),
        Wrong(
            "the last word left out",
            _test_but(tokens=lambda words, texts: [[2, 1, 2, 0], [3, 1, 0, 3]]),
            green("never reaches the last row of E"),
        ),
        Wrong(
            "positions in rising order",
            _test_but(positions=lambda rows: [0, 3, 5, rows - 1]),
            green("sorts the positions first"),
        ),
        Wrong(
            "a token outside of its table",
            _test_but(tokens=lambda words, texts: [[2, words, 2, 0], texts[1]]),
            NO_WORD,
        ),
        Wrong("outside of the tables", _test_but(positions=lambda rows: [rows, 3, 0, 4]), NO_ROW),
    ),
    variants=(
        Variant(
            "three texts of two",
            lambda words, rows: (torch.tensor([[1, 1], [words - 1, 0], [0, 2]]), torch.tensor([rows - 1, 0])),
            "Two positions are enough, the last one and 0, in falling order.",
        ),
        Variant(
            "longer texts",
            lambda words, rows: (
                [[0, 1, 0, 2, 3, words - 1], [words - 1, 2, 1, 1, 0, 2]],
                [4, rows - 1, 0, 2, 6, 3],
            ),
            "A longer test finds them as well.",
        ),
    ),
    hints=(
        "Take the broken versions one by one: for which inputs do they happen to be right? Your input must "
        "be none of these.",
        "Borders find much: the first and the last entry of each table. Repetition and disorder find the "
        "rest.",
        "Two different texts, one token that occurs twice in the first of them, and positions that fall, "
        "with a gap, from the last row to row 0.",
    ),
)


# ---- sum_similarity ----
def _sum_similarity_cases(draw: Draw) -> list[Case]:
    cases = []
    for words, rows, d, (token_std, table_std) in (
        (7, 5, 12, (1.0, 1.0)),
        (6, 9, 9, (1.0, 0.4)),
        (8, 6, 10, (0.02, 0.05)),
        (5, 7, 16, (0.5, 0.3)),
    ):
        # vectors of unequal lengths that share a direction, as real tables have
        E, P = (draw.normal(n, d) + shared for n, shared in ((words, 0.5), (rows, -0.8)))
        E, P = (t * draw.uniform(len(t), 1, low=0.4, high=1.6) for t in (E, P))
        what = _("{words} tokens of std {token_std:g}, {rows} positions of std {table_std:g}").format(
            words=words, token_std=token_std, rows=rows, table_std=table_std
        )
        cases.append(Case((token_std * E, table_std * P), what))
    return cases


def _pairs(E, P):
    return E[:, None], P[None], E[:, None] + P[None]


def _mean_cosine(a, b, dim=-1):
    return F.cosine_similarity(a, b, dim=dim).mean().item()


def _sum_similarity(E, P):
    e, p, h = _pairs(E, P)
    return _mean_cosine(h, e), _mean_cosine(h, p)


def _looped_similarity(E, P):
    found = [[], []]
    for e in E:
        for p in P:
            for to, x in zip(found, (e, p), strict=True):
                to.append(float(torch.dot(e + p, x) / ((e + p).norm() * x.norm())))
    return [sum(one) / len(one) for one in found]


def _unit_similarity(E, P):
    h = F.normalize(_pairs(E, P)[2], dim=-1)
    token = torch.einsum("vpd,vd->vp", h, F.normalize(E, dim=-1))
    place = torch.einsum("vpd,pd->vp", h, F.normalize(P, dim=-1))
    return torch.stack([token.mean(), place.mean()])


def _paired_off(E, P):
    n = min(len(E), len(P))
    h = E[:n] + P[:n]
    return _mean_cosine(h, E[:n]), _mean_cosine(h, P[:n])


def _cosine_of_means(E, P):
    e, p = E.mean(0), P.mean(0)
    return _mean_cosine(e + p, e), _mean_cosine(e + p, p)


def _share_of_length(E, P):
    e, p = E.norm(dim=-1)[:, None], P.norm(dim=-1)[None]
    return (e / (e + p)).mean().item(), (p / (e + p)).mean().item()


def _centred(E, P):
    return _sum_similarity(E - E.mean(-1, keepdim=True), P - P.mean(-1, keepdim=True))


def _each(change):
    """The same measurement with each cosine changed before the mean."""

    def answer(E, P):
        e, p, h = _pairs(E, P)
        return tuple(change(F.cosine_similarity(h, x, dim=-1)).mean().item() for x in (e, p))

    return answer


SUM_SIMILARITY = Question(
    name="sum_similarity",
    exercise="03",
    title="How much the sum of token and position still points to each of the two.",
    returns="two numbers: the mean cosine of sum and token, and the mean cosine of sum and position",
    section=SCALE,
    draw=_sum_similarity_cases,
    reference=_sum_similarity,
    wrong=(
        Wrong(
            "token and position exchanged",
            lambda E, P: _sum_similarity(E, P)[::-1],
            "Both numbers are right, in the other order: first comes the cosine with the token.",
        ),
        Wrong(
            "only token n at place n",
            _paired_off,
            "Token 0 meets row 0 only, token 1 row 1 only. In a text, any token can stand at any place: "
            "all pairs count. With tables of different lengths, some rows were never looked at.",
        ),
        Wrong(
            "dot products instead of cosines",
            lambda E, P: tuple((_pairs(E, P)[2] * x).sum(-1).mean().item() for x in _pairs(E, P)[:2]),
            "These are dot products: they grow with the lengths of the vectors, and can exceed 1. The "
            "cosine asks for the direction only.",
        ),
        Wrong(
            "compared with each other",
            lambda E, P: (_mean_cosine(E[:, None], P[None]),) * 2,
            "Token and position are compared with each other. That they differ is not the question; how "
            "much of each is still visible in their sum?",
        ),
        Wrong(
            "cosine of the mean vectors",
            _cosine_of_means,
            "The vectors are averaged first. A mean of many vectors is no vector that the model ever "
            "meets: take the cosine for each pair, then the mean of the cosines.",
        ),
        Wrong(
            "share of the lengths",
            _share_of_length,
            "This compares how long token and row are. It says which one is larger, but not where their "
            "sum points: a cosine needs all three vectors.",
        ),
        Wrong(
            "cosine along the wrong axis",
            lambda E, P: (
                _mean_cosine(_pairs(E, P)[2], E[:, None], 0),
                _mean_cosine(_pairs(E, P)[2], P[None], 1),
            ),
            "The cosine runs along the list of tokens or of positions, not along the d channels of one "
            "vector. Check the shape before the mean: there should be a cosine for each pair.",
        ),
        Wrong(
            "cosine along the default axis",
            lambda E, P: (
                _mean_cosine(_pairs(E, P)[2], E[:, None], 1),
                _mean_cosine(_pairs(E, P)[2], P[None], 1),
            ),
            "The cosine runs along axis 1, which is the default of the library: here the list of "
            "positions. The d channels of one vector lie along the last axis.",
        ),
        Wrong(
            "absolute cosines",
            _each(torch.abs),
            "The sign of each cosine is dropped, so a sum that points away from its token counts as similar.",
        ),
        Wrong(
            "squared cosines",
            _each(torch.square),
            "Each cosine is squared before the mean. That is a share of squared length, always smaller "
            "than the size of the cosine.",
        ),
        Wrong(
            "divided by one length only",
            lambda E, P: tuple(
                ((_pairs(E, P)[2] * x).sum(-1) / (x * x).sum(-1)).mean().item() for x in _pairs(E, P)[:2]
            ),
            "This is a projection: the product is divided by the squared length of one vector. A cosine "
            "divides by the lengths of both, so it never leaves −1 … 1.",
        ),
        Wrong(
            "centred vectors",
            _centred,
            "The mean over the channels is taken off each vector first. That is a correlation; the "
            "model meets the vectors as they are.",
        ),
        Wrong(
            "lengths made equal first",
            lambda E, P: _sum_similarity(F.normalize(E, dim=-1), F.normalize(P, dim=-1)),
            "You give all vectors the length 1 before you add them. But the question is what their lengths "
            "do to the sum: add them as they are.",
        ),
    ),
    variants=(
        Variant("a loop", _looped_similarity, "One pair after the other gives the same means."),
        Variant(
            "unit vectors and einsum", _unit_similarity, "The product of two unit vectors is their cosine."
        ),
    ),
    hints=(
        "Every token can stand at every place. Build the sums of all pairs first, then ask each sum for "
        "its two parents.",
        "With an extra axis in each table, broadcasting gives the sums as [V, rows, d]. A cosine along the "
        "channels leaves [V, rows], and the mean leaves one number.",
        "`torch.nn.functional.cosine_similarity` broadcasts, too: give it the sums and one of the two "
        "tables with its extra axis, and say along which axis the channels lie.",
    ),
)


# ---- untrained_rows ----
def _untrained_rows_cases(draw: Draw) -> list[Case]:
    cases = []
    for rows, d, std, decay in (
        (16, 8, 1.0, 0.6),
        (21, 13, 0.02, 0.5),
        (19, 24, 1.0, 1.0),
        (17, 16, 0.5, 0.7),
    ):
        start = std * draw.normal(rows, d)
        end = decay * start
        kinds = draw.permutation(rows)
        pieces = kinds.tensor_split((3, 6, 9, 10, rows - 4))
        slightly, moved, shorter, turned, grown = pieces[:5]
        # turned by a cosine of 0.995: more than rounding does, and less than one per cent
        side = draw.normal(len(slightly), d)
        old = F.normalize(start[slightly], dim=1)
        side = F.normalize(side - (side * old).sum(1, keepdim=True) * old, dim=1)
        turned_little = 0.995 * old + (1 - 0.995**2) ** 0.5 * side
        end[slightly] = 0.98 * start[slightly].norm(dim=1, keepdim=True) * turned_little
        for which, size, length in ((moved, 1.0, 1.5), (shorter, 1.0, 0.8)):
            now = start[which] + size * std * draw.normal(len(which), d)
            old = start[which].norm(dim=1, keepdim=True)
            end[which] = length * old * F.normalize(now, dim=1)
        end[turned] = -0.8 * start[turned]
        # every other channel by size, so that no large one decides alone
        every_other = (start[slightly].abs().argsort(1).argsort(1) % 2).float()
        end[slightly[:2]] = (start * 0.9)[slightly[:2]] * (1 - 0.25 * every_other[:2])  # all signs stay
        if decay < 1:
            end[grown[:2]] = 1.7 * start[grown[:2]]
        end[grown[2:]] = 1.005 * start[grown[2:]]
        how = _("weight decay") if decay < 1 else _("no weight decay")
        cases.append(
            Case(
                (start, end),
                _("{rows} rows, d = {d}, started at std {std:g}, {how}").format(
                    rows=rows, d=d, std=std, how=how
                ),
            )
        )
    return cases


def _cosines(start, end):
    return F.cosine_similarity(start, end, dim=1)


def _longer(start, end):
    return end.norm(dim=1) > start.norm(dim=1) * (1 + 1e-6)


def _untrained_rows(start, end):
    return (_cosines(start, end) > 0.999) & ~_longer(start, end)


def _by_residual(start, end):
    """The part of each new row that no multiple of the old row explains."""
    share = (start * end).sum(1) / (start * start).sum(1)
    rest = (end - share[:, None] * start).norm(dim=1)
    return (rest < 0.02 * end.norm(dim=1)) & (share > 0) & (share < 1 + 1e-5)


def _looped_untrained(start, end):
    return [
        bool(torch.dot(a / a.norm(), b / b.norm()) > 0.999 and b.norm() <= a.norm() * 1.0001)
        for a, b in zip(start, end, strict=True)
    ]


def _moved_little(start, end):
    return (end - start).norm(dim=1) < 0.25 * start.norm(dim=1)


def _behind_the_last_change(start, end):
    trained = (~_untrained_rows(start, end)).nonzero()
    return torch.arange(len(start)) > (int(trained[-1]) if len(trained) else -1)


UNTRAINED_ROWS = Question(
    name="untrained_rows",
    exercise="03",
    title="Which rows of a table no training text has reached.",
    returns="a bool tensor of shape [rows], True for a row that nothing but weight decay has changed",
    section=TRAINED,
    draw=_untrained_rows_cases,
    reference=_untrained_rows,
    wrong=(
        Wrong(
            "the trained rows",
            lambda start, end: ~_untrained_rows(start, end),
            "True and False have changed places: these are the rows that were trained.",
        ),
        Wrong(
            "weight decay forgotten",
            lambda start, end: (start == end).all(1),
            "Only rows that did not change at all count as untrained. Weight decay shortens every row, "
            "also one without any gradient: with it, you find none.",
        ),
        Wrong(
            "moved only a little",
            _moved_little,
            "This asks how far a row has moved. Weight decay alone moves a row far after many steps, and "
            "a trained row can stay close to its start. Distance is the wrong question; direction is not.",
        ),
        Wrong(
            "shorter than before",
            lambda start, end: ~_longer(start, end),
            "This looks at lengths alone. Training can shorten a row, too, while it turns it.",
        ),
        Wrong(
            "longer rows included",
            lambda start, end: _cosines(start, end) > 0.999,
            "Right for the direction. But weight decay can only shrink: a row that points where it "
            "started and has grown was trained.",
        ),
        *[
            Wrong(
                name,
                lambda start, end, least=least, most=most: (
                    (_cosines(start, end) > least) & (end.norm(dim=1) <= most * start.norm(dim=1))
                ),
                says,
            )
            for name, least, most, says in (
                (
                    "one per cent of turning allowed",
                    0.99,
                    1 + 1e-6,
                    "You let a row turn as far as a cosine of 0.99. That is far more than rounding does: "
                    "such a "
                    "row was trained. The question says where to draw the line.",
                ),
                (
                    "one per cent of growth allowed",
                    0.999,
                    1.01,
                    "You let a row grow by one per cent. Rounding changes the seventh digit; weight decay "
                    "only "
                    "shrinks, so a row that grew was trained.",
                ),
                (
                    "one per cent allowed",
                    0.99,
                    1.01,
                    "One per cent is allowed, for the direction and for the length. That is far more than "
                    "rounding does: rows that were trained a little pass for untrained.",
                ),
            )
        ],
        Wrong(
            "direction up to the sign",
            lambda start, end: (_cosines(start, end).abs() > 0.999) & ~_longer(start, end),
            "A row that now points the opposite way counts as untrained. Weight decay takes off a small "
            "share at each step; it never turns a row round.",
        ),
        Wrong(
            "sign and length ignored",
            lambda start, end: _cosines(start, end).abs() > 0.999,
            "Any multiple of the old row counts as untrained, also a negative or a larger one. Weight "
            "decay multiplies by a number between 0 and 1.",
        ),
        Wrong(
            "numbers of the rows",
            lambda start, end: _untrained_rows(start, end).nonzero().flatten(),
            "These are the numbers of the untrained rows. Wanted is a mask: True or False for each row "
            "of the table.",
        ),
        Wrong(
            "along the columns",
            lambda start, end: F.cosine_similarity(start, end, dim=0) > 0.999,
            "The comparison runs down the columns, so you get an answer per channel. A position is a "
            "row: compare row with row.",
        ),
        Wrong(
            "dot products instead of cosines",
            lambda start, end: ((start * end).sum(1) > 0.999) & ~_longer(start, end),
            "These are dot products: they depend on how large the table started, so the same threshold "
            "does not fit std 0.02 and std 1.",
        ),
        Wrong(
            "all rows behind the last trained one",
            _behind_the_last_change,
            "This takes the end of the table and nothing else. Rows in the middle can miss training, "
            "too: when texts are packed or start at chosen places.",
        ),
        Wrong(
            "one answer for the table",
            lambda start, end: bool(F.cosine_similarity(start.flatten(), end.flatten(), dim=0) > 0.999),
            "This is one answer for the whole table. Each row is trained for itself and needs its own.",
        ),
        *(
            Wrong(
                name,
                answer,
                "You mark the rows that have turned. Those are the trained ones: True is for rows that still "
                "point where they started.",
            )
            for name, answer in (
                ("rows that have turned", lambda start, end: _cosines(start, end) <= 0.999),
                (
                    "rows that have turned and have not grown",
                    lambda start, end: (_cosines(start, end) < 0.999) & ~_longer(start, end),
                ),
            )
        ),
    ),
    variants=(
        Variant(
            "what is left over",
            _by_residual,
            "A row that is a multiple of its old self leaves nothing over; this finds the same rows.",
        ),
        Variant("a loop", _looped_untrained, "Row by row, with unit vectors, gives the same answer."),
    ),
    hints=(
        "Without a gradient, the optimizer still multiplies a row by a number a little below 1 at each "
        "step. What does that leave unchanged, and what can it never do?",
        "Two conditions for each row, joined by `&`: one on the cosine of old and new row, one on their "
        "lengths.",
        "The cosine runs along the channels, must be positive and close to 1; the new length must not "
        "exceed the old one (leave a little room for rounding).",
    ),
)


# ---- longer_table ----
def _longer_table_cases(draw: Draw) -> list[Case]:
    cases = []
    for old, new, d, way in (
        (5, 12, 4, "copy"),
        (4, 8, 3, "interpolate"),
        (6, 15, 5, "interpolate"),
        (7, 21, 2, "copy"),
        (3, 10, 6, "interpolate"),
    ):
        rows = new + draw.integer(0, 1) * (way == "interpolate")
        cases.append(
            Case(
                (draw.normal(old, d), rows, way),
                _('way = "{way}", {old} rows made {rows}').format(way=way, old=old, rows=rows),
            )
        )
    return cases


def _copied(P, rows):
    return P[torch.arange(rows) % len(P)]


def _interpolated(P, rows, step=None, nearest=False, swapped=False):
    where = torch.arange(rows) * ((len(P) - 1) / (rows - 1) if step is None else step)
    if nearest:
        return P[where.round().long()]
    low = where.long().clamp(max=len(P) - 1)
    share = (where - low)[:, None]
    share = 1 - share if swapped else share
    return (1 - share) * P[low] + share * P[(low + 1).clamp(max=len(P) - 1)]


def _given_interpolation(P, rows):
    return _interpolated(P, rows, step=len(P) / rows)


def _ways(copy, interpolate):
    return lambda P, rows, way: copy(P, rows) if way == "copy" else interpolate(P, rows)


def _stretch(P, rows, **options):
    return F.interpolate(P.T[None], size=rows, mode="linear", **options)[0].T


def _given_copy(P, rows):
    return P.repeat_interleave(rows // len(P), 0)


def _mirrored(P, rows):
    n = torch.arange(rows) % (2 * len(P))
    return P[n.minimum(2 * len(P) - 1 - n)]


def _rounded_below(P, rows):
    where = torch.arange(rows) * ((len(P) - 1) / (rows - 1))
    low = where.round().long()
    share = (where - low)[:, None]
    return (1 - share) * P[low] + share * P[(low + 1).clamp(max=len(P) - 1)]


def _longer_table(P, rows, way):
    return _copied(P, rows) if way == "copy" else _interpolated(P, rows)


def _looped_longer(P, rows, way):
    made = []
    for n in range(rows):
        if way == "copy":
            made.append(P[n % len(P)])
        else:
            where = n * (len(P) - 1) / (rows - 1)
            low = min(int(where), len(P) - 2)
            made.append(torch.lerp(P[low], P[low + 1], where - low))
    return torch.stack(made)


LONGER_TABLE = Question(
    name="longer_table",
    exercise="03",
    title="A table made longer: copied again and again, or stretched.",
    returns="a tensor of shape [rows, d]",
    section=LONGER,
    draw=_longer_table_cases,
    reference=_longer_table,
    picture="heat",
    wrong=(
        Wrong(
            "nothing repaired",
            _ways(_given_copy, _given_interpolation),
            "This is what the broken code returns. Give it a table with the rows 0, 1, 2, … (one column) "
            "and print what comes out of each way: what should stand there?",
        ),
        Wrong(
            "stretching as it was",
            _ways(_copied, _given_interpolation),
            "Copying is right. Stretching still goes wrong at the end: the last row of the old table "
            "should be the last row of the new one, and the steps between should all be equal.",
        ),
        Wrong(
            "copying as it was",
            _ways(_given_copy, _interpolated),
            "Stretching is right. Copying is not yet: a head that looks three rows back should find the "
            "same three steps as before. And does every number of rows come out?",
        ),
        Wrong(
            "rest of the copy lost",
            _ways(lambda P, rows: P.repeat(rows // len(P), 1), _interpolated),
            "Whole tables are copied, and the rest is dropped: when the new length is no multiple of the "
            "old one, rows are missing at the end.",
        ),
        Wrong(
            "rest of the copy lost, stretching as it was",
            _ways(lambda P, rows: P.repeat(rows // len(P), 1), _given_interpolation),
            "Copying now repeats the whole table, but a rest of rows is dropped when the new length is no "
            "multiple of the old one. Stretching still misses the last row at its end.",
        ),
        Wrong(
            "each row repeated",
            _ways(lambda P, rows: P[torch.arange(rows) * len(P) // rows], _interpolated),
            "Each row stands there several times in a row. Neighbours become twins, and three tokens back is "
            "one row back. Copy the table, not the rows.",
        ),
        Wrong(
            "last row again and again",
            _ways(lambda P, rows: P[torch.arange(rows).clamp(max=len(P) - 1)], _interpolated),
            "All new rows are the last old one. So all tokens beyond the old end seem to stand at one "
            "place; copying keeps the distances within each copy.",
        ),
        Wrong(
            "centres instead of corners",
            _ways(_copied, lambda P, rows: _stretch(P, rows)),
            "Copying is right. Stretching matches the middles of the cells, as image libraries do unless "
            "told otherwise: rows near both ends are constant instead of evenly spread.",
        ),
        Wrong(
            "nearest row",
            _ways(_copied, lambda P, rows: _interpolated(P, rows, nearest=True)),
            "Each new row is the nearest old one. Between two rows there should be a mixture of both.",
        ),
        Wrong(
            "shares exchanged",
            _ways(_copied, lambda P, rows: _interpolated(P, rows, swapped=True)),
            "The two neighbours of a new row are right, their shares are exchanged: the nearer row "
            "should count more. At the ends nothing but the wrong row is left.",
        ),
        Wrong(
            "one step too long",
            _ways(_copied, lambda P, rows: _interpolated(P, rows, step=len(P) / (rows - 1))),
            "The steps are too long: before the end is reached, the old table is used up. From its first "
            "row to its last there are fewer steps than rows.",
        ),
        Wrong(
            "ways exchanged",
            lambda P, rows, way: _longer_table(P, rows, "interpolate" if way == "copy" else "copy"),
            "Both ways are right, but each is returned under the name of the other.",
        ),
        Wrong(
            "stretched along the channels",
            _ways(
                _copied,
                lambda P, rows: F.interpolate(P[None], size=rows, mode="linear", align_corners=True)[0],
            ),
            "The channels were stretched, not the rows: the new table has more numbers per position, and "
            "not more positions. `interpolate` stretches the last axis.",
        ),
        Wrong(
            "copied to and fro",
            _ways(_mirrored, _interpolated),
            "Every second copy runs backwards. Each one should begin with row 0 again: going on by one place "
            "in the text is then going on by one row.",
        ),
        Wrong(
            "the lower neighbour rounded",
            _ways(_copied, _rounded_below),
            "The lower of the two neighbours is found by rounding, which goes up half of the time. It is the "
            "whole part.",
        ),
    ),
    variants=(
        Variant(
            "interpolate and repeat",
            _ways(
                lambda P, rows: P.repeat(-(-rows // len(P)), 1)[:rows],
                lambda P, rows: _stretch(P, rows, align_corners=True),
            ),
            "One copy too many, cut off at the end, and PyTorch's own interpolation do the same.",
        ),
        Variant("a loop", _looped_longer, "Row by row gives the same table."),
    ),
    hints=(
        "Test with a table of one column that holds 0, 1, 2, … Then each result tells from which old row "
        "it was made.",
        "Copy: new row n is some old row; which one, if the table starts again after its last row? Stretch: "
        "the first and the last row must stay the ends; how many steps lie between them, before and after?",
        "From the first to the last of n rows there are n − 1 steps. And a remainder of a division (%) "
        "counts round and round.",
    ),
)


# ---- resize_grid ----
def _resize_grid_cases(draw: Draw) -> list[Case]:
    cases = []
    for d, old, new in (
        (8, (3, 4), (5, 7)),
        (9, (4, 2), (6, 5)),
        (10, (2, 5), (3, 9)),
        (7, (3, 6), (7, 6)),
        (6, (7, 5), (4, 3)),
        (11, (5, 4), (3, 8)),
    ):
        cases.append(
            Case(
                (draw.normal(1 + old[0] * old[1], d), old, new),
                _("a grid of {h} × {w} patches for {H} × {W}").format(h=old[0], w=old[1], H=new[0], W=new[1]),
            )
        )
    return cases


def _resize_grid(P, old, new, mode="bilinear", corners=True):
    d = P.shape[1]
    grid = P[1:].T.reshape(1, d, *old)
    grid = F.interpolate(grid, size=tuple(new), mode=mode, align_corners=corners)
    return torch.cat([P[:1], grid.reshape(d, -1).T])


def _axis_by_axis(P, old, new):
    def mix(a, b):  # [b, a], each row the shares of the old places
        where = torch.linspace(0, a - 1, b, dtype=torch.float64)
        return (1 - (where[:, None] - torch.arange(a)).abs()).clamp(min=0)

    grid = P[1:].reshape(*old, -1).double()
    grid = torch.einsum("Hh,Ww,hwd->HWd", mix(old[0], new[0]), mix(old[1], new[1]), grid)
    return torch.cat([P[:1].double(), grid.flatten(0, 1)])


def _looped_grid(P, old, new):
    (h, w), (H, W) = old, new
    rows = [P[0]]
    for a in range(H):
        for b in range(W):
            y, x = a * (h - 1) / (H - 1), b * (w - 1) / (W - 1)
            top, left = min(int(y), h - 2), min(int(x), w - 2)
            upper, lower = (
                torch.lerp(P[1 + line * w + left], P[2 + line * w + left], x - left)
                for line in (top, top + 1)
            )
            rows.append(torch.lerp(upper, lower, y - top))
    return torch.stack(rows)


def _as_one_line(P, old, new):
    return torch.cat([P[:1], _stretch(P[1:], new[0] * new[1], align_corners=True)])


def _without_moving_axes(P, old, new):
    grid = F.interpolate(
        P[1:].reshape(1, P.shape[1], *old), size=tuple(new), mode="bilinear", align_corners=True
    )
    return torch.cat([P[:1], grid.reshape(new[0] * new[1], -1)])


def _axes_left_behind(P, old, new):
    grid = F.interpolate(P[1:].T.reshape(1, -1, *old), size=tuple(new), mode="bilinear", align_corners=True)
    return torch.cat([P[:1], grid.reshape(new[0] * new[1], -1)])


def _nearest(P, old, new):
    places = [torch.linspace(0, a - 1, b).round().long() for a, b in zip(old, new, strict=True)]
    return torch.cat([P[:1], P[1:].reshape(*old, -1)[places[0]][:, places[1]].flatten(0, 1)])


RESIZE_GRID = Question(
    name="resize_grid",
    exercise="03",
    title="The position table of a Vision Transformer for an image with more or fewer patches.",
    returns="a tensor of shape [1 + H·W, d], the row of the class token first",
    section=IMAGES,
    draw=_resize_grid_cases,
    reference=_resize_grid,
    picture="heat",
    bonus=True,
    wrong=(
        Wrong(
            "stretched as one line",
            _as_one_line,
            "The patches are stretched as one long line. A patch of the second line of the image then gets "
            "a mixture of rows from columns far apart: the grid has two axes.",
            IMAGES,
        ),
        Wrong(
            "centres instead of corners",
            lambda P, old, new: _resize_grid(P, old, new, corners=False),
            "Nearly: this matches the middles of the patches, which is the default of the library. Here "
            "the four corners of the old grid are to stay the corners of the new one.",
        ),
        Wrong(
            "class token lost",
            lambda P, old, new: _resize_grid(P, old, new)[1:],
            "The row of the class token is missing. It belongs to no patch, but it is still a row of the "
            "table, and the model looks it up first.",
        ),
        Wrong(
            "class token at the end",
            lambda P, old, new: _resize_grid(P, old, new).roll(-1, 0),
            "All rows are right, but the class token's stands last. So every patch gets the row of the "
            "patch after it.",
        ),
        Wrong(
            "old grid read with height and width exchanged",
            lambda P, old, new: _resize_grid(P, old[::-1], new),
            "The old rows are laid out as width × height. For a square image nobody notices; in any other "
            "grid the lines of patches break at the wrong place.",
        ),
        Wrong(
            "new grid with height and width exchanged",
            lambda P, old, new: _resize_grid(P, old, new[::-1]),
            "The old grid is right; the new one has height and width exchanged. Its number of rows is the "
            "same, so no shape tells you.",
        ),
        Wrong(
            "both grids with height and width exchanged",
            lambda P, old, new: _resize_grid(P, old[::-1], new[::-1]),
            "Height and width are exchanged in both grids. Patches are counted line by line: how long is "
            "a line?",
        ),
        Wrong(
            "channels not moved to the front",
            _without_moving_axes,
            "A table [patches, d] was reshaped to [d, h, w] without moving an axis, so numbers of one "
            "patch are spread over the image. A reshape never moves numbers; which axis must come first?",
        ),
        Wrong(
            "channels not moved back",
            _axes_left_behind,
            "The stretching is right. On the way back, [d, H, W] was reshaped to [H·W, d] without moving "
            "the axis of the channels, so each new row mixes channels of many patches.",
        ),
        Wrong(
            "nearest patch",
            _nearest,
            "Each new patch gets the row of the nearest old one, so neighbours become twins. Between old "
            "rows there should be mixtures.",
        ),
        Wrong(
            "nearest patch, as the library takes it",
            lambda P, old, new: _resize_grid(P, old, new, mode="nearest", corners=None),
            "Each new patch gets the row of one old patch, so neighbours become twins: this is the default "
            "mode of `interpolate`. Between old rows there should be mixtures.",
        ),
        Wrong(
            "bicubic",
            lambda P, old, new: _resize_grid(P, old, new, mode="bicubic"),
            "This is bicubic interpolation. Many released models use it; the question asks for the "
            "straight lines of bilinear interpolation.",
        ),
        Wrong(
            "the class token taken for a patch",
            lambda P, old, new: torch.cat([P[:1], _resize_grid(torch.cat([P[:1], P[:-1]]), old, new)[1:]]),
            "The grid begins with the class token's row, so that each patch gets the row of the one before "
            "it. The patches begin at row 1.",
        ),
    ),
    variants=(
        Variant(
            "axis by axis",
            _axis_by_axis,
            "Bilinear interpolation is a linear one along each axis, here as two matrices.",
        ),
        Variant("a loop", _looped_grid, "Four neighbours for each new patch, patch by patch, are right."),
    ),
    hints=(
        "Set the row of the class token aside; the others are an image with d channels.",
        "`F.interpolate` wants [1, d, h, w], the table is [h·w, d]: move the channels to the front before "
        "you fold the rows into a grid, and back after you have unfolded the new one.",
        "Say `align_corners=True`. A transpose moves an axis, a reshape does not: you need one of each on "
        "both ways. `torch.cat` puts the class token's row back in front.",
    ),
)

QUESTIONS = (LOOKUP_TEST, SUM_SIMILARITY, UNTRAINED_ROWS, LONGER_TABLE, RESIZE_GRID)
