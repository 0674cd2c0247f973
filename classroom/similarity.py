"""Which submissions resemble each other more than others do: a list for a teacher's eyes, and no proof.

Fingerprints are chosen by winnowing (Schleimer, Wilkerson and Aiken 2003, "Winnowing: Local Algorithms for
Document Fingerprinting", SIGMOD): of the hashes of all runs of `RUN` tokens, the least in each window of
`WINDOW`. Two texts with ``WINDOW + RUN - 1`` equal tokens in a row are sure to share one; fewer than `RUN`
equal tokens share none.
"""

from __future__ import annotations

import itertools
import json
import keyword
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from course import files

from . import assignments
from .intake import MOST_BYTES

RUN = {"code": 12, "words": 5}  # tokens of a run
WINDOW = {"code": 8, "words": 4}
FEWEST = 5  # fingerprints of somebody's own; with fewer, a share says nothing
COMMON = 0.1  # what more than this share of the class have is nobody's own,
COMMON_AT_LEAST = 3  # or, in a small class, more than this many students
ALIKE = 0.5  # the share from which a pair is listed
TOKEN = re.compile(
    r"""(?P<left>\#[^\n]*|[rbfu]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}))
                       |(?P<text>[rbfu]{0,2}(?:"[^"\n]*"|'[^'\n]*'))
                       |(?P<name>\.?[^\W\d]\w*)|(?P<other>\d[\w.]*|\S)""",
    re.S | re.X,
)
COLUMNS = ("student", "other", "code", "words")
CAVEATS = """\
Fingerprints of code (without names, comments and layout) and of written answers. What the notebook gives,
what the solution says and what many have in common is left out. A number is the share of a student's own
fingerprints that the other one has, too: the larger of both directions.

**This is a reason to look, and proves nothing.** Short answers to one question are alike by themselves; pairs
who worked together, as you may have allowed, stand here; and so do two who took the same advice, or asked
the same assistant. Whoever rewrites what they copied does not stand here. Read both notebooks, and talk with
both.
"""


def code_tokens(source: str) -> list[str]:
    """Code without comments and long strings, with all names of its author's own made equal.

    >>> code_tokens("def turn(x):  # my idea\\n    return x.cos() * 2")
    ['def', 'n', '(', 'n', ')', ':', 'return', 'n', '.cos', '(', ')', '*', '2']
    """
    found = []
    for match in TOKEN.finditer(source):
        token, kind = match[0], match.lastgroup
        if kind == "name" and not token.startswith(".") and token not in keyword.kwlist:
            token = "n"
        if kind != "left":
            found.append("s" if kind == "text" else token)
    return found


def word_tokens(text: str) -> list[str]:
    """The words of a text in lower case. A Chinese character is a word.

    >>> word_tokens("The *angles* add up: 王小明")
    ['the', 'angles', 'add', 'up', '王', '小', '明']
    """
    return re.findall(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+", text.lower())


def fingerprints(tokens: Sequence[str], kind: str) -> set[int]:
    """The fingerprints of a text; ``kind`` is "code" or "words"."""
    run, window = RUN[kind], WINDOW[kind]
    hashes = [
        zlib.crc32("\0".join(tokens[n : n + run]).encode("utf-8", "replace"))
        for n in range(len(tokens) - run + 1)
    ]
    return {min(hashes[n : n + window]) for n in range(max(1, len(hashes) - window + 1)) if hashes}


def pairs(prints: Mapping[str, set[int]], known: Iterable[int] = ()) -> dict[tuple[str, str], float]:
    """How alike two students' fingerprints are, 0 to 1, for each pair that shares some.

    ``known`` fingerprints (the notebook's, the solution's) are left out, and so are those that many have.
    """
    count = Counter(itertools.chain.from_iterable(prints.values()))
    many = max(COMMON_AT_LEAST, COMMON * len(prints))
    left_out = {one for one, students in count.items() if students > many} | set(known)
    own = {student: found - left_out for student, found in prints.items()}
    own = {student: found for student, found in own.items() if len(found) >= FEWEST}
    return {
        (a, b): len(own[a] & own[b]) / min(len(own[a]), len(own[b]))
        for a, b in itertools.combinations(sorted(own), 2)
        if own[a] & own[b]
    }


def _answers(notebook: Mapping, given: set[str]) -> Iterator[tuple[str, list[str]]]:
    """``(kind, tokens)`` of each cell that is not as it was ``given``."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if assignments.given_out(cell):
            continue
        if source.strip() and source not in given and cell["cell_type"] in ("code", "markdown"):
            kind = "code" if cell["cell_type"] == "code" else "words"
            yield kind, code_tokens(source) if kind == "code" else word_tokens(source)


def _prints(notebook: Mapping, given: set[str]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {"code": set(), "words": set()}
    for kind, tokens in _answers(notebook, given):
        found[kind] |= fingerprints(tokens, kind)
    return found


def compare(root: Path, assignment: str) -> list[dict]:
    """Pairs that are alike in code or in words, the most alike first; rows with `COLUMNS`."""
    released = json.loads(assignments.path(assignment, "exercises").read_bytes())
    solved = _prints(json.loads(assignments.path(assignment, "solutions").read_bytes()), set())
    blank = _prints(released, set())
    given = {"".join(cell["source"]) for cell in released["cells"]}
    submitted, prints = Path(root) / "submitted", {}
    for path in sorted(submitted.glob(f"*/{assignment}/{assignment}.ipynb")):
        try:
            prints[path.parts[-3]] = _prints(json.loads(files.read(path, MOST_BYTES, submitted)), given)
        except (ValueError, KeyError, TypeError, OSError, RecursionError):
            continue  # not a notebook: `grade` says so
    alike = {
        kind: pairs({student: found[kind] for student, found in prints.items()}, solved[kind] | blank[kind])
        for kind in RUN
    }
    rows = [
        {"student": a, "other": b, **{kind: alike[kind].get((a, b)) for kind in RUN}}
        for a, b in set().union(*alike.values())
        if max(alike[kind].get((a, b), 0.0) for kind in RUN) >= ALIKE
    ]
    return sorted(
        rows, key=lambda row: (-max(row["code"] or 0.0, row["words"] or 0.0), row["student"], row["other"])
    )
