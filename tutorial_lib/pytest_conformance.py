"""The pytest plugin: ``def test_positions(conformance): conformance.check(my_rope, layout="half")``.

It stands outside of the package that it asks, so that no session of pytest imports torch for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .optional import needs

with needs("test"):
    import pytest

if TYPE_CHECKING:
    from .conformance import Report


class Conformance:
    """What the fixture gives."""

    def check(self, given: Any, **declared: Any) -> Report:
        """The report of :func:`tutorial_lib.conformance.check`; the test fails with it if a promise does."""
        __tracebackhide__ = True
        from . import conformance

        report = conformance.check(given, **declared)
        if not report.ok:
            pytest.fail(str(report), pytrace=False)
        return report


@pytest.fixture(scope="session")
def conformance() -> Conformance:
    """``conformance.check(given, **declared)`` fails the test with a report that names the bug."""
    return Conformance()
