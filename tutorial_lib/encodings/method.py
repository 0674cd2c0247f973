"""What is known about a method besides its code, as data: each encoding's file ends with its ``METHODS``.

The registry is made from them (:mod:`tutorial_lib.encodings.registry`), and so are the printed page of all
methods, the site's page for each, and the translated titles. Nothing here is needed to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    r"""A method's row on the page of all methods, and what its own page says about cost and use.

    Args:
        name: what it is called there. Here and below, a ``\n`` ends a printed line.
        formula: mathtext, one string for each line.
        parameters, learns: how many it learns; the same in plain words for the head of its own page.
        cost: what it adds to a pass.
        longer, later: what happens on texts longer than those of training; the same in a few words.
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
    learns: str = ""
    later: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Method:
    """A method, or several that are explained together.

    The paper, its year and the equations stand in the docstring of the module, or of ``equation``.

    Args:
        names: what builds it, by its names in the registry.
        relative: whether scores stay the same when all positions move; for a RelativeBias this is known.
        compared: whether the lessons' records have it. Until they do, its page shows what needs no training.
        lesson: the notebook that says most about it; methods are listed in the order of these.
        joins: the page of another method that explains it; then everything below is said there.
        page: the address of its page; by default its first name.
        title, says: on its page: what it is called, and what it does, in two or three sentences.
        where: what each letter of the first equation means, for who meets it here for the first time.
        words: what people type into a search.
        code: functions and methods that the page shows.
        make: how it is built for 4 heads of 16 channels, as you would write it.
        see: what the picture of its scores shows, in a sentence, on a page without an explorer.
        year: of the paper; None where it comes from no single paper.
        arxiv: number of the paper.
        equation: the object whose docstring has the formula, if the module's does not.
        formula: the formula itself, where no docstring has it.
        source: the paper and its equation, where the first paragraph of that docstring names none.
        row: its row on the printed page of all methods.
        variants: rows of the scoreboard that combine another method with it.
        papers: its headings in the reading list; without any, the page names the paper.
        live, params: an explorer, and what it starts with.
        glossary: its anchor there.
        claims: a pattern that finds what ``docs/results.md`` says about it.
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
    where: str = ""
    words: tuple[str, ...] = ()
    code: tuple[Callable[..., Any], ...] = ()
    make: str = ""
    see: str = ""
    year: int | None = None
    arxiv: str = ""
    equation: Any = None
    formula: str = ""
    source: str = ""
    row: Row | None = None
    variants: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    live: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    glossary: str = ""
    claims: str = ""
    released: str = ""

    def __post_init__(self) -> None:
        if self.title and not self.page:
            object.__setattr__(self, "page", next(iter(self.names)))

    @property
    def place(self) -> tuple[str, bool, int]:
        """Its place among all methods: in the order of the course, a lesson before its side quests."""
        number = self.lesson.rpartition("/")[2][:2]
        return number, "/" in self.lesson, self.year or 9999
