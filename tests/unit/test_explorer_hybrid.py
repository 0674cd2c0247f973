"""Typed scores: the grammar, what it refuses, its numbers against torch, and the browser's own grammar."""

import json
import random
import shutil
import subprocess

import numpy as np
import pytest
import torch

from tutorial_lib.encodings import sinusoidal
from tutorial_lib.explorers import HybridExplorer, formula, live
from tutorial_lib.explorers.formula import Refused
from tutorial_lib.explorers.hybrid import SAMPLES

X, P = torch.tensor(formula.X, dtype=torch.float64), sinusoidal(torch.arange(4, dtype=torch.float64), 4)
OFFSET = torch.arange(4)[None, :] - torch.arange(4)[:, None]
R = torch.tensor(formula.W_R, dtype=torch.float64)[OFFSET + 3]
W = torch.tensor(formula.W, dtype=torch.float64)
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


def softmax(rows):
    return torch.tensor(rows, dtype=torch.float64).softmax(-1).numpy()


# ---- the grammar ----
@pytest.mark.parametrize("text", RIGHT)
def test_a_score_is_worked_out(text):
    found = np.array(formula.total(formula.terms(text)))
    np.testing.assert_allclose(found, RIGHT[text].numpy(), atol=1e-8)  # p is rounded to nine digits


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_score_is_refused_in_words(text):
    with pytest.raises(Refused) as refused:
        formula.terms(text)
    assert WRONG[text] in str(refused.value) and str(refused.value)[-1] in ".?"
    scene = HybridExplorer.scene(score=text)
    assert scene.description == f"“{text}” is no score. {refused.value}"
    assert not scene.views["scores"].array().any() and HybridExplorer.reached(score=text, query=0) == ""


def test_each_summand_is_a_term_with_its_sign():
    terms = formula.terms("-w·p_j + (r_ij + 1) − 2 x_i·x_j")
    assert [term.text for term in terms] == ["−w·p_j", "(r_ij + 1)", "−2 x_i·x_j"]
    np.testing.assert_allclose(terms[0].values, -RIGHT["w·p_{j}"].numpy(), atol=1e-8)


# ---- what remains ----
@pytest.mark.parametrize(
    "text, kind",
    [
        ("w·p_i", "gone"),
        ("x_i·p_i", "gone"),
        ("0.5", "gone"),
        ("relu(w·p_i)", "gone"),
        ("0 r_ij", "gone"),
        ("r_ij", "offset"),
        ("w·[p_i; r_ij]", "offset"),
        ("p_i·p_j", "offset"),
        ("(p_i - p_j)·(p_i - p_j)", "offset"),
        ("relu(w·p_i) + 2 r_ij", "offset"),
        ("w·p_j", "key"),
        ("x_j·x_j + w·p_i", "key"),
        ("x_i·x_j", "pair"),
        ("x_j·p_i", "pair"),
        ("(w·p_i) r_ij", "pair"),
        ("relu(w·[p_i; r_ij])", "pair"),
        ("w·p_j + r_ij", "pair"),
    ],
)
def test_what_a_softmax_leaves_has_its_name(text, kind):
    e = formula.total(formula.terms(text))
    assert formula.kind(e) == kind
    rest = np.array(formula.remains(e))
    assert np.abs(rest.sum(1)).max() < 1e-12 and (np.abs(rest).max() < 1e-8) == (kind == "gone")
    np.testing.assert_allclose(softmax(rest), softmax(e), atol=1e-12)
    assert (formula.moved(e, e) > 1e-6) == (kind != "gone")


def test_without_a_term_a_weight_changes_by_what_is_said():
    terms = formula.terms("x_i·x_j + w·p_i + r_ij")
    e = np.array(formula.total(terms))
    for term, most in zip(terms, (0.31, 0.0, 0.19), strict=True):
        change = np.abs(softmax(e) - softmax(e - np.array(term.values))).max()
        assert formula.moved(e.tolist(), term.values) == pytest.approx(change, abs=1e-12)
        assert change == pytest.approx(most, abs=0.005)
    said = HybridExplorer.scene(score="x_i·x_j + w·p_i + r_ij", guess="off").description
    assert "w·p_i is the same for all keys, r_ij counts by the offset alone (without it, a weight" in said
    assert "a weight changes by 0.31), w·p_i" in said and "a weight changes by 0.19);" in said


