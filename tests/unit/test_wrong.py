"""“Something wrong here?”: a link with the place filled in, and none where the host is not known."""

from urllib.parse import parse_qs, urlsplit

import pytest

from course import lesson
from course.lesson import wrong


@pytest.mark.parametrize(
    "host, title, body",
    [
        ("https://example.org/a/b/issues/new", "title", "body"),
        ("https://example.org/new?labels=reader", "title", "body"),
        (
            "https://example.org/new?issue[title]={title}&issue[description]={body}",
            "issue[title]",
            "issue[description]",
        ),
        ("mailto:course@example.org?subject={title}&body={body}", "subject", "body"),
    ],
)
def test_the_place_is_filled_in(monkeypatch, host, title, body):
    monkeypatch.setenv("ISSUES_URL", host)
    asked = parse_qs(urlsplit(wrong.address("notebooks/06_rope.ipynb")).query)
    assert asked[title] == ["notebooks/06_rope.ipynb: "]
    assert asked[body][0].startswith("Where: notebooks/06_rope.ipynb\n\nWhat it says:")
    assert wrong.link("a&b").startswith('<a href="') and "a&b" not in wrong.link("a&b")


@pytest.mark.parametrize("host", ["", "  "])
def test_without_a_host_there_is_no_link(monkeypatch, host):
    monkeypatch.setenv("ISSUES_URL", host)
    assert wrong.address("x") == wrong.link("x") == ""
    assert not [part for part in lesson.concept_check("01").children if wrong.ASKS in str(part)]


def test_what_is_no_address_is_refused(monkeypatch):
    monkeypatch.setenv("ISSUES_URL", "javascript:alert(1)")
    with pytest.raises(ValueError, match="ISSUES_URL"):
        wrong.address("x")


def test_a_notebook_ends_with_it_and_does_not_store_it(monkeypatch):
    without = lesson.concept_check("01").stored()
    monkeypatch.setenv("ISSUES_URL", "https://example.org/new")
    check = lesson.concept_check("01")
    assert wrong.ASKS in check.children[-1].value and "notebook%2001" in check.children[-1].value
    assert check.stored() == without
