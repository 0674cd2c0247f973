"""The progress panel: what the reader's log says, notebook by notebook."""

from __future__ import annotations

import html

from . import questions
from .progress import read


class Panel:
    """A table of what the reader has predicted and answered, notebook by notebook."""

    def rows(self) -> list[tuple[str, str, str, str]]:
        """``(notebook, predictions made, questions answered, answered rightly)``."""
        log, rows = read(), []
        for number in questions.notebooks():
            asked = questions.questions(number)
            entries = {kind: [log.get(f"{number}.{kind}.{name}") for name in asked.get(kind, {})]
                       for kind in ("predict", "check")}
            done = {kind: [e for e in found if e and "choice" in e] for kind, found in entries.items()}
            right = sum(bool(e.get("right")) for e in done["check"])
            rows.append((
                asked["title"],
                f"{len(done['predict'])} of {len(entries['predict'])}",
                f"{len(done['check'])} of {len(entries['check'])}",
                f"{right} of {len(done['check'])}" if done["check"] else "–",
            ))
        return rows

    HEAD = ("Notebook", "Predictions made", "Questions answered", "At once right")

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col" style="text-align:left">{name}</th>' for name in self.HEAD)
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{html.escape(c)}</td>' for c in row) + "</tr>"
            for row in self.rows()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        return "\n".join(" | ".join(row) for row in (self.HEAD, *self.rows()))


def progress() -> Panel:
    """The reader's progress panel; run the cell again to refresh it."""
    return Panel()