def test_the_worked_case_of_the_notebook():
    views = HybridExplorer.scene(score="x_i·x_j + w·p_i + r_ij").views
    assert views["scores"].readout == "i = 1, j = 2: 3.39"
    assert HybridExplorer.scene(score="x_i·x_j + r_ij").views["scores"].readout == "i = 1, j = 2: 1.00"
    weights = formula.softmax(formula.total(formula.terms("x_i·x_j + r_ij"))[1])
    assert weights[2] == pytest.approx(0.2823, abs=5e-5)


def test_what_is_to_be_guessed_is_not_told():
    for text in SAMPLES:
        first, off = (HybridExplorer.scene(score=text, guess=way).description for way in ("first", "off"))
        assert ("to guess" in first) == (first != off) == ("is no score" not in off)
        assert "counts" not in first and "the same for all keys" not in first


def test_the_challenge_is_measured():
    for text, won in (
        ("w·p_j", "“chases” gets 0.45"),
        ("-2w·p_j + r_ij", "“dog” gets 0.85"),
        ("r_ij", ""),
        ("1", ""),
        ("w·p_i", ""),
        ("w·x_j", ""),
        ("w·p_j + 9 r_ij", ""),
    ):
        said = HybridExplorer.reached(score=text, query=0)
        assert said.startswith(won) and bool(said) == bool(won), text


def test_only_a_text_that_is_short_enough_is_a_setting():
    for wrong in ("x" * 121, 3, None, ["r_ij"]):
        with pytest.raises(ValueError, match="a text of at most 120 characters"):
            HybridExplorer.settings(score=wrong)
    explorer = HybridExplorer(score="what I typed")
    assert explorer.params["score"] == "what I typed"
    explorer.move(query=2)
    assert explorer.params["score"] == "what I typed"


# ---- the browser's grammar ----
def texts():
    """Scores with a fixed seed: half of them nonsense from the same words, half of them right."""
    dice = random.Random(5)
    words = [*"w·+-()[];2 ", "x_i", "x_j", "p_i", "p_j", "r_ij", ".5", "relu(", "foo", "PE_i"]

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

    nonsense = ["".join(dice.choice(words) for _ in range(dice.randint(1, 9))) for _ in range(600)]
    right = [" + ".join(number() for _ in range(dice.randint(1, 3))) for _ in range(600)]
    return [*RIGHT, *WRONG, *nonsense, *(text for text in right if len(text) <= formula.MOST_CHARACTERS)]


def test_the_browser_reads_and_refuses_the_same():
    node = shutil.which("node")
    if not node:
        pytest.skip("there is no node; test_live.py compares fewer texts, in Chromium")
    asked = [HybridExplorer.settings(score=text, guess="off", query=n % 4) for n, text in enumerate(texts())]
    data = json.dumps(live.table(HybridExplorer))
    script = (
        live.joined("hybrid")
        + f"""
        const data = {data}, asked = {json.dumps(asked)}, {{ scene, reached }} = explorers.hybrid;
        const said = asked.map(p => ({{ ...scene(p, data), reached: reached(p, data) }}));
        process.stdout.write(JSON.stringify(said));"""
    )
    done = subprocess.run(
        [node, "-"], input=script, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    read = 0
    for params, said in zip(asked, json.loads(done.stdout), strict=True):
        scene = HybridExplorer.scene(**params)
        assert said["description"] == scene.description, params
        assert said["reached"] == HybridExplorer.reached(**params), params
        for name, view in scene.views.items():
            np.testing.assert_allclose(said["views"][name], view.z, atol=1e-9, err_msg=params["score"])
        read += "is no score" not in scene.description
    assert read > 400 and len(asked) - read > 300
