"""The linter has nothing to say, neither of the code nor of the notebooks."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_ruff_is_content():
    result = subprocess.run([sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise"],
                            cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
