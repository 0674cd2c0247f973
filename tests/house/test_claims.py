"""One sentence, one verdict: what lessons and records say of the same claim (``course/claims.toml``)."""

import re
from html import unescape

import nbformat
import pytest

from course import claims, verdicts
from course.claims import Place
from course.experiments import load, report
from workshop import authoring

ROW = re.compile(r"<td[^>]*>“([^<]*)”</td>\s*<td[^>]*>(.*?)</td>", re.DOTALL)
"""Of a stored table: a claim, and its verdict."""


def in_lessons():
    """The verdict on each claim of the lessons' tables, as they are stored; of several parts, on each."""
    found = {}
    for path in authoring.NOTEBOOKS.rglob("*.ipynb"):
        name = path.stem if path.parent.name == "deeper" else path.stem[:2]
        for cell in nbformat.read(path, as_version=4).cells:
            pages = [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", ())]
            for row in ROW.findall("".join(pages)):
                text, said = map(unescape, row)
                for sign, word in re.findall(r"([✔✘◌≡]) ([^;]+)", said):
                    (meant,) = (each for each, one in verdicts.SIGNS.items() if one == sign)
                    found[Place(name, text, "" if word == meant else word)] = meant
    return found


def in_records():
    """The verdict of each finding on the page of results."""
    found = {}
    for experiment, preset in report.measured():
        name = experiment.name + (" gpu" if preset == "gpu" else "")
        for finding in experiment.findings(load(experiment.name, preset)):
            found[Place(name, finding.claim)] = finding.verdict
    return found


@pytest.fixture(scope="module")
def judged():
    return in_lessons() | in_records()


def test_all_places_are_found(judged):
    assert len(in_lessons()) > 60 and len(judged) > 220
    missing = [place for places in claims.register().values() for place in places if place not in judged]
    assert not missing, "these sentences stand there no longer"


@pytest.mark.parametrize("name", claims.register())
def test_no_claim_has_two_verdicts(name, judged):
    places = claims.register()[name]
    assert len(places) > 1
    said = {place: judged[place] for place in places}
    assert len(claims.verdict(places, judged)) == 1, f"{name} is judged in several ways: {said}"


def test_the_same_words_have_one_verdict(judged):
    """Whether or not somebody has entered them."""
    by_words = {}
    for place, said in judged.items():
        words = (re.sub(r"\W+", " ", place.text).lower().strip(), place.part)
        by_words.setdefault(words, set()).add(said)
    assert {words: said for words, said in by_words.items() if len(said) > 1} == {}


def test_two_verdicts_on_one_claim_are_found(judged):
    places = claims.register()["sinusoids-beyond"]
    assert claims.verdict(places, judged) == {verdicts.FAILS}
    turned = {place: verdicts.HOLDS for place in places if place.where == "09_stars"}
    assert claims.verdict(places, judged | turned) == {verdicts.FAILS, verdicts.HOLDS}
    same = {Place("a", "It is so"): False, Place("b", "It isn't"): True}
    assert claims.verdict(
        same, {Place("a", "It is so"): verdicts.IDENTITY, Place("b", "It isn't"): verdicts.FAILS}
    )


def test_a_record_names_the_lessons_that_judge_the_same():
    assert claims.also_in("lengths", "Nor does RoPE") == ["06", "09_stars", "extension", "position_gap"]
    assert claims.also_in("lengths", "no such claim") == []
