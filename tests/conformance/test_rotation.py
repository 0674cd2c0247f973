"""What is said of a rotation: each bug by its name, nothing against a right one."""

import time

import pytest
import torch

from tutorial_lib import conformance
from tutorial_lib.encodings import AxialFrequencies, Frequencies, MRoPE, Rotary

from .rotations import BROKEN, FACTOR, HALF, LINEAR, YARN, rope, stretched, yarn_theta

SAME = [  # what no output tells apart
    {"turned twice", "positions doubled"},
    {"inv_freq never filled", "no position"},
    {"base", "frequencies with d/2", "frequencies with 2d", "d − 1 for d", "model's dimension"},
    {"base", "frequencies with d/2", "scaling missing"},
]


@pytest.mark.parametrize("name", BROKEN)
def test_a_bug_is_called_by_its_name(name):
    function, declared = BROKEN[name]
    report = conformance.check(function, **declared)
    assert not report.ok and name in report.named, report
    assert any(report.named <= {name, *others} for others in SAME if name in others) or report.named == {name}
    assert str(report)


def test_two_bugs_at_once_are_two():
    wrong = rope("interleaved", positions=lambda p: p + 1)
    golden = conformance.check(wrong, **HALF)["golden values"]
    assert {golden.bugs, golden.also} == {("layout",), ("positions from 1",)}
    assert (
        golden.shown.startswith("position 0, channel 3: yours -0.4963, right 0.8083 (in a call with 1 token)")
        and golden.error > 1
    )


def test_what_is_no_known_bug_is_not_named():
    report = conformance.check(lambda x, p: rope()(x, p) * (1 + 0.3 * p[:, None] % 2))
    assert not report.ok and not report["golden values"].bugs
    assert "not one of the known bugs" in str(report) and report["golden values"].error > 0.1


def test_nothing_is_called_right_that_is_not_tested():
    report = conformance.check(lambda x, p: rope()(x, p) if p.ndim == 1 and len(p) > 1 else 1 / 0)
    assert report["cache"].status == report["padding"].status == "not decided"
    assert "because" in report["cache"].says and "because" in report["padding"].says
    assert "whether your weights have them is not tested" in report["golden values"].says


def test_an_unusual_base_is_not_decided_unless_it_is_declared():
    assert conformance.check(rope(base=12_345.0))["golden values"].status == "not decided"
    assert conformance.check(rope(base=12_345.0), base=12_345.0)["golden values"].status == "passed"


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1)])
def test_sections_and_axes_of_mrope(order):
    sections = (16, 8, 8)

    def of(axes):
        its = Rotary(64, layout="half", frequencies=MRoPE(64, sections=sections))
        return lambda x, positions: its.rotate(x, x, positions[..., list(axes)], positions[..., list(axes)])[
            0
        ]

    declared = {"sections": sections, "layout": "half", "base": 1e4}
    assert conformance.check(of((0, 1, 2)), **declared).ok
    assert "axes swapped" in conformance.check(of(order), **declared).named
    dealt = Rotary(64, layout="half", frequencies=MRoPE(64, sections=sections, order="interleaved"))
    report = conformance.check(lambda x, p: dealt.rotate(x, x, p, p)[0], **declared)
    assert report["golden values"].bugs == ("sections",)


def test_rows_and_columns_of_an_image():
    its = Rotary(
        64, layout="interleaved", frequencies=AxialFrequencies(64, (Frequencies(32), Frequencies(32)))
    )
    declared = {"sections": (16, 16), "order": "axial", "layout": "interleaved"}
    report = conformance.check(lambda x, p: its.rotate(x, x, p, p)[0], **declared)
    assert report.ok and report["golden values"].status == "passed", report
    turned = conformance.check(lambda x, p: its.rotate(x, x, p.flip(-1), p.flip(-1))[0], **declared)
    assert {"axes swapped", "sections"} == turned.named, turned


