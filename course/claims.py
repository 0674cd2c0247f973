"""One sentence, one verdict: which claims of lessons and records are the same (``claims.toml``)."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .verdicts import FAILS, HOLDS, IDENTITY, OPEN

REGISTER = Path(__file__).with_suffix(".toml")
OPPOSITE = {HOLDS: FAILS, FAILS: HOLDS, IDENTITY: FAILS, OPEN: OPEN}


class Place(NamedTuple):
    """Where a claim is judged: an experiment or a lesson, its sentence, and a part of it (or "")."""

    where: str
    text: str
    part: str = ""


@functools.cache
def register() -> dict[str, dict[Place, bool]]:
    """By the claim's id: each place that judges it, and whether it says the opposite."""
    raw = tomllib.loads(REGISTER.read_text(encoding="utf-8"))
    return {
        name: {
            Place(*text.split(" | ")): kind == "opposite"
            for kind in ("same", "opposite")
            for text in one.get(kind, ())
        }
        for name, one in raw.items()
    }


def verdict(places: Mapping[Place, bool], judged: Mapping[Place, str]) -> set[str]:
    """The verdicts on one claim, each turned to how ``same`` says it: one, if all agree.

    What holds by construction holds. Raises KeyError for a place that judges no such sentence.
    """
    said = {OPPOSITE[judged[place]] if turned else judged[place] for place, turned in places.items()}
    return {HOLDS if each == IDENTITY else each for each in said}


def also_in(where: str, text: str) -> list[str]:
    """The other places that judge this sentence or its opposite."""
    groups = [places for places in register().values() if Place(where, text) in places]
    return sorted({place.where for places in groups for place in places if place.where != where})
