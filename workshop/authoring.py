"""Edit a notebook as text, execute it, and store it in one normal form.

    python -m workshop.authoring text 02      # writes notebooks/02_….py, to be edited
    python -m workshop.authoring build 02     # executes it and writes the .ipynb
    python -m workshop.authoring sign         # renews strips, minutes, glossary titles, what questions say
    python -m workshop.authoring pictures     # takes the pictures of live explorers anew
    python -m workshop.authoring check        # which notebooks are not in normal form?
    python -m workshop.authoring release ex06 # writes exercises/ex06_…/ from its solution

``02`` is a notebook of the course, ``ex02`` the solution of its exercise, ``deeper/02_fusion`` a side quest.
The ``.ipynb`` with its outputs is the only form that is committed; the ``.py`` (py:percent) is scratch
paper. ``build`` without a ``.py`` re-executes the notebook as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from unittest import mock

import nbformat

from . import ROOT, exercises, navigation, pictures

NOTEBOOKS = ROOT / "notebooks"
SOLUTIONS = ROOT / "solutions"
CELL_METADATA = ("tags", "jupyter", "nbgrader")
# What a page without a kernel needs: name and settings of an explorer, what was measured for a prediction.
OUTPUT_METADATA = ("live", "measured")
ASKS = re.compile(r'^lesson\.(predict|warm_up|concept_check)\("(.+?)"\)\Z', re.M)  # its result is the cell's
WIDGET = "application/vnd.jupyter.widget-view+json"


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The normal form: executed in order, stable ids, nothing that changes from run to run.

    Live widget views are dropped, since they mean nothing without their kernel: the stored
    picture or text of the same output stays. Raises ValueError, naming the cell, for an error
    output, for anything on stderr, and for a code cell that has not been executed.
    """
    out = nbformat.v4.new_notebook()
    out.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    count, seen = 0, set()
    for n, cell in enumerate(notebook.cells):
        new = nbformat.from_dict(
            {
                "cell_type": cell.cell_type,
                "id": cell.get("id") or "",
                "metadata": {k: cell.metadata[k] for k in CELL_METADATA if cell.metadata.get(k)},
                "source": cell.source.strip("\n"),
            }
        )
        if not re.fullmatch(r"[0-9a-f]{10}", new.id) or new.id in seen:
            new.id = hashlib.sha1(
                f"{len(seen) if cell.source in seen else ''}{cell.source}".encode()
            ).hexdigest()[:10]
        seen |= {new.id, cell.source}
        if cell.cell_type == "code":
            count += 1
            if cell.execution_count is None:
                raise ValueError(f"cell {n} has not been executed: {cell.source[:60]!r}")
            new.execution_count = count
            new.outputs = [_normal_output(output, n, count) for output in _joined(cell.outputs)]
        out.cells.append(new)
    nbformat.validate(out)
    return out


def _normal_output(output, n: int, count: int):
    if output.output_type == "error" or output.get("name") == "stderr":
        raise ValueError(f"cell {n} does not run clean: {output.get('evalue') or output.get('text')}")
    if output.output_type == "stream":
        return nbformat.v4.new_output("stream", name=output.name, text=output.text)
    data = {mime: content for mime, content in sorted(output.data.items()) if mime != WIDGET}
    kept = {name: output.metadata[name] for name in OUTPUT_METADATA if name in output.get("metadata", {})}
    new = nbformat.v4.new_output(output.output_type, data=data, metadata=kept)
    if output.output_type == "execute_result":
        new.execution_count = count
    return new


