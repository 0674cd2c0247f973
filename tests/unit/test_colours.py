"""One table of colours: what can be told apart by whom, and that nothing else names a colour of its own."""

import itertools
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from course import playground
from course.places import ROOT
from tutorial_lib import colours, readability
from tutorial_lib.explorers import live

# Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
PAGES = {"light": "#ffffff", "dark": "#151922"}
MARKS = {"o": "circle", "s": "square", "D": "diamond", "^": "triangle"}


def oklab(colour, sight):
    """Of a colour as somebody sees it; distances in this space are as large as they look (Ottosson 2020)."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lms = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    ) @ np.clip(SIGHT[sight] @ linear, 0, 1)
    return np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    ) @ np.cbrt(lms)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("page", PAGES)
def test_any_two_encodings_can_be_told_apart(sight, page):
    seen = {name: oklab(getattr(each, page), sight) for name, each in colours.ENCODINGS.items()}
    near = min((100 * np.linalg.norm(seen[a] - seen[b]), a, b) for a, b in itertools.combinations(seen, 2))
    assert near[0] > 11.9, near
    for each in (*colours.ENCODINGS.values(), *colours.ROLES.values()):
        assert readability.contrast(to_rgb(getattr(each, page)), to_rgb(PAGES[page])) > 3


def test_the_table_is_the_only_one():
    told = (ROOT / "docs" / "explorers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| `(#\w{6})` \| `(#\w{6})` \| (\w+) \|$", told, re.MULTILINE)
    assert rows == [
        (name, each.light, each.dark, MARKS[each.mark]) for name, each in colours.ENCODINGS.items()
    ]
    for sheet in (playground.style(), live.style()):
        bare = re.sub(r"\s", "", sheet)
        for name, role in {"q": "query", "k": "key", "mix": "between"}.items():
            assert f"--{name}:{colours.ROLES[role].css.replace(' ', '')};" in bare
    lanes = re.findall(r"\.pg-(\w+)\{--c:light-dark\((#\w+),(#\w+)\)", playground.style().replace(" ", ""))
    assert {lane: tuple(each) for lane, *each in lanes if lane in colours.LANES} == {
        lane: colours.ENCODINGS[name][:2] for lane, name in colours.LANES.items()
    }
    slides = (ROOT / "workshop" / "decks" / "deck" / "slides.css").read_text(encoding="utf-8")
    for name, role in {"q": "query", "k": "key", "mix": "between"}.items():
        assert f"--{name}: {colours.ROLES[role].light};" in slides


def test_every_compared_method_has_its_encoding():
    names = "none sinusoidal learned rotary xpos clipped t5 alibi kerple shaw deberta fire tupe".split()
    kinds = (
        "none sinusoidal learned rope rope relative relative alibi alibi relative relative relative learned"
    )
    assert [colours.encoding(name) for name in names] == kinds.split()
    assert not colours.encoding("loss") and colours.encoding("RoPE + ALiBi") == "hybrid"
