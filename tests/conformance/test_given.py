"""Implementations in files of their own: right ones here, broken ones where ``CONFORMANCE_GIVEN`` says.

A file has ``given`` (what is looked at, or a dict of such by name), ``DECLARED`` (the arguments of ``check``)
and ``BUGS``: names that all explain it, one of which must be said; an empty set if it is right. ``BUGS`` may
be a dict by the names of ``given``, and DECLARED then, too.
"""

import importlib.util
import os
import sys
import time
from pathlib import Path

import pytest

from tutorial_lib import conformance

os.environ["HF_HUB_OFFLINE"] = "1"  # set before Hugging Face is imported
FOLDERS = [Path(__file__).with_name("given"), *map(Path, os.environ.get("CONFORMANCE_GIVEN", "").split())]


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"given_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def each(path):
    module = loaded(path)
    given = module.given if isinstance(module.given, dict) else {"": module.given}
    for name, its in given.items():
        declared, bugs = (
            part.get(name, {}) if isinstance(part, dict) and part.keys() >= given.keys() else part
            for part in (module.DECLARED, module.BUGS)
        )
        yield name, its, declared, set(bugs)


@pytest.mark.parametrize(
    "path", [p for folder in FOLDERS for p in sorted(folder.glob("*.py"))], ids=lambda p: p.stem
)
def test_what_is_said_of_it(path):
    wrong = []
    for name, given, declared, bugs in each(path):
        assert bugs <= conformance.BUGS.keys(), f"{path.name}: {bugs - conformance.BUGS.keys()} have no entry"
        start = time.perf_counter()
        report = conformance.check(given, **declared)
        seconds = time.perf_counter() - start
        right = report.ok and not report.named if not bugs else bool(report.named & bugs)
        if not right or seconds > 10:
            wrong.append(f"{path.stem} {name}: {sorted(bugs)} in {seconds:.1f} s\n{report}")
    assert not wrong, "\n\n".join(wrong)
