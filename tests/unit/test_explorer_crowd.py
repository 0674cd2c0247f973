"""The explorer of notebook 10: its shares against torch's softmax over a whole crowd, key by key."""

import math

import pytest
import torch

from course.lesson.turns import t10
from tutorial_lib.encodings.temperature import Temperature
from tutorial_lib.explorers import CrowdExplorer
from tutorial_lib.explorers.crowd import KEYS, LEADS, QUERIES, factor, loses


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
    for keys in KEYS:
        factors = 1, llama(keys), math.log(keys) / math.log(trained)
        expected = [by_hand(lead, times, keys) for times in factors]
        views = CrowdExplorer.scene(lead=lead, trained=trained, keys=keys).views
        now = torch.as_tensor(views["weights"].z)
        assert now[:, 0].tolist() == pytest.approx(expected, rel=1e-9)
        torch.testing.assert_close(now.sum(1), torch.ones(3).double())
        at = views["shares"].mark
        assert views["shares"].x[at] == keys
        assert [float(each[at]) for each in views["shares"].ys.values()] == pytest.approx(expected, rel=1e-9)


def test_the_longer_queries_are_those_of_the_course():
    q, keys = torch.ones(1, dtype=torch.float64), torch.tensor(KEYS)
    for trained in (16, 8192):
        found = factor("Scalable-Softmax", keys, trained)
        assert found.tolist() == pytest.approx([float(t10.sharper(q, n, trained)) for n in KEYS])
        assert float(factor("Scalable-Softmax", torch.tensor([trained]), trained)[0]) == pytest.approx(1)
    assert factor("Llama 4", keys, 16).tolist() == Temperature().factor(keys - 1).tolist()
    step = factor("Llama 4", torch.tensor([8191, 8192]), 16).tolist()
    assert step == pytest.approx([1, 1 + 0.1 * math.log(2)])


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("lead", [0, 1, 2.75, 3, 8.75])
def test_where_it_falls_below_half(query, lead):
    end = loses(lead, query, 16)
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
    assert f"{end:,} keys" in CrowdExplorer.scene(lead=lead, query=query).description


def test_the_sentence_says_what_is_seen():
    said = CrowdExplorer.scene(keys=4096).description
    kept = by_hand(2.75, 1, 4096)
    assert f"leads by 2.75, and against 4,095 others half of the weight takes {math.log(4095):.2f}" in said
    assert f"it keeps {kept:.3g} of the weight; from 17 keys on it has less than half" in said
    longer = CrowdExplorer.scene(keys=4096, query="Scalable-Softmax").description
    assert "leads by 2.75 × 3.00 = 8.25" in longer
    assert "against one other" in CrowdExplorer.scene(keys=2).description
    steps = CrowdExplorer.scene(lead=9, query="Llama 4", trained=8192).description  # up again at each step
    assert "at 8,105 keys it falls below half for the first time" in steps


def test_the_challenge_is_measured():
    won = [params for params in CrowdExplorer.grid() if CrowdExplorer.reached(**params)]
    settings = {(params["query"], params["lead"], params["keys"]) for params in won}
    assert settings == {("as trained", 12, 131_072)}
    kept = [by_hand(lead, 1, 131_072) for lead in LEADS]
    assert min(lead for lead, share in zip(LEADS, kept, strict=True) if share >= 0.5) == 12
    assert CrowdExplorer.reached(**won[0]) == (
        f"12 leaves it {by_hand(12, 1, 131_072):.3f}, and 11.75 would not do: log(131,071) is "
        f"{math.log(131_071):.2f}."
    )
