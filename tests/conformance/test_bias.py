"""What is said of a bias on the scores."""

import pytest
import torch

from tutorial_lib import conformance
from tutorial_lib.encodings import ALiBi, T5Bias
from tutorial_lib.encodings.alibi import slopes
from tutorial_lib.encodings.t5 import bucket

M = slopes(6)[:, None, None]
TABLE = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
CLIPPED = torch.randn(4, 33, generator=torch.Generator().manual_seed(1))
T5, BOTH = {"table": TABLE}, {"table": TABLE, "causal": False}


def r(n, m):
    return torch.arange(m) - torch.arange(m - n, m)[:, None]


def from_0(n, m):
    return torch.arange(m) - torch.arange(n)[:, None]


def low(dtype):
    return lambda n, m: M * (torch.arange(m).to(dtype) - torch.arange(m - n, m).to(dtype)[:, None])


def t5(of=r, **options):
    return lambda n, m: TABLE[:, bucket(of(n, m), **options)]


def naive(n, m):
    return 2.0 ** (-8 * torch.arange(1, 7) / 6)[:, None, None] * r(n, m)


BROKEN = {
    "bias sign": (lambda n, m: -M * r(n, m), {}),
    "table read i − j": (t5(lambda n, m: -r(n, m), bidirectional=True), BOTH),
    "bias signed in both directions": (lambda n, m: M * r(n, m), {"causal": False}),
    "bias is a mirror": (lambda n, m: -M * r(n, m).abs(), {"causal": False}),
    "bias before the scale": (lambda n, m: M * r(n, m) / 8, {"head_dim": 64}),
    "slopes": (naive, {}),
    "slopes from 1": (lambda n, m: 2.0 ** -torch.arange(8)[:, None, None] * r(n, m), {}),
    "bias restarts": (t5(from_0), T5),
    "positions in bf16": (low(torch.bfloat16), {}),
    "buckets": (t5(lambda n, m: r(n, m) - 1), T5),
    "bidirectional buckets": (t5(bidirectional=True), T5),
    "causal buckets": (t5(), BOTH),
    "clipped after the shift": (
        lambda n, m: CLIPPED[:, (r(n, m) + 16).clamp(-16, 16)],
        {"table": CLIPPED, "bias_kind": "clipped"},
    ),
    "no position": (lambda n, m: torch.zeros(4, n, m), {}),
}
SAME = [
    {"bias sign", "table read i − j"},
    {"bidirectional buckets", "buckets"},
    {"no position", "table read i − j"},
    {"bias signed in both directions", "one position for the chunk"},  # −m·|j − last| is m·j and a constant
]


@pytest.mark.parametrize("name", BROKEN)
def test_a_bug_is_called_by_its_name(name):
    function, declared = BROKEN[name]
    report = conformance.check(function, kind="bias", **declared)
    assert name in report.named, report
    assert report.named == {name} or any(report.named <= same for same in SAME if name in same), report
    assert report.ok == (name in ("bias is a mirror", "no position"))


def test_a_bucket_that_runs_over_its_side():
    def over(n, m):
        its = r(n, m)
        far = 8 + (torch.log(its.abs().clamp(min=1) / 8) / torch.log(torch.tensor(16.0)) * 8).long()
        return TABLE[
            :, 16 * (its > 0) + torch.where(its.abs() < 8, its.abs(), far).clamp(max=31 - 16 * (its > 0))
        ]

    assert conformance.check(over, kind="bias", **BOTH)["golden values"].bugs == ("bucket overflow",)


def test_a_far_key_that_has_no_bucket():
    def over(n, m):
        far = 16 + (torch.log((-r(n, m)).clamp(min=16) / 16) / torch.log(torch.tensor(8.0)) * 16).long()
        return TABLE[:, torch.where(r(n, m) > -16, (-r(n, m)).clamp(min=0), far)]

    report = conformance.check(over, kind="bias", table=TABLE)
    assert report["golden values"].bugs == ("bucket overflow",) and "no longest text" in str(report)


def test_a_row_that_restarts_where_no_softmax_sees_it_is_not_decided():
    report = conformance.check(lambda n, m: M * from_0(n, m), kind="bias")
    assert report["cache"].status == "not decided" and report.named == {"bias restarts"}


def ours(its):
    return lambda q_len, k_len: its.bias(torch.arange(k_len - q_len, k_len), torch.arange(k_len)).detach()


RIGHT = {f"ALiBi of {n} heads": (ours(ALiBi(n)), {}) for n in (1, 2, 6, 8, 12, 16)} | {
    "m·j": (lambda n, m: (M * torch.arange(m)).float(), {}),
    "masked": (lambda n, m: (M * r(n, m)).masked_fill(r(n, m) > 0, -torch.inf), {}),
    "|i − j| under a causal mask": (lambda n, m: -M * r(n, m).abs(), {}),
    "rounded at last": (lambda n, m: (M * r(n, m)).bfloat16(), {}),
    "T5's decoder": (ours(T5Bias(4)), {}),
    "T5's encoder": (ours(T5Bias(4, bidirectional=True)), {"causal": False}),
    "T5 with its table": (t5(bidirectional=True), BOTH),
    "clipped": (lambda n, m: CLIPPED[:, r(n, m).clamp(-16, 16) + 16], {"table": CLIPPED}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_no_alarm_for_right_code(name):
    function, declared = RIGHT[name]
    report = conformance.check(function, kind="bias", **declared)
    assert report.ok and not report.named and report["golden values"].status == "passed", report


def test_it_is_known_by_the_names_of_its_parameters():
    assert conformance.check(ours(ALiBi(4))).given == "bias(Lq, Lk)"
