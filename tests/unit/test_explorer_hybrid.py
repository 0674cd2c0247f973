"""Typed scores: the browser's grammar, what it refuses, and its numbers against torch."""

import random
import re

import numpy as np
import pytest
import torch

from tutorial_lib.encodings import sinusoidal
from tutorial_lib.explorers import HybridExplorer
from tutorial_lib.explorers import hybrid as given
from workshop import front

X, P = torch.tensor(given.X, dtype=torch.float64), sinusoidal(torch.arange(4, dtype=torch.float64), 4)
OFFSET = torch.arange(4)[None, :] - torch.arange(4)[:, None]
R = torch.tensor(given.W_R, dtype=torch.float64)[OFFSET + 3]
W = torch.tensor(given.W, dtype=torch.float64)
RIGHT = {  # a text, and the same in torch, [query, key]
    "r_ij": R,
    "x_i·x_j": X @ X.T,
    "x_i x_j": X @ X.T,
    "PE_i*PE_j": P @ P.T,
    "w·p_i": (P @ W[:4])[:, None].expand(4, 4),
    "w·p_{j}": (P @ W[:4])[None, :].expand(4, 4),
    "w·[p_i; r_ij]": (P @ W[:4])[:, None] + W[4] * R,
    "[r_ij, x_j]·w": W[0] * R + (X @ W[1:5])[None, :],
    "(w·p_i) r_ij": (P @ W[:4])[:, None] * R,
    "2 r_ij - 0.5(r_ij + 1)": 1.5 * R - 0.5,
    "-r_ij −−.5": 0.5 - R,
    "relu(w·p_i - 2 + 2r_ij)": ((P @ W[:4])[:, None] - 2 + 2 * R).relu(),
    "w·relu(x_i - p_j)": (X[:, None] - P[None]).relu() @ W[:4],
    "(x_i + p_i)·(x_j + p_j) + r_ij": (X + P) @ (X + P).T + R,
    "2 w·p_j": (2 * P @ W[:4])[None, :].expand(4, 4),
    "w·(-(p_i - x_j))": (X[None] - P[:, None]) @ W[:4],
}
WRONG = {  # a text, and words of the refusal
    "": "Type a score",
    "  ": "Type a score",
    "x_i·x_j + p_i + r_ij": "as in w·p_i",
    "p_i + x_j": "as in w·p_i",
    "[p_i; r_ij]": "a vector of 5 numbers",
    "(p_i + x_i)": "w·(p_i + x_i)",
    "p_i + r_ij·(x_i + 2)": "p_i is a vector",
    "r_ij·(x_i + 2)·x_j": "x_i is a vector of 4 numbers, 2 is one number",
    "w": "reads another",
    "w·w": "reads another",
    "w·r_ij": "reads another",
    "relu(w)": "reads another",
    "w·[w; 1]": "reads another",
    "p_i·[p_j; 1]": "4 numbers and [p_j; 1] has 5",
    "x_i +": "missing at the end",
    "+": "missing at the end",
    "·r_ij": "missing before “·”",
    "r_ij)": "“)” too many",
    "(r_ij": "“(” is not closed",
    "[r_ij": "“[” is not closed",
    "(r_ij]": "should close the “(”",
    "r_ij; 2": "inside of [ ]",
    "pi·pj": "Did you mean p_i?",
    "tanh(r_ij)": "There are x_i",
    "__import__": "There are x_i",
    "constructor": "There are x_i",
    "relu r_ij": "needs brackets",
    "e_ij = r_ij": "after “e_ij =”",
    "r_ij = 2": "after “e_ij =”",
    "r_ij / 2": "no division",
    "r_ij^2": "no powers",
    "r_ij # 2": "“#” has no meaning",
    "1001": "too large",
    "999·999·r_ij": "larger than 1000",
    "1+1+1+1+1+1": "6 terms",
    "(" * 13 + "1": "too many brackets",
    "w·[p_i;p_i;p_i;p_i;p_i]": "20 numbers is too long",
    "猫": "“猫” has no meaning",
}


