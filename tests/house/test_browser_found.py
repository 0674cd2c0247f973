"""Which Chromium is taken, and what is said where there is none."""

import pytest

from workshop import browser


def test_the_one_that_is_named_is_taken(monkeypatch, tmp_path):
    mine = tmp_path / "my-chromium"
    mine.touch()
    monkeypatch.setenv("CHROMIUM", str(mine))
    assert browser.chromium() == str(mine)


def test_then_one_on_the_path(monkeypatch, tmp_path):
    found = tmp_path / "google-chrome"
    found.touch()
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser.shutil, "which", lambda name: str(found) if name == found.name else None)
    assert browser.chromium() == str(found)


def test_where_there_is_none_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "/no/such/browser")
    with pytest.raises(RuntimeError, match="apt-get install chromium.*playwright install"):
        browser.chromium()
