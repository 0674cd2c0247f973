"""What the tool says of every decoder of the atlas: the record, its page, and a few asked again."""

import json

import pytest

from course import atlas
from workshop.atlas import conformance

ROWS = json.loads(conformance.FILE.read_text(encoding="utf-8"))


def test_all_decoders_were_asked_and_whatever_failed_was_looked_up():
    assert ROWS.keys() == {each["type"] for each in atlas.record()["rows"] if "runs" in each}
    looked = [name for names in conformance.LOOKED for name in names.split()]
    assert sorted(looked) == sorted(name for name, its in ROWS.items() if conformance.failed(its))
    assert conformance.page(ROWS) in conformance.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["llama", "mbart", "flex_olmo"])
def test_asked_again_it_says_the_same(name):
    assert conformance.said(name) == ROWS[name]
