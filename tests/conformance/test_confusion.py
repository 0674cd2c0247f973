"""Bugs × names: what the tool says of right code and of mutants, by somebody who had not seen it."""

import json
import time

import pytest

from tutorial_lib import conformance

from .confusion import NAMES, PAGE, RECORD, check, decoder, measure, page
from .mutants import BUGS, load


@pytest.fixture(scope="module")
def measured():
    start = time.process_time()
    yield measure()
    assert time.process_time() - start < 120  # twice of what it may take where nothing else runs


def test_no_alarm_and_nothing_wrong_passes(measured):
    assert measured["alarms"] == {}
    assert measured["hidden"]["passed"] == measured["hidden"]["mutants"]
    for row in measured["bugs"].values():
        assert row["verdicts"].keys() <= {"named", "not named", "not decided"}, row


def test_nearly_all_that_is_given_by_itself_is_named(measured):
    """What is inside of a decoder may show without a name, or be left open; nothing else."""
    rows = measured["given"]
    assert [given for given, row in rows.items() if row.keys() != {"right", "named"}] == [
        "`logits(tokens, …)`, then with a `reference`"
    ]


def test_the_record_and_its_page(measured):
    """Otherwise: `python -m tests.conformance.confusion`."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    for each in (record, measured):
        for row in each["bugs"].values():
            del row["names"]  # two that fit nearly may both fit on another machine
    assert record == measured
    assert page(measured) in PAGE.read_text(encoding="utf-8")


def test_what_is_left_open_says_why():
    report = decoder(load("decoder_llama", "sign-of-rotation"), load("decoder_llama").ABOUT)
    assert (
        report.ok and "layout and signs belong to weights that nobody knows" in report["golden values"].says
    )


def test_a_reference_tells_a_sign_from_a_layout():
    right = load("decoder_llama")
    for slug, names in (("sign-of-rotation", ("sign",)), ("pairs-interleaved-for-half", ())):
        report = decoder(load("decoder_llama", slug), right.ABOUT, right)
        assert (report["golden values"].status, report["golden values"].bugs) == ("failed", names), report
    assert decoder(right, right.ABOUT, right)["golden values"].status == "passed"


def test_every_bug_of_the_list_has_names_of_the_tool():
    assert NAMES.keys() == BUGS.keys()
    assert {name for names in NAMES.values() for name in names} <= conformance.BUGS.keys()


def test_one_check_takes_less_than_two_seconds():
    for name in ("rotate_yarn", "attend_half", "alibi_loop", "decoder_streaming", "sinusoid_loop"):
        module, start = load(name), time.process_time()
        check(name, module)
        assert time.process_time() - start < 2, name
