"""docs/coverage.md: every topic has its section, its object and its test, and they are there."""

import pytest

from workshop import coverage

IDS = [
    f"{letter}{n}"
    for letter, last in (("A", 24), ("B", 11), ("C", 9), ("D", 20), ("N", 7))
    for n in range(1, last + 1)
]
GOOD = coverage.rows()[0]


def test_every_topic_has_its_row():
    assert [row.id for row in coverage.rows()] == IDS


@pytest.mark.parametrize("row", coverage.rows(), ids=lambda row: row.id)
def test_what_a_row_names_is_there(row):
    assert coverage.problem(row) == ""
    assert row.topic and "|" not in row.topic


@pytest.mark.parametrize(
    "change, says",
    [
        ({"notebook": "77"}, "there is no notebook 77"),
        ({"section": "A puzzl"}, "no section 'A puzzl'; it has"),
        ({"object": "encodings.NoPositions"}, "the library has no encodings.NoPositions"),
        ({"object": "no_module"}, "the library has no no_module"),
        ({"test": "unit/test_model.py::test_order"}, "there is no test unit/test_model.py::test_order"),
        ({"test": "unit/test_none.py::test_x"}, "there is no test"),
    ],
)
def test_what_is_missing_is_named(change, says):
    assert says in coverage.problem(GOOD._replace(**change))


def test_the_page_is_made_from_the_rows():
    text = coverage.PAGE.read_text(encoding="utf-8")
    assert text == coverage.page(), "run `python -m workshop.coverage`"
    groups = {name[0] for name in IDS}
    assert text.count("\n| ") == len(IDS) + len(groups) and text.count("\n## ") == len(groups)
