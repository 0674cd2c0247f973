"""What is said of an attention."""

import pytest
import torch
import torch.nn.functional as F

from tutorial_lib import conformance
from tutorial_lib.attention import attention
from tutorial_lib.encodings import ALiBi, Rotary
from tutorial_lib.encodings.alibi import slopes

from .rotations import rope

TURN = rope("interleaved")


def late(q, k):
    return torch.arange(k.shape[-2] - q.shape[-2], k.shape[-2])


def past(q, k, diagonal=0):
    return torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(k.shape[-2] - q.shape[-2] + diagonal)


def attend(
    q, k, v, turn_q=TURN, turn_k=TURN, at=late, mask=past, scale=None, values=lambda v: v, bias=lambda q, k: 0
):
    q, k = turn_q(q, at(q, k)), turn_k(k, torch.arange(k.shape[-2]))
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale) + bias(q, k)
    return s.masked_fill(~mask(q, k), -torch.inf).softmax(-1) @ values(v)


def still(x, positions):
    return x


def linear(q, k, sign=1.0, by=1.0):
    return (
        sign
        * by
        * slopes(q.shape[1]).to(q.dtype)[:, None, None]
        * (torch.arange(k.shape[-2]) - late(q, k)[:, None])
    )


ALIBI = {"turn_q": still, "turn_k": still, "bias": linear}
BROKEN = {
    "scale missing": {"scale": 1.0},
    "scale twice": {"scale": 1 / 64},
    "future seen": {"mask": lambda q, k: past(q, k, 99)},
    "own token hidden": {"mask": lambda q, k: past(q, k, -1)},
    "mask starts at the top": {"mask": lambda q, k: torch.ones(q.shape[-2], k.shape[-2]).tril().bool()},
    "only queries turned": {"turn_k": still},
    "only keys turned": {"turn_q": still},
    "queries against keys": {"turn_k": lambda x, p: TURN(x, -p)},
    "values turned": {"values": lambda v: TURN(v, torch.arange(v.shape[-2]))},
    "positions restart": {"at": lambda q, k: torch.arange(q.shape[-2])},
    "positions lag by one": {"at": lambda q, k: late(q, k) - 1},
    "one position for the chunk": {"at": lambda q, k: late(q, k)[-1:].expand(q.shape[-2])},
    "turned twice": {"turn_q": lambda x, p: TURN(x, 2 * p), "turn_k": lambda x, p: TURN(x, 2 * p)},
    "sign": {"turn_q": lambda x, p: TURN(x, -p), "turn_k": lambda x, p: TURN(x, -p)},
    "layout": {"turn_q": rope(), "turn_k": rope()},
    "bias sign": ALIBI | {"bias": lambda q, k: linear(q, k, -1.0)},
    "bias before the scale": ALIBI | {"bias": lambda q, k: linear(q, k, by=1 / 8)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bug_is_called_by_its_name(name):
    options = BROKEN[name]
    declared = {"encoding": "alibi"} if "bias" in options else {"encoding": "rope", "layout": "interleaved"}
    report = conformance.check(lambda q, k, v: attend(q, k, v, **options), **declared)
    assert not report.ok and name in report.named, report
    assert len(report.named) <= 2, report


def ours(encoding, **options):
    return lambda q, k, v: attention(q, k, v, encoding, causal=True, **options)


def fused(q, k, v):
    return F.scaled_dot_product_attention(
        TURN(q, late(q, k)), TURN(k, torch.arange(k.shape[-2])), v, attn_mask=past(q, k)
    )


RIGHT = {
    "written anew": (attend, {}),
    "fused": (fused, {"encoding": "rope"}),
    "no positions": (lambda q, k, v: attend(q, k, v, still, still), {}),
    "ALiBi": (lambda q, k, v: attend(q, k, v, **ALIBI), {}),
    "ours, eager": (ours(Rotary(64), backend="eager"), {"encoding": "rope", "layout": "interleaved"}),
    "ours, sdpa": (ours(Rotary(64, layout="half")), {"encoding": "rope", "layout": "half", "base": 1e4}),
    "our ALiBi": (ours(ALiBi(6)), {"encoding": "alibi"}),
    "our ALiBi of 8": (ours(ALiBi(8), backend="eager"), {"encoding": "alibi", "n_heads": 8}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_no_alarm_for_right_code(name):
    function, declared = RIGHT[name]
    report = conformance.check(function, kind="attend", **declared)
    assert report.ok and not report.named and report["golden values"].status == "passed", report


def test_it_says_what_to_declare():
    with pytest.raises(ValueError, match="give n_heads=… and head_dim=…"):
        conformance.check(lambda q, k, v: 1 / 0)
    with pytest.raises(ValueError, match="encoding='rotary'"):
        conformance.check(attend, kind="attend", encoding="rotary")
