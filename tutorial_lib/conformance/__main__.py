"""``python -m tutorial_lib.conformance``: the report in a terminal, as JSON, or as JUnit's XML."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

from . import BUGS, GIVEN, check
from .golden import FOLDER

EPILOG = """examples:
  python -m tutorial_lib.conformance rope.py:rotate layout=half base=500000
  python -m tutorial_lib.conformance my.module:make_model()
  python -m tutorial_lib.conformance outputs.json

It ends with 0 if nothing failed, 1 if something did, and 2 if it could not be asked."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tutorial_lib.conformance",
        description="Is my position code right? If not, which known bug is it?",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "given",
        nargs="?",
        help="FILE.py:NAME or MODULE:NAME, with () behind it to call it first; or a file of outputs on the "
        "golden inputs, .json or .safetensors",
    )
    parser.add_argument(
        "declared", nargs="*", metavar="NAME=VALUE", help="what your weights were trained with"
    )
    parser.add_argument("--kind", choices=GIVEN, help="what was given, if its parameters do not tell")
    parser.add_argument("--axes", help="the order of axes that a rotation takes: bhld, blhd, bld or ld")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write it as JUnit's XML, too")
    parser.add_argument("--bugs", action="store_true", help="list the bugs that have a name, and stop")
    parser.add_argument(
        "--golden", type=Path, metavar="FOLDER", help="copy the golden vectors there, and stop"
    )
    options = parser.parse_intermixed_args(arguments)
    if options.bugs:
        print("\n".join(f"{name}: {bug.says}" for name, bug in BUGS.items()))
        return 0
    if options.golden is not None:
        options.golden.mkdir(parents=True, exist_ok=True)
        for path in sorted(FOLDER.iterdir()):
            print(shutil.copy(path, options.golden))
        return 0
    if options.given is None:
        parser.error("say what is to be looked at: FILE.py:NAME, MODULE:NAME or a file of outputs")
    try:
        given = found(options.given)
        declared = dict(map(value_of, options.declared))
        report = check(given, kind=options.kind, axes=options.axes, **declared)
    except (ValueError, TypeError, OSError, ImportError, AttributeError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(report.json() if options.json else report)
    if options.junit is not None:
        options.junit.write_text(report.junit(), encoding="utf-8")
    return 0 if report.ok else 1


def found(text: str) -> Any:
    """What ``FILE.py:NAME``, ``MODULE:NAME`` or the path of outputs means."""
    if Path(text).suffix in (".json", ".safetensors"):
        return text
    place, colon, name = text.rpartition(":")
    if not colon:
        raise ValueError(f"{text!r}: it must be FILE.py:NAME, MODULE:NAME, or a file .json or .safetensors")
    if place.endswith(".py"):
        path = Path(place).resolve()
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None or not path.exists():
            raise ValueError(f"there is no file {place}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(place)
    its = getattr(module, name.removesuffix("()"))
    return its() if name.endswith("()") else its


def value_of(text: str) -> tuple[str, Any]:
    """``base=1e6`` as a name and a value: a literal of Python, or else the text itself."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r}: it must be NAME=VALUE, such as layout=half or base=500000")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


if __name__ == "__main__":
    sys.exit(main())
