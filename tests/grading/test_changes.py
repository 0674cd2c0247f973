"""The steps of docs/instructor/changes.md, in a copy of the course: a lesson less, a coded question more."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from classroom import __main__ as command
from classroom import sandbox

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "instructor" / "changes.md").read_text(encoding="utf-8")
NAME = "ex01_order"
KEEP = shutil.ignore_patterns(".git", ".venv*", ".*cache", "build", "__pycache__", "*.egg-info")
CODE = "def last_two(x):\n    ### BEGIN SOLUTION\n    return x[-2:].mean(0)\n    ### END SOLUTION"
CHECK = "check.last_two(last_two)"
EACH = """
import sys
from classroom import __main__ as command, marking
marking._on_processes = lambda jobs, count: (marking._mark(job) for job in jobs)  # workers import PyTorch
for line in sys.stdin:
    assert command.main(line.split()) == 0, line
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of the course, and a way to run its commands."""
    folder = tmp_path_factory.mktemp("copy") / "course"
    shutil.copytree(ROOT, folder, ignore=KEEP)

    def run(line, lines=""):
        environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}
        where = {"cwd": folder, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run([sys.executable, *line.split()[1:]], input=lines, **where)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return folder, run


def test_a_lesson_less_leaves_no_link_to_it(course):
    folder, run = course
    (leave_out,) = re.findall(r"^python -m workshop.leave_out \d\d$", PAGE, re.M)
    said = run(leave_out)
    assert "notebooks/04_relative.ipynb: " in said and "Next: 05 Hybrid puts" in said
    assert "course/checks/questions/q07.py: " in said, "an exercise that sends its readers there"
    assert "from lesson 05" not in (folder / "notebooks" / "07_alibi.ipynb").read_text(encoding="utf-8")
    pages = [folder / "README.md", *folder.glob("docs/**/*.md"), *folder.glob("*/**/*.ipynb")]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+\.(?:ipynb|md)[^)\s]*)", text)]
        dead = [one for one in targets if "://" not in one and not (path.parent / one).exists()]
        assert not dead, f"{path.relative_to(folder)}: {dead}"
    after = (folder / "notebooks" / "04_relative.ipynb").read_text(encoding="utf-8")
    assert "[06 RoPE →](06_rope.ipynb)" in after and not [*folder.glob("course/**/*05.*")]
    zh = (folder / "workshop" / "locale" / "zh" / "04_relative.po").read_text(encoding="utf-8")
    assert "下一课：05 混合编码把" in zh


def own_cells():
    """The cells of the page's steps, as the toolbar would write them."""
    entries = (
        ("last_two", CODE, {"grade": False, "locked": False, "solution": True}),
        ("check_last_two", CHECK, {"grade": True, "locked": True, "solution": False, "points": 4}),
    )
    yield nbformat.v4.new_markdown_cell("## Our own\n\nWrite `last_two`.", id="a" * 10)
    for name, source, entry in entries:
        new = nbformat.v4.new_code_cell(source, id=(name + "_" * 10)[:10])
        new.metadata["nbgrader"] = {"schema_version": 3, "task": False, "grade_id": name, **entry}
        yield new


@pytest.mark.skipif(bool(sandbox.probe()), reason=sandbox.probe() or "the sandbox works")
def test_a_coded_question_of_their_own_and_what_was_handed_in_before(course, tmp_path, marked_here):
    folder, run = course
    path = folder / "solutions" / NAME / f"{NAME}.ipynb"
    at = f"--root {tmp_path}"

    def hand_in(student, source):
        target = tmp_path / "inbox" / student / path.name
        target.parent.mkdir(parents=True)
        shutil.copy(source, target)
        return target

    hand_in("cyn", path)
    for line in (f"take-in {tmp_path}/inbox {at}", f"grade {NAME} {at}"):  # as the course still is
        assert command.main(line.split()) == 0

    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)  # the page's own question
    with open(folder / "course/checks/questions/q01.py", "a", encoding="utf-8") as file:
        file.write("\n\n" + re.sub("^   ", "", block, flags=re.M))
    notebook = nbformat.read(path, as_version=4)
    notebook.cells += own_cells()
    nbformat.write(notebook, path)
    (release,) = re.findall(r"```sh\n +(.*)\n", re.split("^## ", PAGE, flags=re.M)[3])
    run(release)
    released = nbformat.read(folder / "exercises" / NAME / path.name, as_version=4)
    assert any(cell.source == CHECK for cell in released.cells) and "x[-2:]" not in str(released)
    hand_in("ada", path)
    wrong = hand_in("ben", path)
    wrong.write_text(wrong.read_text().replace("return x[-2:].mean(0)", "return x.mean(0)"))
    (folder / "each.py").write_text(EACH)
    said = run("python each.py", f"take-in {tmp_path}/inbox {at}\ngrade {NAME} {at}\nexport {at}")
    assert "check_last_two came later than the notebook of cyn" in said
    rows = list(csv.DictReader((tmp_path / "exports/grades.csv").open(encoding="utf-8-sig")))
    found = {row["student"]: (row["coded"], row["total"], row["max"], row["to mark"]) for row in rows}
    assert found == {
        "ada": ("22", "22", "24", "2"),
        "ben": ("18", "18", "24", "2"),
        "cyn": ("18", "18", "24", "3"),
    }
    marks = json.loads((tmp_path / "marks" / NAME / "ben.json").read_text(encoding="utf-8"))
    assert marks["questions"]["last_two"]["text"] == "This is the mean of all tokens."
