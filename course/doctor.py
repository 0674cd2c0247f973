"""What is installed, whether it works, and how to mend it: `python -m course.doctor`.

It needs nothing but the standard library to start, so that it can also say what is missing.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tutorial_lib.device import available_devices

from .setup import environment

LOCK = Path(environment.ROOT, "requirements.lock")
# The commands that mend; `python` alone is right only where the environment is activated.
ACTIVATED = sys.prefix in (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"))
PYTHON = "python" if ACTIVATED else sys.executable
MEND_TORCH = f"{PYTHON} -m pip install -c requirements.lock torch"
MEND_PACKAGES = f"{PYTHON} -m pip install --no-deps -r requirements.lock"
MEND_LOCK = f"{MEND_TORCH} && {MEND_PACKAGES}"  # torch first: it brings its CUDA libraries
MEND_COURSE = f"{PYTHON} -m pip install --no-deps -e ."
MEND_KERNEL = f"{PYTHON} -m ipykernel install --sys-prefix"


@dataclass(frozen=True)
class Check:
    """One part of the environment; ``mend`` is the command to run when it is not ok."""

    part: str
    ok: bool
    detail: str
    mend: str = ""

    def __str__(self) -> str:
        line = f"{'ok' if self.ok else 'problem':8} {self.part:12} {self.detail}"
        return line if self.ok else f"{line}\n{'':21} mend it: {self.mend}"


def read_lock() -> dict[str, str]:
    """Return ``{package: version}`` for those lines of the lock that apply to this platform."""
    from packaging.requirements import Requirement

    lines = [line.split("#")[0] for line in LOCK.read_text(encoding="utf-8").splitlines()]
    pins = [Requirement(line) for line in lines if line.strip()]
    return {
        pin.name: next(iter(pin.specifier)).version
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


def differences() -> dict[str, str | None]:
    """Return ``{package: its version here, or None}`` for every package that differs from the lock.

    A local version such as ``2.13.0+cpu`` counts as ``2.13.0``.
    """
    found = {}
    for name, pinned in read_lock().items():
        try:
            here = metadata.version(name)
        except metadata.PackageNotFoundError:
            here = None
        if here is None or here.split("+")[0] != pinned:
            found[name] = here
    return found


def check_python() -> str:
    environment.check_python(sys.version_info)
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def check_course() -> str:
    return metadata.version("transformer-order")


def check_torch() -> str:
    return importlib.import_module("torch").__version__


def check_device(name: str) -> str:
    import torch

    square = torch.full((2, 2), 2.0, device=name) @ torch.eye(2, device=name)
    if square.tolist() != [[2.0, 2.0], [2.0, 2.0]]:
        raise ArithmeticError(f"a 2×2 matrix product on {name} is wrong")
    kind = torch.cuda.get_device_name(name) if name.startswith("cuda") else name.upper()
    return f"{kind}, computes"


def check_kernel() -> str:
    from jupyter_client.kernelspec import KernelSpecManager

    program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    if os.path.isabs(program) and os.path.normcase(program) != os.path.normcase(sys.executable):
        raise OSError(f"the notebooks would run in another Python: {program}")
    return "python3 runs the notebooks in this Python"


def check_ipywidgets() -> str:
    import ipywidgets

    ipywidgets.IntSlider(value=3)
    return f"{ipywidgets.__version__}, makes a slider"


def check_anywidget() -> str:
    import anywidget

    anywidget.AnyWidget(_esm="export default { render() {} }")
    return f"{metadata.version('anywidget')}, makes a widget"


def check_lock() -> str:
    wrong = differences()
    if wrong:
        pins = read_lock()
        names = ", ".join(f"{name} {here or 'missing'} (lock: {pins[name]})" for name, here in wrong.items())
        raise ValueError(f"{len(wrong)} of {len(pins)} packages are not as pinned: {names}")
    return f"all {len(read_lock())} packages are as pinned in {LOCK.name}"


def check_source(name: str) -> str:
    from tutorial_lib.data.sources import SOURCES

    path = SOURCES[name].path()
    return f"{SOURCES[name].name}, {path.stat().st_size / 1e6:.0f} MB"


def attempt(part: str, mend: str, check: Callable[..., str], *args) -> Check:
    """Run one check; whatever it raises describes the problem."""
    try:
        return Check(part, True, check(*args))
    except Exception as error:  # a broken package may raise anything at import
        said = " ".join(str(error).split()) or type(error).__name__
        return Check(part, False, said, mend)


def report() -> list[Check]:
    """Check every part of the environment and return one `Check` for each."""
    torch = attempt("torch", MEND_TORCH, check_torch)
    devices = available_devices() if torch.ok else []
    return [
        attempt("Python", "install Python 3.11, 3.12 or 3.13", check_python),
        attempt("course", MEND_COURSE, check_course),
        torch,
        *(attempt(f"device {name}", MEND_TORCH, check_device, name) for name in devices),
        attempt("JupyterLab", MEND_PACKAGES, metadata.version, "jupyterlab"),
        attempt("kernel", MEND_KERNEL, check_kernel),
        attempt("ipywidgets", MEND_PACKAGES, check_ipywidgets),
        attempt("anywidget", MEND_PACKAGES, check_anywidget),
        attempt("lock", MEND_LOCK, check_lock),
        *(
            attempt(f"data {name}", MEND_PACKAGES if torch.ok else MEND_TORCH, check_source, name)
            for name in ("kjv", "minilm", "smollm2")
        ),
    ]


def main() -> int:
    checks = report()
    print(*checks, sep="\n")
    problems = sum(not check.ok for check in checks)
    print(f"{problems} to mend, in the course's folder." if problems else "All is well.")
    return 1 if problems else 0


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.exit(main())
