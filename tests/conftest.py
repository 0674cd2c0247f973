"""Chromium, for every test that looks at something in a browser."""

import pytest

from workshop import browser as browsers


@pytest.fixture(scope="session")
def chromium():
    """Its path. Where there is none, what asks for it is skipped."""
    try:
        return browsers.chromium()
    except RuntimeError as problem:
        pytest.skip(f"nothing was looked at: {problem}")


@pytest.fixture(scope="session")
def browser(chromium):
    """A Playwright browser without pages."""
    with browsers.launch() as browser:
        yield browser
