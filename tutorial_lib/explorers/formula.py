"""Typed scores, such as ``x_i·x_j + w·p_i + r_ij``: read by a small grammar, worked out for four tokens.

::

    score   = [sign] product { sign product }           at most five of them, each one number
    product = factor { ["·"] factor }                   two vectors: their dot product
    factor  = [sign] ( number | name | "relu" "(" score ")" | "(" score ")" | "[" score { ";" score } "]" )
    name    = x_i | x_j | p_i | p_j | r_ij | w          PE_i is p_i, * is ·

Nothing is evaluated but what this grammar knows. ``live/hybrid.js`` has the same in the browser; a test
holds the two together. Plain floats and one order of sums, so that both find the same numbers.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from ..language import _

N, WIDTH = 4, 4
WORDS = ("cat", "chases", "the", "dog")
# Row 1 meets the others in 0.4, 1, 0.7 and -0.3: the content of the worked case in notebook 05.
X = ((0.4, 0.9, -0.3, 0.2), (1.0, 0.0, 0.0, 0.0), (0.7, -0.2, 0.6, -0.4), (-0.3, 0.5, 0.4, 0.8))
P = tuple(
    tuple(round(v, 9) for v in (math.sin(i), math.cos(i), math.sin(i / 100), math.cos(i / 100)))
    for i in range(N)
)
W_R = (-0.6, -0.4, 0.2, 0.5, 0.3, -0.2, -0.4)  # by offset, j - i from -3 to 3
W = (1, 1, 1, 1, 2, -1, 1, -2, 1, -1, 2, 1, -1, 1, -2, 1)
MOST_TERMS, MOST_CHARACTERS, DEEPEST, LARGEST = 5, 120, 12, 1000
NUMBER, OPEN = 0, -1  # sizes: of a number; of w, which is as long as what it reads
SIZES = {"x_i": WIDTH, "x_j": WIDTH, "p_i": WIDTH, "p_j": WIDTH, "r_ij": NUMBER, "w": OPEN}
SAME = {"PE_i": "p_i", "PE_j": "p_j", "ReLU": "relu"}
MEANT = {
    "xi": "x_i",
    "xj": "x_j",
    "pi": "p_i",
    "pj": "p_j",
    "rij": "r_ij",
    "r": "r_ij",
    "r_i": "r_ij",
    "x": "x_i or x_j",
    "p": "p_i or p_j",
    "PE": "p_i or p_j",
    "W": "w",
    "w_o": "w",
    "W_o": "w",
    "Relu": "relu",
    "Q_i": "x_i",
    "q_i": "x_i",
    "K_j": "x_j",
    "k_j": "x_j",
}
SIGNS = str.maketrans(
    {"−": "-", "–": "-", "*": "·", "×": "·", "⋅": "·", "∙": "·", "@": "·", ",": ";", "{": "", "}": ""}
)
TOKEN = re.compile(r"\s*(?:([0-9]+\.?[0-9]*|\.[0-9]+)|([A-Za-z_][A-Za-z_0-9]*)|([-+·()\[\];]))")
SAYS = {
    "=": "Type only what comes after “e_ij =”.",
    "/": "There is no division here. Half of r_ij is 0.5·r_ij.",
    "^": "There are no powers here. A square is a product: r_ij·r_ij.",
}
READS = "w is a vector that reads another one: write w·p_i, or w·[p_i; r_ij]."


class Refused(ValueError):
    """Why a text is no score, in words for whoever typed it."""


class Node(NamedTuple):
    """A part of a score: ``op`` is num, name, neg, add, sub, mul, relu or stack; its text is [start:end]."""

    op: str
    args: tuple
    start: int
    end: int


class Term(NamedTuple):
    """One summand: its text, with its sign, and what it adds for query i and key j, ``[N][N]``."""

    text: str
    values: list[list[float]]


# ---- text to tree ----
def tokens(text: str) -> list[tuple[str, str, int, int]]:
    """``(kind, word, start, end)`` of each; kind is num, name or sign."""
    found, at = [], 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if not match:
            sign = text[at:].strip()[0]
            raise Refused(_(SAYS[sign]) if sign in SAYS else _("“{0}” has no meaning here.").format(sign))
        which = match.lastindex or 0  # one of the three always matches
        found.append((("num", "name", "sign")[which - 1], match[which], match.start(which), match.end()))
        at = match.end()
    return found


class Parser:
    """Reads the tokens of ``text`` from the left; :meth:`score` gives the signed summands."""

    def __init__(self, text: str):
        self.text, self.left = text, tokens(text)
        self.last, self.deep = 0, 0

    @property
    def next(self) -> str:
        return self.left[0][1] if self.left else ""

    def take(self) -> tuple[str, str, int, int]:
        token = self.left.pop(0)
        self.last = token[3]
        return token

    def close(self, sign: str, opened: str) -> None:
        if self.next != sign:
            raise Refused(
                _("A “{0}” is not closed.").format(opened)
                if not self.left
                else _("“{0}” stands where a “{1}” should close the “{2}”.").format(self.next, sign, opened)
            )
        self.take()

    def score(self) -> list[tuple[int, Node]]:
        sign = self.sign() if self.next and self.next in "+-" else 1
        found = [(sign, self.product())]
        while self.next and self.next in "+-":
            sign = self.sign()
            found.append((sign, self.product()))
        return found

    def sign(self) -> int:
        return -1 if self.take()[1] == "-" else 1

    def whole(self) -> Node:
        """A score inside of brackets, as one node."""
        self.deep += 1
        if self.deep > DEEPEST:
            raise Refused(_("There are too many brackets inside each other."))
        (sign, node), *more = self.score()
        if sign < 0:
            node = Node("neg", (node,), node.start, node.end)
        for sign, other in more:
            node = Node("add" if sign > 0 else "sub", (node, other), node.start, other.end)
        self.deep -= 1
        return node

    def product(self) -> Node:
        node = self.factor()
        while self.left and (self.next in "·([" or self.left[0][0] != "sign"):
            if self.next == "·":
                self.take()
            other = self.factor()
            node = Node("mul", (node, other), node.start, other.end)
        return node

    def factor(self) -> Node:
        if not self.left:
            raise Refused(
                _("Something is missing at the end.")
                if self.last
                else _("Type a score, such as x_i·x_j + r_ij.")
            )
        kind, word, start, end = self.take()
        if word == "-":
            node = self.factor()
            return Node("neg", (node,), start, node.end)
        if kind == "num":
            return self.number(word, start, end)
        if kind == "name":
            return self.name(SAME.get(word, word), start, end)
        if word == "(":
            node = self.whole()
            self.close(")", "(")
            return node._replace(start=start, end=self.last)
        if word == "[":
            return self.stack(start)
        raise Refused(_("Something is missing before “{0}”.").format(word))

    def number(self, word: str, start: int, end: int) -> Node:
        if float(word) > LARGEST:
            raise Refused(_("{0} is too large; numbers go up to {1}.").format(word, LARGEST))
        return Node("num", (float(word),), start, end)

    def name(self, word: str, start: int, end: int) -> Node:
        if word == "relu":
            if self.next != "(":
                raise Refused(_("relu needs brackets, as in relu(w·p_i)."))
            self.take()
            node = self.whole()
            self.close(")", "(")
            return Node("relu", (node,), start, self.last)
        if word not in SIZES:
            raise Refused(
                _("“{0}” has no meaning here. Did you mean {1}?").format(word, _(MEANT[word]))
                if word in MEANT
                else _(
                    "“{0}” has no meaning here. There are x_i, x_j, p_i, p_j, r_ij, w and relu( )."
                ).format(word)
            )
        return Node("name", (word,), start, end)

    def stack(self, start: int) -> Node:
        parts = [self.whole()]
        while self.next == ";":
            self.take()
            parts.append(self.whole())
        self.close("]", "[")
        return Node("stack", tuple(parts), start, self.last)


# ---- what fits ----
def said(size: int) -> str:
    return _("a vector of {0} numbers").format(size) if size else _("one number")


def size(node: Node, text: str) -> int:
    """How many numbers it has. Raises Refused where two parts don't fit."""
    if node.op == "num":
        return NUMBER
    if node.op == "name":
        return SIZES[node.args[0]]
    found = [size(part, text) for part in node.args]
    if node.op == "mul":
        return _product(node, found, text)
    if node.op == "neg":
        return found[0]
    if OPEN in found:
        raise Refused(_(READS))
    if node.op == "stack":
        many = sum(max(1, each) for each in found)
        if many > len(W):
            raise Refused(_("A stack of {0} numbers is too long; {1} fit.").format(many, len(W)))
        return many
    if node.op in ("add", "sub") and found[0] != found[1]:
        a, b = (text[part.start : part.end] for part in node.args)
        raise Refused(
            _("{0} is {1}, {2} is {3}: they can't be added.").format(a, said(found[0]), b, said(found[1]))
        )
    return found[0]


