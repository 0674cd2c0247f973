"""A silent skip cannot pass for a test where all have to run (SKIPS_FAIL, set by .ci/run)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
def test_runs(): pass
def test_skips(): pytest.skip("no reason")
@pytest.mark.gpu
def test_gpu(): pytest.skip("no GPU")
@pytest.mark.xfail
def test_xfails(): assert False
"""


@pytest.mark.parametrize(
    ("variable", "counts"),
    [("", "1 passed, 3 skipped, 1 xfailed"), ("1", "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error")],
)
def test_a_skip_fails_where_every_test_has_to_run(tmp_path, variable, counts):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module')")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"SKIPS_FAIL": variable},
    )
    assert result.returncode == (1 if variable else 0)
    assert counts in result.stdout
    assert not variable or "Skipped where every test has to run" in result.stdout