def _joined(outputs):
    """Consecutive pieces of one stream as one output: where a stream is cut is chance."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if output.output_type == "stream" and last and last.get("name") == output.name:
            last.text += output.text
        else:
            joined.append(nbformat.from_dict(output))
    return joined


def execute(
    notebook: nbformat.NotebookNode,
    folder: Path = NOTEBOOKS,
    environment: Mapping[str, str] = MappingProxyType({}),
    after: Callable[[nbformat.NotebookNode, int], None] = lambda cell, kernel: None,
) -> float:
    """Run all cells in a fresh kernel, without progress bars or a log; returns the seconds.

    It has one thread: sums in another order are other numbers, and editions are to print the same.
    ``environment`` is added to the kernel's; ``after`` gets each cell that ran, and the kernel's pid.
    """
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as scratch:
        own = {"TQDM_DISABLE": "1", "OMP_NUM_THREADS": "1"}
        own["TUTORIAL_PROGRESS"] = str(Path(scratch) / "progress.json")
        start = time.perf_counter()
        # else each kernel warns that it listens on TCP, though only this process talks to it
        client = NotebookClient(
            notebook,
            timeout=600,
            store_widget_state=False,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": str(folder)}},
            on_cell_executed=lambda cell, **_: after(cell, client.km.provisioner.pid),
        )
        client.execute(env={**os.environ, **own, **environment})
        return time.perf_counter() - start


def executed(
    notebook: nbformat.NotebookNode, folder: Path, environment: Mapping[str, str]
) -> nbformat.NotebookNode:
    """The notebook after :func:`execute`, also where that happens in another process."""
    execute(notebook, folder, environment)
    return notebook


def known() -> list[Path]:
    """All notebooks in reading order, then the solutions, then side quests; also what is still only text."""
    quests = NOTEBOOKS.glob(f"{navigation.DEEPER}/[0-9]*_*.*")
    found = [*NOTEBOOKS.glob("[0-9]*_*.*"), *SOLUTIONS.glob("ex*/ex*.*"), *quests]
    return sorted(
        {path.with_suffix(".ipynb") for path in found if path.suffix in (".ipynb", ".py")},
        key=lambda path: (path.parent.name == navigation.DEEPER, path.stem),
    )


def find(name: str) -> Path:
    """The notebook whose file name starts with ``name``; ValueError lists what there is."""
    deeper = Path(name).parent.name == navigation.DEEPER
    for path in known():
        if path.stem.startswith(Path(name).stem) and (not deeper or path.parent.name == navigation.DEEPER):
            return path
    names = ", ".join(path.stem for path in known())
    raise ValueError(f"no notebook starts with {name!r}; there are {names}")


def text(path: Path) -> Path:
    """Write the notebook as py:percent beside itself."""
    import jupytext

    source = path.with_suffix(".py")
    notebook = navigation.unsign(exercises.unmark(nbformat.read(path, as_version=4)))
    jupytext.write(notebook, source, fmt="py:percent")
    return source


def build(path: Path) -> str:
    """Execute and store one notebook; its ``.py``, if there is one, is its new source."""
    import jupytext
    from jupytext.combine import combine_inputs_with_outputs

    source = path.with_suffix(".py")
    if source.exists():
        notebook = jupytext.read(source)
        if path.exists():  # cells that are still there keep their ids
            notebook = combine_inputs_with_outputs(notebook, nbformat.read(path, as_version=4))
    else:
        notebook = nbformat.read(path, as_version=4)
    navigation.sign(exercises.mark(notebook), path)
    seconds = execute(notebook, path.parent)
    notebook = normalise(notebook)
    with contextlib.suppress(RuntimeError):  # without Chromium a line of text stays, and a test says so
        pictures.renew(notebook)
    nbformat.write(notebook, path)
    return (
        f"{path.name}: {seconds:.0f} s, {len(notebook.cells)} cells, "
        f"{navigation.words(notebook)} words of prose"
    )


def sign(path: Path) -> bool:
    """Renew what :mod:`navigation` writes and what questions say, and nothing else; True if it changed."""
    before = path.read_text(encoding="utf-8")
    nbformat.write(normalise(ask(navigation.sign(nbformat.read(path, as_version=4), path))), path)
    return path.read_text(encoding="utf-8") != before


def ask(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Store each question as it is worded now, without running the notebook."""
    from course import lesson

    with tempfile.TemporaryDirectory() as nobody:  # a learner who has answered nothing yet
        with mock.patch.dict(os.environ, TUTORIAL_PROGRESS=str(Path(nobody) / "progress.json")):
            for cell in notebook.cells:
                asked = ASKS.search(cell.source)
                for said in cell.get("outputs", ()) if asked else ():
                    if said.output_type == "execute_result":
                        data, _ = getattr(lesson, asked[1])(asked[2])._repr_mimebundle_()
                        said.data |= {mime: data[mime] for mime in ("text/html", "text/plain")}
    return notebook


def renew(path: Path) -> int:
    """Take the pictures of the live explorers anew, without running the notebook; returns how many."""
    notebook = nbformat.read(path, as_version=4)
    if count := pictures.renew(notebook):
        nbformat.write(notebook, path)
    return count


def check(path: Path) -> str:
    """Empty when the stored notebook is in normal form, else why not."""
    notebook = nbformat.read(path, as_version=4)
    try:
        normal = normalise(notebook)
    except ValueError as problem:
        return str(problem)
    if nbformat.writes(normal) + "\n" != path.read_text(encoding="utf-8"):
        return f"is not in normal form: run `python -m workshop.authoring build {path.stem}`"
    if nbformat.writes(ask(normal)) + "\n" != path.read_text(encoding="utf-8"):
        return "asks something in other words than it stores: run `python -m workshop.authoring sign`"
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.authoring",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("text", "build", "sign", "pictures", "check", "release"))
    parser.add_argument("notebooks", nargs="*", help="their numbers; by default all")
    given = parser.parse_args(arguments)
    try:
        paths = [find(name) for name in given.notebooks] or known()
        if given.command == "release":
            paths = [path for path in paths if path.stem.startswith("ex")]
        if given.command != "build":  # what has not been built yet can only be built
            paths = [path for path in paths if path.exists()]
    except ValueError as problem:
        parser.error(str(problem))
    failed = False
    for path in paths:
        if given.command == "text":
            print(text(path))
        elif given.command == "build":
            print(build(path), flush=True)
        elif given.command == "sign":
            if sign(path):
                print(path.name)
        elif given.command == "pictures":
            if count := renew(path):
                print(f"{path.name}: {count}")
        elif given.command == "release":
            print(*exercises.release([path.stem]))
        elif problem := check(path):
            print(f"{path.name}: {problem}", file=sys.stderr)
            failed = True
    if given.command in ("build", "sign"):  # the guide for teachers gives the minutes, too
        navigation.GUIDE.write_text(navigation.guide(), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