def _product(node: Node, found: list[int], text: str) -> int:
    a, b = found
    if a == b == OPEN:
        raise Refused(_(READS))
    if NUMBER in found:
        return a + b
    if a != b and OPEN not in found:
        one, other = (text[part.start : part.end] for part in node.args)
        raise Refused(
            _("{0} has {1} numbers and {2} has {3}: a dot product needs as many on both sides.").format(
                one, a, other, b
            )
        )
    return NUMBER


def read(text: str) -> list[tuple[str, int, Node]]:
    """The summands of a score: text, sign and tree of each. Raises Refused."""
    text = text.translate(SIGNS)
    parser = Parser(text)
    found = parser.score()
    if parser.left:
        word = parser.next
        raise Refused(
            _("“;” stacks parts inside of [ ] only.")
            if word == ";"
            else _("There is a “{0}” too many.").format(word)
        )
    if len(found) > MOST_TERMS:
        raise Refused(_("{0} terms are too many for this picture; {1} fit.").format(len(found), MOST_TERMS))
    terms = []
    for sign, node in found:
        part, many = text[node.start : node.end], size(node, text)
        if many == OPEN:
            raise Refused(_(READS))
        if many:
            inside = f"({part})" if node.op in ("add", "sub") and part[0] != "(" else part
            raise Refused(
                _(
                    "{0} is {1}, but a score is one number: they can't be added. A head has to read "
                    "the vector first, as in w·{2}."
                ).format(part, said(many), inside)
            )
        terms.append((part if sign > 0 else f"−{part}", sign, node))
    return terms


