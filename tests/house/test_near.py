"""What a training in a notebook prints is near on every machine; everything else is the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]
TABLE = "from IPython.display import HTML\nHTML('''<td>{}</td>''')"
CASES = [  # tags, what the cell prints, what is stored, whether that passes
    (["trained"], "print('near, none: 0.65, 1.1e-05')", "near, none: 0.74, 1.1e-05\n", True),
    (["trained"], "print('loss 3.1, 24% of 1,024')", "loss 2.9, 27% of 1,024\n", True),
    (["trained"], "print('accuracy 0.65')", "accuracy 0.85\n", False),
    (["trained"], "print('loss 3.1')", "loss -3.1\n", False),
    (["trained"], "print('near, none: 0.65')", "none, near: 0.65\n", False),
    (["trained"], "print('0.65 0.7')", "0.65\n", False),
    ([], "print('near, none: 0.65')", "near, none: 0.66\n", False),
    (["trained"], TABLE.format("0.65"), "<td>0.7</td>", True),
    (["trained"], TABLE.format('<img src="data:,1a" alt="at 2: 3.1">'),
     '<td><img src="data:,7" alt="at 2: 3.0"></td>', True),
    (["trained"], TABLE.format("✔ 0.65"), "<td>✘ 0.65</td>", False),
]


def cell(tags, source, text):
    made = nbformat.v4.new_code_cell(source, metadata={"tags": tags}, execution_count=1)
    if text.startswith("<"):
        plain = "<IPython.core.display.HTML object>"
        made.outputs = [nbformat.v4.new_output("execute_result", {"text/html": text, "text/plain": plain})]
    else:
        made.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return made


def test_only_a_trained_cell_may_print_other_numbers_and_only_near_ones(tmp_path):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    book = nbformat.v4.new_notebook(cells=[cell(*case[:3]) for case in CASES])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, tmp_path / "some.ipynb")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env",
         "-rA", "some.ipynb"], cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    for number, (*_, passes) in enumerate(CASES):
        assert f"{'PASSED' if passes else 'FAILED'} some.ipynb::Cell {number}" in result.stdout, CASES[number]
