"""What the desk shows first: where to go on, and the lessons with what is done of each.

An extension of the Jupyter server that answers ``course/desk``; ``course-desk`` in JupyterLab draws it.
"""

from __future__ import annotations

from pathlib import Path

from tutorial_lib.language import _, _of_notebook, speaking

from ..places import DEEPER
from ..progress import read
from .working_copy import FIRST


def words() -> dict[str, str]:
    """What the page itself says."""
    return {
        "The course": _("The course"),
        "Done": _("Done"),
        "Next": _("Next"),
        "Exercise": _("Exercise"),
    }


def contents(mine: Path) -> dict:
    """``go``: the next place, with its ``file``, ``title`` and ``section``; ``begun``: is anything done yet;
    ``lessons``: each with ``done`` and ``asked`` questions, side quests and exercise; ``words``.
    """
    from ..lesson import resume  # late: it needs ipywidgets, and nobody waits for it at the start

    log = read()
    said, place = resume.next_place(log)
    lessons = []
    for path in resume.notebooks(mine):
        name, number = path.relative_to(mine / "notebooks").as_posix(), path.stem[:2]
        keys = [each.key for each in resume.places() if each.file == name]
        exercise = next((mine / "exercises").glob(f"ex{number}_*/*.ipynb"), None)
        lessons.append(
            {
                "file": f"notebooks/{name}",
                "title": resume.title(path),
                "done": sum("choice" in log.get(key, {}) for key in keys),
                "asked": len(keys),
                "exercise": exercise and exercise.relative_to(mine).as_posix(),
                "quests": [
                    {"file": f"notebooks/{DEEPER}/{quest.name}", "title": _heading(resume.cells(quest))}
                    for quest in resume.quests(mine)
                    if quest.stem[:2] == number
                ],
            }
        )
    go = {"label": said, "file": FIRST, "title": lessons[0]["title"] if lessons else "", "section": ""}
    if place:
        section = _(place.section)
        go |= {"file": f"notebooks/{place.file}", "title": _(place.title), "section": section}
    return {"go": go, "begun": bool(place), "lessons": lessons, "words": words()}


def _heading(cells: list[tuple[str, str]]) -> str:
    """``# 02 · Side quest: words and positions`` is ``Words and positions``."""
    name = cells[0][1].split("\n")[0].replace("：", ":").rpartition(":")[2].strip(" #")
    return name[:1].upper() + name[1:]


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(app) -> None:
    from jupyter_server.base.handlers import APIHandler
    from jupyter_server.utils import url_path_join
    from tornado import web
    from tornado.ioloop import IOLoop

    class Desk(APIHandler):
        @web.authenticated
        async def get(self):
            mine = Path(app.root_dir)

            def found():
                with speaking(_of_notebook(str(mine / FIRST))):  # the copy's language, not the computer's
                    return contents(mine)

            self.finish(await IOLoop.current().run_in_executor(None, found))

    app.web_app.add_handlers(".*$", [(url_path_join(app.base_url, "course", "desk"), Desk)])