# ---- tree to numbers ----
def worked(node: Node, names: dict) -> Any:
    """The value for one pair, a number or a list; ``names`` has those of its query and key."""
    if node.op == "num":
        return node.args[0]
    if node.op == "name":
        return names[node.args[0]]
    parts = [worked(part, names) for part in node.args]
    if node.op == "stack":
        return [v for part in parts for v in (part if isinstance(part, list) else [part])]
    if node.op == "mul":
        return _times(*parts)
    if len(parts) == 1:
        one = (lambda v: max(v, 0.0)) if node.op == "relu" else (lambda v: -v)
        return [one(v) for v in parts[0]] if isinstance(parts[0], list) else one(parts[0])
    sign = 1 if node.op == "add" else -1
    a, b = parts
    return [u + sign * v for u, v in zip(a, b, strict=True)] if isinstance(a, list) else a + sign * b


def _times(a, b):
    if isinstance(a, list) and isinstance(b, list):
        total = 0.0
        for u, v in zip(a, b, strict=False):  # w is longer than what it reads
            total += u * v
        return total
    if isinstance(a, list):
        return [u * b for u in a]
    return [a * v for v in b] if isinstance(b, list) else a * b


def pair(i: int, j: int, places=P) -> dict:
    """What the names stand for, for query i and key j."""
    return {
        "x_i": list(X[i]),
        "x_j": list(X[j]),
        "p_i": list(places[i]),
        "p_j": list(P[j]),
        "r_ij": W_R[j - i + N - 1],
        "w": list(W),
    }


def terms(text: str) -> list[Term]:
    """All summands of a score, worked out. Raises Refused for what is none, or is too large to be drawn."""
    found = [
        Term(part, [[sign * worked(node, pair(i, j)) for j in range(N)] for i in range(N)])
        for part, sign, node in read(text)
    ]
    for term in found:
        if max(abs(v) for row in term.values for v in row) > LARGEST:
            raise Refused(_("{0} gets larger than {1}: too much to be drawn.").format(term.text, LARGEST))
    return found


def total(terms: list[Term]) -> list[list[float]]:
    """Their sum, ``[N][N]``."""
    e = [[0.0] * N for _ in range(N)]
    for term in terms:
        e = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(e, term.values, strict=True)]
    return e


def remains(values: list[list[float]]) -> list[list[float]]:
    """What is left of each row when its mean is taken out: all that a softmax can see."""
    return [[v - sum(row) / N for v in row] for row in values]


def kind(values: list[list[float]]) -> str:
    """``gone``; ``offset`` or ``key``, where nothing else counts; else ``pair``."""
    least = 1e-6 * max(1, *(abs(v) for row in values for v in row))
    own = [[values[i][j] - values[i][i] for j in range(N)] for i in range(N)]  # the score with oneself is 0
    rest = remains(values)
    if all(abs(v) < least for row in rest for v in row):
        return "gone"
    if all(abs(own[i][j] - own[i - 1][j - 1]) < least for i in range(1, N) for j in range(1, N)):
        return "offset"
    return "key" if all(abs(rest[i][j] - rest[0][j]) < least for i in range(N) for j in range(N)) else "pair"


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(v - max(row)) for v in row]
    return [v / sum(powers) for v in powers]


def moved(e: list[list[float]], term: list[list[float]]) -> float:
    """The largest change of a weight when ``term`` is left out of ``e``."""
    most = 0.0
    for row, part in zip(e, term, strict=True):
        rest = softmax([a - b for a, b in zip(row, part, strict=True)])
        most = max(most, *(abs(a - b) for a, b in zip(softmax(row), rest, strict=True)))
    return most
