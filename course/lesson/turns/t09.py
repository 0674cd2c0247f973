"""The turns of notebook 09: ask a board, a paired interval, a choice; of its museum: what goes elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from tutorial_lib.encodings import PositionalEncoding, build
from tutorial_lib.language import _
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import seeded

from ...checks.question import Case, Draw, Question, Wrong

BOARD = '09, section "The scoreboard"'
FAIR = '09, section "A fair trial"'
JOB = '09, section "Build: choose, predict, run, defend"'
MUSEUM = 'deeper/09_museum, section "The bug museum"'


# ---- fits ----
def fits(row):
    """True if this row is known to take at most 1.1 times the time, and to rise by less than 0.1 nats."""
    return "time" in row and "tail" in row and row["time"] <= 1.1 and row["tail"] < 0.1


def _fits_cases(draw: Draw) -> list[Case]:
    def row(time=None, tail=None):
        known = {"time": time, "tail": tail, "loss": draw.number(1.7, 2.3)}
        return {key: round(value, 2) for key, value in known.items() if value is not None}

    fast, slow = draw.number(1.0, 1.08), draw.number(1.2, 5.0)
    steady, rising = draw.number(0.0, 0.08), draw.number(0.2, 1.5)
    return [
        Case((row(fast, steady),), "a fast and steady row"),
        Case((row(slow, steady),), "a slow and steady row"),
        Case((row(fast, rising),), "a fast row whose tail rises"),
        Case((row(slow, rising),), "a slow row whose tail rises"),
        Case((row(fast, -0.04),), "a fast row whose tail falls"),
        Case((row(1.1, steady),), "a steady row that takes exactly 1.1 times as long"),
        Case((row(fast, 0.1),), "a fast row whose tail rises by exactly 0.1"),
        Case((row(fast),), "a fast row whose tail was not measured"),
        Case((row(tail=steady),), "a steady row whose time was not measured"),
        Case((row(),), "a row with neither"),
    ]


FITS = Question(
    name="fits",
    exercise="09",
    title="Which rows of the board are known to fit the order.",
    returns="True or False",
    section=BOARD,
    draw=_fits_cases,
    reference=fits,
    wrong=(
        Wrong(
            "what was not measured counts as 0",
            lambda row: row.get("time", 0) <= 1.1 and row.get("tail", 0) < 0.1,
            "A row without a number passes, as if its number were 0. Not measured is not good: the "
            "customer wants what is known to fit.",
        ),
        Wrong(
            "only a missing time is looked for",
            lambda row: "time" in row and row["time"] <= 1.1 and row.get("tail", 0) < 0.1,
            "A row whose tail was not measured passes. The customer wants both to be known.",
        ),
        Wrong(
            "only a missing tail is looked for",
            lambda row: row.get("time", 0) <= 1.1 and "tail" in row and row["tail"] < 0.1,
            "A row whose time was not measured passes. The customer wants both to be known.",
        ),
        Wrong(
            "or in place of and",
            lambda row: row.get("time", 9) <= 1.1 or row.get("tail", 9) < 0.1,
            "A row that keeps one of the two conditions passes. It must keep both.",
        ),
        Wrong(
            "the time alone",
            lambda row: row.get("time", 9) <= 1.1,
            "You ask for the time only. The tail must not rise by 0.1, either.",
        ),
        Wrong(
            "the tail alone",
            lambda row: row.get("tail", 9) < 0.1,
            "You ask for the tail only. The time has a limit, too.",
        ),
        Wrong(
            "a tenth as the limit of the time",
            lambda row: row.get("time", 9) <= 0.1 and row.get("tail", 9) < 0.1,
            "No row takes a tenth of the time. A tenth *more* than 1 is meant.",
        ),
        Wrong(
            "the size of the rise",
            lambda row: row.get("time", 9) <= 1.1 and 0 <= row.get("tail", 9) < 0.1,
            "A tail that falls is refused. A fall is a rise by less than 0.1, and nothing to complain of.",
        ),
    ),
    hints=(
        "Four things must be true: two numbers are there, and each keeps its limit.",
        '"time" in row says whether there is a number. Ask that before you read it, with and between them: '
        "Python stops at the first that is false.",
        'return "time" in row and "tail" in row and … and …',
    ),
)


# ---- paired ----
def paired(a, b, t=2.776):
    """Low and high end of the interval of a − b; a and b are losses of the same seeds, [seeds]."""
    d = a - b
    half = t * d.std() / len(d) ** 0.5
    return d.mean() - half, d.mean() + half


def _ends(middle, half):
    return middle - half, middle + half


def _paired_cases(draw: Draw) -> list[Case]:
    def runs(n, gap, noise):
        luck = draw.normal(n, dtype=torch.float64)
        return (
            2 + 0.3 * luck + gap + noise * draw.normal(n, dtype=torch.float64),
            2 + 0.3 * luck + noise * draw.normal(n, dtype=torch.float64),
        )

    return [
        Case(runs(5, 0.1, 0.01), "five seeds, a is worse by about 0.1"),
        Case(runs(5, -0.3, 0.05), "five seeds, a is better by about 0.3"),
        Case((*runs(10, 0.0, 0.1), 2.262), "ten seeds, t = 2.262"),
        Case((*runs(3, 0.2, 0.1), 4.303), "three seeds, t = 4.303"),
    ]


PAIRED = Question(
    name="paired",
    exercise="09",
    title="The interval of a difference within seeds.",
    returns="two numbers, (low, high)",
    section=FAIR,
    draw=_paired_cases,
    reference=paired,
    wrong=(
        Wrong(
            "not paired",
            lambda a, b, t=2.776: _ends(a.mean() - b.mean(), t * ((a.var() + b.var()) / len(a)) ** 0.5),
            "You compare two groups of runs, and the luck of each seed stays in. Subtract within each seed "
            "first: then what both have in common is gone.",
        ),
        Wrong(
            "no square root of n",
            lambda a, b, t=2.776: _ends((a - b).mean(), t * (a - b).std()),
            "This is how far a single seed may lie from the mean. The mean of n seeds is surer than one.",
        ),
        Wrong(
            "mean and standard deviation",
            lambda a, b, t=2.776: _ends((a - b).mean(), (a - b).std()),
            "This is one standard deviation to each side. It says where two of three seeds lie; how sure "
            "the mean of n seeds is needs two more factors.",
        ),
        Wrong(
            "divided by n",
            lambda a, b, t=2.776: _ends((a - b).mean(), t * (a - b).std() / len(a)),
            "You divide by n. The standard deviation of a mean falls only with the root of n.",
        ),
        Wrong(
            "without t",
            lambda a, b, t=2.776: _ends((a - b).mean(), (a - b).std() / len(a) ** 0.5),
            "This is the standard error alone. For 95 % of all cases it has to be t times as wide.",
        ),
        Wrong(
            "n in place of n − 1",
            lambda a, b, t=2.776: _ends((a - b).mean(), t * (a - b).std(correction=0) / len(a) ** 0.5),
            "Your standard deviation divides by n. The mean was computed from the same numbers, so n − 1 "
            "of them are free.",
        ),
        Wrong(
            "the variance",
            lambda a, b, t=2.776: _ends((a - b).mean(), t * (a - b).var() / len(a) ** 0.5),
            "You have taken the variance. s is its square root.",
        ),
        Wrong("b − a", lambda a, b, t=2.776: paired(b, a, t), "This is the interval of b − a."),
        Wrong(
            "the range",
            lambda a, b, t=2.776: ((a - b).min(), (a - b).max()),
            "These are the smallest and the largest difference. They say where the seeds lie, not how sure "
            "their mean is.",
        ),
        Wrong(
            "t fixed",
            lambda a, b, t=2.776: paired(a, b),
            "You use 2.776 whatever t is given. It fits five seeds only.",
        ),
        Wrong(
            "mean and half width",
            lambda a, b, t=2.776: ((a - b).mean(), t * (a - b).std() / len(a) ** 0.5),
            "These are the middle and half of the width. Asked for are the two ends.",
        ),
    ),
    hints=(
        "First make one tensor of differences, one for each seed. Everything else is about that.",
        "Its mean, its .std(), and len of it: the interval goes from the mean minus something to the mean "
        "plus the same.",
        "The something is t * d.std() / len(d) ** 0.5.",
    ),
)


# ---- choice ----
JOB_CONFIG = Config(vocab_size=16, d_model=64, n_heads=4, n_layers=2, causal=False)
BUDGET = 300


def choice():
    """A new encoding for the job, and the shares of right words that you expect at 16 and at 64 words."""
    return build("t5", n_heads=4, bidirectional=True, n_buckets=16, max_distance=16), 1.0, 0.95


def tried(answer: Callable):
    """What can be said of a choice before it is trained. Many are right: nothing here knows the best one."""

    @functools.wraps(answer)
    def use(length):
        given = answer()
        if given is None:
            return None
        parts = list(given) if isinstance(given, (tuple, list)) else [given]
        encoding, *expected = parts
        found = {
            "parts": len(parts),
            "type": type(encoding).__name__,
            "error": "",
            "again": 0,
            "parameters": 0,
        }
        if not isinstance(encoding, PositionalEncoding):
            return found | {"encoding": 0, "expected": []}
        found["parameters"] = sum(each.numel() for each in encoding.parameters())
        found["again"] = int(len(parts) == 3 and answer()[0] is encoding)
        try:
            model = seeded(lambda: Transformer(JOB_CONFIG, encoding), 0)
            if not model(torch.zeros(1, length, dtype=torch.long)).isfinite().all():
                found["error"] = "NaN"
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            found["error"] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        return found | {"encoding": 1, "expected": [float(each) for each in expected]}

    return use


def _choice_says(value, case: Case) -> str:
    if value["parts"] != 3:
        return _(
            "Return three things, separated by commas: an encoding, and the two shares from 0 to 1 that you "
            "expect, at 16 words and at 64."
        )
    if not value["encoding"]:
        return _(
            "The first of the three is a {type}, not an encoding. Make one: build(…), or your own class, "
            "called."
        ).format(type=value["type"])
    if value["again"]:
        return _(
            "Your function hands out the same encoding each time, so the second model would go on with what "
            "the first one learned. Make a new one inside of it."
        )
    if value["parameters"] > BUDGET:
        return _("Your encoding has {n} parameters. The customer pays for {budget}.").format(
            n=value["parameters"], budget=BUDGET
        )
    if value["error"]:
        return _("A model of the job stops with it: {error}").format(error=value["error"])
    if not all(0 <= share <= 1 for share in value["expected"]):
        return _("What you expect are shares of right words: from 0 to 1, not percent.")
    return ""


def _t5():
    return choice()[0]


_SAME = build("clipped", n_heads=4, max_distance=2)

CHOICE = Question(
    name="choice",
    exercise="09",
    title="An encoding for a job, and what you expect of it.",
    returns="an encoding and two numbers",
    section=JOB,
    draw=lambda draw: [
        Case((length,), _("{n} words").format(n=length)) for length in (16, 64, draw.integer(3, 12))
    ],
    reference=tried(choice),
    use=tried,
    library=True,
    faults=_choice_says,
    own_words=True,
    wrong=(
        Wrong("nothing expected", tried(_t5), "The two numbers that you expect are missing."),
        Wrong(
            "over the budget",
            tried(lambda: (build("learned", max_length=64, dim=64), 1.0, 0.9)),
            "Your encoding has more parameters than the customer pays for.",
        ),
        Wrong(
            "percent",
            tried(lambda: (_t5(), 100, 95)),
            "What you expect are shares of right words: from 0 to 1, not percent.",
        ),
        Wrong(
            "not made",
            tried(lambda: ("t5", 1.0, 0.95)),
            "The first of the three is a class or a name, not an encoding.",
        ),
        Wrong(
            "one for all",
            tried(lambda: (_SAME, 1.0, 0.95)),
            "Your function hands out the same encoding each time.",
        ),
    ),
    hints=(
        "The job asks for the words one step to the left and one to the right. Which encodings have a "
        "number, or a vector, for each of these two offsets, and how many parameters do they need?",
        'build("name", …) makes any encoding of the course: try build("t5"), and the error names its '
        "arguments. An encoder needs both directions.",
        'return build("clipped", n_heads=4, max_distance=…), …, …',
    ),
)


# ---- elsewhere ----
def elsewhere(actual, expected):
    """The largest share of a query's attention that goes to other keys; weights [heads, queries, keys]."""
    return (actual - expected).abs().sum(-1).max() / 2