# ---- another reading: Python's own grammar, on torch ----
class Value:
    """A number or a vector for every pair, ``[4, 4, n]``."""

    def __init__(self, values):
        self.values = values

    def __matmul__(self, other):
        a, b = self.values, other.values
        if 1 in (a.shape[-1], b.shape[-1]):
            return Value(a * b)
        n = min(a.shape[-1], b.shape[-1])  # w is longer than what it reads
        return Value((a[..., :n] * b[..., :n]).sum(-1, keepdim=True))

    def __add__(self, other):
        return Value(self.values + other.values)

    def __sub__(self, other):
        return Value(self.values - other.values)

    def __neg__(self):
        return Value(-self.values)


MEANS = {
    "x_i": Value(X[:, None].expand(4, 4, 4)),
    "x_j": Value(X.expand(4, 4, 4)),
    "r_ij": Value(R[..., None]),
    "p_i": Value(P[:, None].expand(4, 4, 4)),
    "p_j": Value(P.expand(4, 4, 4)),
    "w": Value(W.expand(4, 4, 16)),
    "relu": lambda value: Value(value.values.relu()),
    "num": lambda n: Value(torch.full((4, 4, 1), n).double()),
    "stack": lambda *parts: Value(torch.cat([part.values for part in parts], -1)),
}
SIGNS = {"·": "@", "[": "stack(", "]": ")", ";": ","}
TOKEN = re.compile(r"([0-9.]+)|([a-z_]+)|(\S)")


def worked_out(text):
    """The score of every pair, float64 ``[4, 4]``; a factor may follow another one without a sign."""
    python, before = "", ""
    for number, name, sign in TOKEN.findall(text.replace("PE", "p").replace("*", "·")):
        if (
            before
            and (before[-1].isalnum() or before in ")]")
            and before != "relu"
            and (number or name or sign in "([")
        ):
            python += "@"
        python += f"num({number})" if number else name or SIGNS.get(sign, sign)
        before = number or name or sign
    return eval(python, {"__builtins__": {}}, MEANS).values[..., 0]


def say(*texts, **more):
    return front.ask(HybridExplorer, *({"score": text, "guess": "off"} | more for text in texts))


def test_both_readings_are_right():
    """By the torch that is written beside each text."""
    for (text, right), said in zip(RIGHT.items(), say(*RIGHT), strict=True):
        np.testing.assert_allclose(said.views["scores"], right, atol=1e-8, err_msg=text)
        if not set("{}−,") & set(text):  # other signs for the same, which the browser takes
            np.testing.assert_allclose(worked_out(text), right, atol=1e-12, err_msg=text)


def test_what_is_no_score_is_refused_in_words():
    for (text, why), said in zip(WRONG.items(), say(*WRONG), strict=True):
        start = f"“{text}” is no score. "
        assert said.description.startswith(start) and why in said.description.removeprefix(start), text
        assert not said.views["scores"].any() and not said.reached, text


# ---- its numbers ----
def scores():
    """Terms with a fixed seed."""
    dice = random.Random(5)

    def vector():
        return dice.choice(["x_i", "x_j", "p_i", "p_j", "(p_i+x_j)", "(-p_j)", "(2 p_i - x_i)"])

    def number(deep=0):
        if deep > 2 or dice.random() < 0.2:
            return dice.choice(["r_ij", "0.5", f"w·{vector()}"])
        return dice.choice(
            [
                lambda: f"{vector()}·{vector()}",
                lambda: f"1.25 {number(deep + 1)}",
                lambda: f"w·[{vector()}; {number(deep + 1)}]",
                lambda: f"({number(deep + 1)} + 1)({number(deep + 1)})",
                lambda: f"relu({number(deep + 1)} - {number(deep + 1)})",
            ]
        )()

    found = [[number() for _ in range(dice.randint(1, 3))] for _ in range(600)]
    samples = [
        [text]
        for text, said in zip(given.SAMPLES, say(*given.SAMPLES), strict=True)
        if "is no score" not in said.description
    ]
    return samples + [terms for terms in found if len(" + ".join(terms)) <= 120]


