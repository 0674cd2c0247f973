"""Chromium, for every test that looks at something in a browser; recorded runs in place of trainings."""

import functools

import pytest

from workshop import browser as browsers


def pytest_collection_modifyitems(config, items):
    """`make test` needs no browser and no package of the system, so nothing in it may ask for one."""
    bare = tuple(config.getini("testpaths"))
    asks = [
        item.nodeid
        for item in items
        if item.nodeid.startswith(bare) and {"chromium", "browser"} & {*getattr(item, "fixturenames", ())}
    ]
    if asks:
        raise pytest.UsageError(f"these tests ask for a browser: move them out of `make test`: {asks[:5]}")


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


@pytest.fixture
def recorded_runs(monkeypatch):
    """What `predict_and_train` is held to, in place of new runs: recorded ones, by the seed."""
    from course.checks.questions import q09  # most tests need it not

    def run(use, name, seed):
        seeds = _recorded()[use, name]
        return tuple(seeds[seed % len(seeds)])

    monkeypatch.setattr(q09, "_run", run)


@functools.cache
def _recorded():
    """For each use and encoding, the accuracies of each recorded seed."""
    from course.experiments import load

    record = load("tasks", "exercise")
    return {(cell["task"], cell["encoding"]): record.values("accuracy", **cell) for cell in record.cells()}
