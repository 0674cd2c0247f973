"""What stands in a clone of the course and not in an installed library: notebooks, documents, the lock."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
DEEPER = "deeper"
"""The folder of the side quests, in ``notebooks``."""
RECORDS = HERE / "results" if (HERE / "results").is_dir() else HERE.parent / "results"
"""The records that come with the course: in the library that is installed, or in the clone."""


def root(what: str) -> Path:
    """The folder of the clone. FileNotFoundError, in one sentence on ``what``, where there is none."""
    if not (HERE.parent / "pyproject.toml").is_file():
        raise FileNotFoundError(f"{what} needs a clone of the course: get it with `git clone`, and run "
                                "`make lab` in its folder")
    return HERE.parent


def room(name: str) -> Path:
    """The same for a package that is of use in a clone alone; ``python -m`` prints the error as one line."""
    try:
        return root(name)
    except FileNotFoundError as error:
        raise ModuleNotFoundError(str(error), name=name) from None
