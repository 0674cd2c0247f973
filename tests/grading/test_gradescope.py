"""The autograder for Gradescope, in a folder that is laid out as there: the harness is run as it is."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from classroom import __main__ as command
from classroom import gradescope, sandbox
from workshop import exercises

NAME = "ex06_rope"


@pytest.mark.skipif(bool(sandbox.probe()), reason=sandbox.probe() or "the sandbox works")
def test_the_harness_marks_one_submission(tmp_path):
    assert command.main(["gradescope", NAME, "--root", str(tmp_path)]) == 0
    with zipfile.ZipFile(tmp_path / "exports" / f"autograder-{NAME}.zip") as packed:
        assert packed.getinfo("run_autograder").external_attr >> 16 == 0o755
        packed.extractall(tmp_path / "source")
    assert {"setup.sh", "run_autograder"} <= set(os.listdir(tmp_path / "source"))
    (tmp_path / "submission").mkdir()
    shutil.copy(exercises.path(NAME), tmp_path / "submission" / "homework.ipynb")  # found by its cells
    notebook = json.loads((tmp_path / "submission" / "homework.ipynb").read_text())
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "rope_shift_error":
            cell["source"] = "def rope_shift_error(q, k, angles, shifted):\n    return angles.abs().amax()"
    (tmp_path / "submission" / "homework.ipynb").write_text(json.dumps(notebook))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(tmp_path), "AUTOGRADER": str(tmp_path), "OMP_NUM_THREADS": "1"}
    subprocess.run(["bash", tmp_path / "source" / "run_autograder"], env=environment, check=True)
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    scores = {one["name"]: (one["score"], one["max_score"]) for one in found["tests"]}
    assert scores.pop("rope_shift_error") == (0, 4) and set(scores.values()) == {(4, 4), (2, 2)}
    assert all(one["output"] for one in found["tests"])
    assert [one["name"] for one in found["tests"]][:2] == ["rope_angles", "rope_rotate"], "as in the exercise"
    (tmp_path / "submission" / "homework.ipynb").write_bytes(b"%PDF-1.7")
    said = gradescope.results(tmp_path, NAME, trusted=False)["output"]
    assert "PDF" in said and "tell your teacher" not in said, "the student can mend it"
