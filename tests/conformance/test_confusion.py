"""Bugs × names: what the tool says of right code and of mutants, by somebody who had not seen it."""

import json
import time
from types import SimpleNamespace

import pytest

from tutorial_lib import conformance

from .confusion import KINDS, NAMES, PAGE, PAIRS, RECORD, check, decoder, page, part, said
from .mutants import BUGS, load

MEASURED = json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", KINDS)
def test_no_alarm_for_right_code(name):
    start = time.process_time()
    report = check(name, load(name))
    assert report.ok, report
    assert time.process_time() - start < 2


def test_a_part_is_what_the_record_says():
    """Otherwise, or if bugs or implementations are others: `python -m tests.conformance.confusion`."""
    chosen = list(part())
    assert {name for name, _ in chosen} == KINDS.keys() and {slug for _, slug in chosen} == BUGS.keys()
    for name, slug in chosen:  # names may differ: two that fit nearly may both fit on another machine
        assert said(name, slug)[0] == MEASURED["mutants"][name][slug][0], (name, slug)


def test_the_record_and_its_page():
    assert [(name, slug) for name, its in MEASURED["mutants"].items() for slug in its] == PAIRS
    assert MEASURED["alarms"] == {}
    assert page(MEASURED) in PAGE.read_text(encoding="utf-8")


def test_nothing_wrong_passes_and_nearly_all_is_named():
    """What is inside of a decoder may show without a name, or be left open; nothing else."""
    for name, its in MEASURED["mutants"].items():
        open_ = {"not named", "not decided"} if KINDS[name] in ("decoder", "streaming") else set()
        assert {verdict for verdict, *_ in its.values()} <= {"named", "hidden"} | open_, name


def test_what_is_left_open_says_why():
    report = decoder(load("decoder_llama", "sign-of-rotation"), load("decoder_llama").ABOUT)
    assert (
        report.ok and "layout and signs belong to weights that nobody knows" in report["golden values"].says
    )


@pytest.mark.parametrize(
    "name, slug, names",
    [
        ("decoder_llama", "sign-of-rotation", ("sign",)),
        ("decoder_llama", "pairs-interleaved-for-half", ("layout", "frequencies reversed")),
        ("decoder_gptj", "partial-wrong-part", ("layout", "frequencies reversed", "partial part")),
        ("decoder_mpt", "slopes-not-power-of-two", ("slopes",)),
    ],
)
def test_a_reference_tells_what_turns_from_where(name, slug, names):
    right = load(name)
    report = decoder(load(name, slug), right.ABOUT, right)
    assert (report["golden values"].status, report["golden values"].bugs) == ("failed", names), report
    assert decoder(right, right.ABOUT, right)["golden values"].status == "passed"


def test_other_weights_are_no_bug_of_positions():
    right = load("decoder_llama")
    other = SimpleNamespace(Decoder=lambda seed: right.Decoder(2))
    report = decoder(right, right.ABOUT, other)["golden values"]
    assert (report.status, report.bugs) == ("failed", ()), report


def test_every_bug_of_the_list_has_names_of_the_tool():
    assert NAMES.keys() == BUGS.keys()
    assert {name for names in NAMES.values() for name in names} <= conformance.BUGS.keys()