def test_the_numbers_are_those_of_torch():
    won, every = 0, scores()
    asked = [{"score": " + ".join(terms), "guess": "off", "query": n % 4} for n, terms in enumerate(every)]
    for params, terms, said in zip(asked, every, front.ask(HybridExplorer, *asked), strict=True):
        text, parts = params["score"], [worked_out(term) for term in terms]
        if max(part.abs().max() for part in parts) > 1000:
            assert "gets larger than 1000" in said.description, text
            continue
        e, seen = sum(parts), sum(parts).softmax(-1)
        np.testing.assert_allclose(said.views["scores"], e, atol=1e-5, err_msg=text)
        rest = e - e.mean(-1, keepdim=True)
        np.testing.assert_allclose(said.views["remains"], rest, atol=1e-5, err_msg=text)
        weights = ", ".join(f"{weight:.2f}" for weight in seen[params["query"]])
        assert said.description.endswith(f"; query {params['query']} gives the weights {weights}."), text
        if len(terms) > 1:
            moved = [(seen - (e - part).softmax(-1)).abs().max() for part in parts]
            told = re.findall(r"a weight changes by (\d\.\d\d)", said.description)
            assert told == [f"{change:.2f}" for change in moved if change > 0.0005], text
        (first, second), best = seen.topk(2).values.T, seen.argmax(-1)
        reached = "x_" not in text and (first - second).min() >= 0.05 and (best == best[0]).all()
        evidence = f"“{given.WORDS[best[0]]}” gets {first.min():.2f} or more of each query's attention."
        assert said.reached == (evidence if reached else ""), text
        won += bool(reached)
    assert len(every) > 400 and won > 5


# ---- its words ----
COUNTS = {
    "gone": "is the same for all keys;",
    "offset": "counts by the offset alone (",
    "key": "counts by the key alone (",
    "pair": "counts pair by pair (",
}
KINDS = {
    "w·p_i": "gone",
    "x_i·p_i": "gone",
    "0.5": "gone",
    "relu(w·p_i)": "gone",
    "0 r_ij": "gone",
    "r_ij": "offset",
    "w·[p_i; r_ij]": "offset",
    "p_i·p_j": "offset",
    "(p_i - p_j)·(p_i - p_j)": "offset",
    "(relu(w·p_i) + 2 r_ij)": "offset",
    "w·p_j": "key",
    "(x_j·x_j + w·p_i)": "key",
    "x_i·x_j": "pair",
    "x_j·p_i": "pair",
    "(w·p_i) r_ij": "pair",
    "relu(w·[p_i; r_ij])": "pair",
    "(w·p_j + r_ij)": "pair",
}


def test_what_a_softmax_leaves_has_its_name():
    for (text, kind), said in zip(KINDS.items(), say(*KINDS), strict=True):
        assert f": {text} {COUNTS[kind]}" in said.description, text
        assert (np.abs(said.views["remains"]).max() < 1e-8) == (kind == "gone"), text


def test_each_summand_is_a_term_with_its_sign():
    (said,) = say("-w·p_j + (r_ij + 1) − 2 x_i·x_j")
    assert "e_ij = −w·p_j + (r_ij + 1) − 2 x_i·x_j: −w·p_j counts by the key " in said.description
    assert ", (r_ij + 1) counts by the offset " in said.description
    assert ", −2 x_i·x_j counts pair by pair " in said.description


def test_the_worked_case_of_the_notebook():
    plain, more = say("x_i·x_j + r_ij", "x_i·x_j + w·p_i + r_ij")
    assert [f"{said.views['scores'][1, 2]:.2f}" for said in (plain, more)] == ["1.00", "3.39"]
    for said in (plain, more):
        assert said.description.endswith("query 1 gives the weights 0.19, 0.47, 0.28, 0.06.")


def test_what_is_to_be_guessed_is_not_told():
    for first, off in zip(say(*given.SAMPLES, guess="first"), say(*given.SAMPLES), strict=True):
        first, off = first.description, off.description
        assert ("to guess" in first) == (first != off) == ("is no score" not in off)
        assert "counts" not in first and "the same for all keys" not in first


def test_only_a_text_that_is_short_enough_is_a_setting():
    for wrong in ("x" * 121, 3, None, ["r_ij"]):
        with pytest.raises(ValueError, match="a text of at most 120 characters"):
            HybridExplorer.settings(score=wrong)
    explorer = HybridExplorer(score="what I typed")
    assert explorer.params["score"] == "what I typed"
    explorer.move(query=2)
    assert explorer.params["score"] == "what I typed"
