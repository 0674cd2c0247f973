"""Importing the library is quick and brings nothing that it does not need."""

import ast
import importlib.util
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import tutorial_lib

ROOT = Path(__file__).parents[2]


def output_of(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_name_at_the_top_is_looked_up_once():
    """Of the encodings, of the model, and a module."""
    asked = output_of(
        "import tutorial_lib as lib\n"
        "for name in ('ALiBi', 'Transformer', 'attention'): getattr(lib, name)\n"
        "print(*sorted({'ALiBi', 'Transformer', 'attention'} & set(vars(lib))))"
    )
    assert asked.split() == ["ALiBi", "Transformer", "attention"]


def test_the_package_alone_imports_nothing_heavy():
    heavy = output_of(
        "import sys, tutorial_lib; print({'torch', 'numpy', 'matplotlib', 'IPython'} & set(sys.modules))"
    )
    assert heavy.strip() == "set()"


def test_what_notebooks_import_reads_no_grammar():
    """The validator `jsonschema`, which nbformat brings, reads one of addresses: as long as torch takes."""
    assert (
        output_of(
            "import sys, tutorial_lib.explorers; from course import checks, experiments, lesson; "
            "print('jsonschema' in sys.modules)"
        )
        == "False\n"
    )


def guarded(path):
    """The modules that a file imports when it is imported itself: ``{name: the extra that it names}``."""
    found = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        extra = None
        if isinstance(statement, ast.With) and ast.unparse(statement.items[0]).startswith("needs("):
            extra = statement.items[0].context_expr.args[0].value
        for node in statement.body if extra else [statement]:
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0]: extra for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found[node.module.partition(".")[0]] = extra
    return found


def test_what_torch_does_not_bring_is_imported_under_the_name_of_an_extra():
    library = ROOT / "tutorial_lib"
    known = {*sys.stdlib_module_names, "torch"}
    bare = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in library.rglob("*.py")
        for name, extra in guarded(path).items()
        if extra is None and name not in known
    ]
    assert not bare, "put it into `with needs(...)` of tutorial_lib/optional.py"
    assert guarded(library / "training.py")["tqdm"] == "experiments"


def test_a_module_that_needs_no_torch_brings_none_when_it_is_taken_from_the_package():
    program = (
        "import sys; from course import doctor, places; from tutorial_lib import optional; "
        "print('torch' in sys.modules)"
    )
    assert output_of(program).strip() == "False"


def test_the_package_gives_the_names_of_the_encodings_and_the_model():
    names = tutorial_lib.__all__
    assert len(names) == len(set(names)) > 50 and set(names) <= set(dir(tutorial_lib))
    for name in names:
        homes = tutorial_lib.encodings, tutorial_lib.model, tutorial_lib.configs
        assert any(getattr(tutorial_lib, name) is getattr(home, name, None) for home in homes)
        assert importlib.util.find_spec(f"tutorial_lib.{name}") is None, "a module of the same name hides it"
    scope = {}
    exec("from tutorial_lib import *", scope)
    assert set(names) <= set(scope)


def test_a_name_that_it_has_not_is_an_attribute_error():
    for name in ("Rotery", "_rotary", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'tutorial_lib' has no attribute '{name}'"):
            getattr(tutorial_lib, name)


def test_the_encodings_cost_at_most_half_a_second_more_than_torch():
    program = (
        "import time, torch; start = time.process_time(); import tutorial_lib.encodings; "
        "print(time.process_time() - start)"
    )
    more = statistics.median(float(output_of(program)) for _ in range(3))
    assert more < 0.5, f"{more:.2f} s more than `import torch`"


def test_the_course_does_without_what_it_is_compared_with():
    """The public implementations are for the tests alone."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = "|".join(Requirement(text).name.replace("-", "_") for text in extras["peers"])
    imported = re.compile(rf"(?:from|import|import_module\(|__import__\()[\s\\\"']*(?i:{names})\b")
    assert imported.search("from transformers.models import t5")
    files = [
        path
        for room in ("tutorial_lib", "course", "notebooks")
        for path in (ROOT / room).rglob("*.*py*")
        if path.suffix in (".py", ".ipynb")
    ]
    assert len(files) > 30
    assert not [path.name for path in files if imported.search(path.read_text(encoding="utf-8"))]
