"""What is known of a method beside its code, as data: each encoding's file ends in its ``METHODS``.

The registry is made of them (:mod:`tutorial_lib.encodings.registry`), and so are the printed page of all
methods, the site's page of each, and the titles that are translated. Nothing here is needed to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    r"""On the page of all methods, and what its own page says of cost and use; a ``\n`` ends a printed line.

    Args:
        name: how it is called there.
        formula: mathtext, one string for each line.
        parameters: how many it learns.
        cost: what it adds to a pass.
        longer: what happens on texts longer than those of training.
        used_by: released models; "–" where this course names none.
        picture: a function of ``workshop/summary.py``, if one draws it.
    """

    name: str
    formula: tuple[str, ...]
    parameters: str
    cost: str
    longer: str
    used_by: str = "–"
    picture: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Method:
    """A method, or several that are told together.

    The paper, its year and the equations stand in the docstring of the module, or of ``equation``.

    Args:
        names: what makes it, by its names in the registry.
        relative: whether scores stay as they are when all positions move; of a RelativeBias this is known.
        compared: whether the lessons' records have it. Until they do, its page shows what needs no training.
        lesson: the notebook that tells most of it; methods stand in the order of these.
        joins: the page of another method on which it is told; then all below is said there.
        page: the address of its page; by default its first name.
        title, says: of its page: what it is called, and what it does, in two or three sentences.
        words: what people type into a search.
        code: functions and methods that the page shows.
        make: how it is built for 4 heads of 16 channels, as one would write it.
        year: of the paper; None where it comes from no one paper.
        arxiv: number of the paper.
        equation: whose docstring has it, if it is not the module's.
        formula: where no docstring has it.
        source: the paper and its equation, where that docstring's first words name none.
        row: on the printed page of all methods.
        variants: rows of the scoreboard that are another method with it.
        papers: its headings in the reading list; without any, the page names the paper.
        live, params: an explorer, and what it starts with.
        glossary: its anchor there.
        claims: a pattern that finds what ``docs/results.md`` says of it.
        released: a pattern that finds what released models do with it.
    """

    names: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    relative: bool = False
    compared: bool = True
    lesson: str = ""
    joins: str = ""
    page: str = ""
    title: str = ""
    says: str = ""
    words: tuple[str, ...] = ()
    code: tuple[Callable[..., Any], ...] = ()
    make: str = ""
    year: int | None = None
    arxiv: str = ""
    equation: Any = None
    formula: str = ""
    source: str = ""
    row: Row | None = None
    variants: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    live: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    glossary: str = ""
    claims: str = ""
    released: str = ""

    def __post_init__(self) -> None:
        if self.title and not self.page:
            object.__setattr__(self, "page", next(iter(self.names)))

    @property
    def place(self) -> tuple[str, bool, int]:
        """Where it stands among all: as the course comes to it, in a lesson before its side quests."""
        number = self.lesson.rpartition("/")[2][:2]
        return number, "/" in self.lesson, self.year or 9999