def _elsewhere_cases(draw: Draw) -> list[Case]:
    def weights(*shape):
        return torch.softmax(2 * draw.normal(*shape, dtype=torch.float64), -1)

    moved = torch.zeros(2, 3, 4, dtype=torch.float64)
    moved[..., 0] = 1
    expected = moved.clone()
    moved[1, 2] = torch.tensor([0.2, 0.8, 0.0, 0.0])
    heads, words = draw.integer(2, 3), draw.integer(4, 6)
    return [
        Case((moved, expected), "one query of one head gives 0.8 to another key"),
        Case((weights(heads, words, words), weights(heads, words, words)), "random weights"),
        Case((weights(1, 3, 9), weights(1, 3, 9)), "one head, three queries, nine keys"),
    ]


ELSEWHERE = Question(
    name="elsewhere",
    exercise="09",
    title="How much of a query's attention goes elsewhere.",
    returns="one number",
    section=MUSEUM,
    draw=_elsewhere_cases,
    reference=elsewhere,
    wrong=(
        Wrong(
            "counted twice",
            lambda a, b: (a - b).abs().sum(-1).max(),
            "Your share is twice as large. What one key loses another one gets, and you count both: if "
            "all of a query's attention goes elsewhere, the answer is 1.",
        ),
        Wrong(
            "signs kept",
            lambda a, b: (a - b).sum(-1).max() / 2,
            "Weights of a query add up to 1, so what it takes away and what it adds cancel: this is "
            "always 0. Losses and gains have to be counted without their signs.",
        ),
        Wrong(
            "one key alone",
            lambda a, b: (a - b).abs().max(),
            "This is the largest change of a single weight. Many small changes of a query add up.",
        ),
        Wrong(
            "one key, halved",
            lambda a, b: (a - b).abs().max() / 2,
            "This is half of the largest change of a single weight. Add up a query's changes first.",
        ),
        Wrong(
            "the mean query",
            lambda a, b: (a - b).abs().sum(-1).mean() / 2,
            "This is the mean over queries and heads. One query that goes wrong would hardly show in a "
            "long text: the worst one is asked for.",
        ),
        Wrong(
            "all queries together",
            lambda a, b: (a - b).abs().sum() / 2,
            "You add up all queries and heads. A share of one query's attention is 1 at most.",
        ),
        Wrong(
            "added over queries",
            lambda a, b: (a - b).abs().sum(-2).max() / 2,
            "You add up over the queries, so this is about what a *key* gets. A query's attention is "
            "spread over the last axis, the keys.",
        ),
    ),
    hints=(
        "For each query: how much do its weights change, in all? Then the worst query of all heads.",
        "Absolute differences, added up over the keys, which are the last axis. What goes away from one key "
        "comes to another one, so everything has been counted twice.",
        "(actual - expected).abs().sum(-1), then .max(), and half of it.",
    ),
)

QUESTIONS = (FITS, PAIRED, CHOICE, ELSEWHERE)