def test_queries_and_keys_are_looked_at_apart():
    def only_queries(q, k, positions):
        return rope()(q, positions), k

    def against(q, k, positions):
        return rope()(q, positions), rope()(k, -positions)

    assert conformance.check(lambda q, k, positions: (rope()(q, positions), rope()(k, positions))).ok
    assert conformance.check(only_queries).named == {"only queries turned"}
    assert conformance.check(against).named == {"queries against keys"}


def test_a_module_whose_buffer_follows_its_dtype():
    class Buffer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("inv_freq", stretched(64).float(), persistent=False)

        def forward(self, x, positions):
            return rope(theta=lambda d: self.inv_freq)(x, positions)

    report = conformance.check(Buffer())
    assert [f.promise for f in report.failed] == ["dtype"] and "angles in half precision" in report.named


LAYOUTS = ("half", "interleaved")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
PARTIAL = Frequencies(64, rotary_dim=16)


def ours(its):
    return lambda x, positions: its.rotate(x, x, positions, positions)[0]


OURS = {
    f"ours {layout} {str(dtype)[6:]}": (ours(Rotary(64, layout=layout).to(dtype)), {})
    for layout in LAYOUTS
    for dtype in DTYPES
}
RIGHT = OURS | {
    "written anew": (rope(), HALF),
    "neighbours": (rope("interleaved"), {"layout": "interleaved"}),
    "Llama 3's base": (rope(base=500_000.0), {}),
    "partial": (rope(turning=16), {}),
    "partial, declared": (rope(turning=16), {"rotary_dim": 16}),
    "partial, ours": (ours(Rotary(64, frequencies=PARTIAL)), {}),
    "linear": (rope(theta=lambda d: stretched(d, 8)), {"scaling": LINEAR}),
    "yarn": (rope(theta=yarn_theta, factor=FACTOR), {"scaling": YARN}),
    "yarn, not truncated": (
        rope(theta=lambda d: yarn_theta(d, truncate=False), factor=FACTOR),
        {"scaling": YARN | {"truncate": False}},
    ),
    "length before heads": (
        lambda x, p: rope()(x.transpose(1, 2), p).transpose(1, 2),
        {"axes": "blhd"},
    ),
    "one head": (lambda x, p: rope()(x[None, None], p)[0, 0], {"axes": "ld"}),
    "a short table": (lambda x, p: rope()(x, torch.arange(600)[p]), {}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_no_alarm_for_right_code(name):
    function, declared = RIGHT[name]
    start = time.perf_counter()
    report = conformance.check(function, **declared)
    assert report.ok and not report.named, report
    assert report["golden values"].status == "passed"
    assert time.perf_counter() - start < 2


def test_what_can_not_be_asked_says_what_to_do():
    with pytest.raises(ValueError, match="give head_dim=…, and axes='bhld'"):
        conformance.check(lambda x, positions: 1 / 0)
    with pytest.raises(ValueError, match="bass: unknown here; you may declare head_dim, base"):
        conformance.check(rope(), bass=1)
    with pytest.raises(ValueError, match="layout='quarter'"):
        conformance.check(rope(), layout="quarter")
    with pytest.raises(ValueError, match="rope_type='longest'"):
        conformance.check(rope(), scaling={"rope_type": "longest"})


def sines(positions, base=1e4, power=2.0, first=0):
    angle = (positions + first)[..., None] * base ** (-power * torch.arange(32) / 64)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


def test_a_table_of_sines_has_the_bugs_of_a_rotation():
    assert conformance.check(sines, kind="table").ok
    concatenated = conformance.check(
        lambda positions: torch.cat([sines(positions)[..., 0::2], sines(positions)[..., 1::2]], -1)
    )
    assert concatenated.ok and concatenated.given == "table(positions)"
    assert conformance.check(lambda positions: sines(positions, first=1)).named == {"positions from 1"}
    doubled = conformance.check(lambda positions: sines(positions, power=4.0), base=1e4)
    assert "frequencies with d/2" in doubled["golden values"].bugs
