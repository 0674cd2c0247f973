"""The explorer of notebook 10: its shares against torch's softmax over a whole crowd, key by key."""

import math
import re

import pytest
import torch

from course.lesson.turns import t10
from tutorial_lib.explorers import CrowdExplorer
from tutorial_lib.explorers.crowd import KEYS, LEADS, QUERIES
from workshop import front


def by_hand(lead, times, keys):
    """The weight of the first of so many keys; its score leads by ``lead`` and is multiplied by ``times``."""
    scores = torch.zeros(keys, dtype=torch.float64)
    scores[0] = lead
    return float((times * scores).softmax(0)[0])


def llama(n):
    """As the released code computes it, for the query at n − 1."""
    return 1 + 0.1 * math.log(math.floor(n / 8192) + 1)


@pytest.mark.parametrize("trained", [16, 8192])
@pytest.mark.parametrize("lead", [0, 0.25, 2.75, 9, 14])
def test_the_shares_are_those_of_a_softmax_over_all_keys(lead, trained):
    shown = front.seen(CrowdExplorer, lead=lead, trained=trained).views["shares"]
    assert shown[0].tolist() == list(KEYS)
    for keys, now in zip(KEYS, shown[1:].T, strict=True):
        factors = 1, llama(keys), math.log(keys) / math.log(trained)
        assert now.tolist() == pytest.approx([by_hand(lead, times, keys) for times in factors], rel=1e-9)


def test_the_longer_query_is_that_of_the_course():
    """Its factor, as the sentence gives it, for the query that sees all keys."""
    q = torch.ones(1, dtype=torch.float64)
    asked = [
        {"query": "Scalable-Softmax", "keys": n, "trained": trained} for trained in (16, 8192) for n in KEYS
    ]
    for params, said in zip(asked, front.ask(CrowdExplorer, *asked), strict=True):
        factor = float(t10.sharper(q, params["keys"], params["trained"]))
        assert f"leads by 2.75 × {factor + 1e-9:.2f} = " in said.description


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("lead", [0, 1, 2.75, 3, 8.75])
def test_where_it_falls_below_half(query, lead):
    said = front.seen(CrowdExplorer, lead=lead, query=query).description
    found = re.search(r"(?:from|at) ([\d,]+) keys (?:on it has less|it falls below)", said)
    end = int(found[1].replace(",", "")) if found else 0
    times = {
        "as trained": lambda n: 1,
        "Llama 4": llama,
        "Scalable-Softmax": lambda n: math.log(n) / math.log(16),
    }
    if not end:
        assert query == "Scalable-Softmax" and lead > math.log(16)
        assert by_hand(lead, times[query](KEYS[-1]), KEYS[-1]) >= 0.5
        return
    assert by_hand(lead, times[query](end), end) < 0.5 <= by_hand(lead, times[query](end - 1), end - 1)


def test_the_sentence_says_what_is_seen():
    said = front.seen(CrowdExplorer, keys=4096).description
    kept = by_hand(2.75, 1, 4096)
    assert f"leads by 2.75, and against 4,095 others half of the weight takes {math.log(4095):.2f}" in said
    assert f"it keeps {kept:.3g} of the weight; from 17 keys on it has less than half" in said
    longer = front.seen(CrowdExplorer, keys=4096, query="Scalable-Softmax").description
    assert "leads by 2.75 × 3.00 = 8.25" in longer
    assert "against one other" in front.seen(CrowdExplorer, keys=2).description
    steps = front.seen(CrowdExplorer, lead=9, query="Llama 4", trained=8192).description
    assert "at 8,105 keys it falls below half for the first time" in steps


def test_the_challenge_is_measured():
    asked = [
        {"query": query, "keys": keys, "lead": lead, "trained": trained}
        for query in QUERIES
        for keys in (65_536, 131_072)
        for lead in LEADS
        for trained in (16, 8192)
    ]
    every = zip(asked, front.ask(CrowdExplorer, *asked), strict=True)
    won = [(params, said.reached) for params, said in every if said.reached]
    assert {tuple(params.values())[:3] for params, _said in won} == {("as trained", 131_072, 12)}
    kept = [by_hand(lead, 1, 131_072) for lead in LEADS]
    assert min(lead for lead, share in zip(LEADS, kept, strict=True) if share >= 0.5) == 12
    assert won[0][1] == (
        f"12 leaves it {by_hand(12, 1, 131_072):.3f}, and 11.75 would not do: log(131,071) is "
        f"{math.log(131_071):.2f}."
    )
