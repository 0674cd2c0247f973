"""Importing the library is quick and brings nothing that it does not need."""

import statistics
import subprocess
import sys


def output_of(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=True).stdout


def test_the_package_alone_imports_nothing_heavy():
    heavy = output_of("import sys, tutorial_lib; "
                      "print({'torch', 'numpy', 'matplotlib', 'IPython'} & set(sys.modules))")
    assert heavy.strip() == "set()"


def test_the_encodings_cost_at_most_half_a_second_more_than_torch():
    program = ("import time, torch; start = time.perf_counter(); import tutorial_lib.encodings; "
               "print(time.perf_counter() - start)")
    more = statistics.median(float(output_of(program)) for _ in range(3))
    assert more < 0.5, f"{more:.2f} s more than `import torch`"
