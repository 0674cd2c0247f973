"""Every command in the README and in docs/ is executed, each in a copy of the course of its own.

What would take long, or stay open, is executed on less: `LESS` and `ONE_CELL` say on what. What a test cannot
do stands under `NOT_HERE`, with the reason. What a page says to pytest is not run, but finds tests. A command
that is new in a page is executed as it stands there.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PARTS = ("tutorial_lib", "course", "workshop", "classroom")
CHAPTER = "grading.md"  # its blocks need a class: tests/grading/test_chapter.py runs them, in order
PROGRAMS = r"make|python|\.venv/bin/python|jupyter|torchrun|conda|pip|nbgrader"
COMMAND = re.compile(rf"(?:\w+=\S+ )?(?:{PROGRAMS}) \S.*")
# A live run of some experiment that takes seconds, in a folder of the copy.
RUN = "python -m course.experiments run decay --preset live --folder build/trial"

# fmt: off
LESS = {
    "make test": "make test ARGS='tests/lab --collect-only -q -n 0'",
    "make test-all": "make -n test-all",  # as it is: .ci/run
    "python -m pytest tests tutorial_lib course classroom workshop notebooks":
        "python -m pytest tests/house/test_lock.py -n 0",
    "python -m tutorial_lib.conformance rope.py:rotate layout=half base=10000":
        "python -m tutorial_lib.conformance --bugs",  # as it is: tests/conformance/test_command.py
    "python -m tests.conformance.confusion":  # as it is: test_confusion.py
        "python -c 'import tests.conformance.confusion'",
    "make lint": "make -n lint",  # as it is: test_lint.py
    "make zh": "make -n zh",  # as it is: tests/house/test_translation.py
    "make zh ARGS=02": "make -n zh ARGS=02",  # the same, and tests/site
    "make lab LANGUAGE=zh": "make -n lab LANGUAGE=zh",
    'python -m course.certificate "Ada Lovelace"':  # as it is: tests/unit/test_certificate.py
        "python -m course.certificate --help",
    "make quick": "make -n quick",  # the same with fewer tests: `make test` below
    "make quick ARGS=tests/slides": "make -n quick ARGS=tests/slides",
    "make site": "make -n site",  # as it is: tests/site
    "make site STUDENTS=1 SITE_URL=https://example.org/course/ ISSUES_URL=https://github.com/OWNER/NAME/issues/new":
        "make -n site STUDENTS=1",
    "make release": "make -n release",  # as it is, but for what takes long: tests/house/test_release.py
    "make slides": "make -n slides",  # all decks: tests/slides
    "make slides LANGUAGE=zh": "make -n slides LANGUAGE=zh",  # the same
    "python -m workshop.leave_out 05":  # as it is: tests/grading/test_changes.py
        "python -m workshop.leave_out --help",
    "python -m workshop.font NotoSansCJK-Regular.ttc":
        "python -m workshop.font --help",  # the file is Debian's
    "make test-oldest": "make -n test-oldest",
    "make test-oldest TORCH=2.6.0": "make -n test-oldest TORCH=2.6.0",
    'make test-oldest ARGS="tests/unit -x"': "make -n test-oldest ARGS='tests/unit -x'",
    "make lab": "make -n lab",  # as it is: test_lab.py
    'make lab LAB_FLAGS="--front notebook"': "make -n lab",  # what it starts: test_desk.py
    'make lab LAB_FLAGS="--mine ~/my-course"': "make -n lab",  # what it does: test_desk_keeps.py
    "make teach": "make -n teach",
    "make hub": "make -n hub",  # as it is: tests/grading/test_hub.py
    "python -m course.lab": "python -m course.lab --no-browser --allow-root --port=0",
    "python -m course.lab --front notebook": "python -m course.lab --front notebook --help",
    "python -m course.lab --language zh": "python -m course.lab --language zh --help",
    "python -m workshop.translation build zh":  # as it is: tests/house/test_translation.py
        "python -m workshop.translation build zh --help",
    "TUTORIAL_PROGRESS=~/class-a.json make lab":
        "TUTORIAL_PROGRESS=~/class-a.json make lab LAB_FLAGS='--no-browser --allow-root --port=0'",
    "jupyter lab": "jupyter lab --version",
    "make bench": "make bench ARGS='rotary-step --rounds 1 --save one.json'",
    'make bench ARGS="--save results/benchmarks/cpu.json"':
        "make bench ARGS='rotary-step --rounds 1 --save one.json'",
    "make breakages": "make breakages ARGS=sandwich.py",
    "make breakages ARGS=rotary": "make breakages ARGS='rotary --help'",
    "python -m workshop.benchmarks.mistakes NAME": "python -m workshop.benchmarks.mistakes pool_tokens",
    "make site ARGS=02": "make -n site ARGS=02",
    "make site STUDENTS=1": "make -n site STUDENTS=1",  # what it leaves out: tests/site
    "make latency": "make latency ARGS=--help",  # in small: tests/browser/test_browser.py
    "pip install .": "python -m pip install --no-build-isolation .",
    "python -m pip install .": "python -m pip install --no-build-isolation .",
    'python -m pip install ".[experiments]"':  # what comes with the dot alone is installed by the line above
        "python -m pip install --dry-run --no-build-isolation '.[experiments]'",
    "python -m pip install --no-deps -e .": "python -m pip install --no-build-isolation --no-deps -e .",
    "make locale LANGUAGE=zh": "make -n locale LANGUAGE=zh",  # it is `update`; all: test_translation.py
    "python -m workshop.translation update zh": "python -m workshop.translation update zh 02",
    "python -m workshop.translation update zh slides_02": "python -m workshop.translation update zh 02",
    "python -m workshop.authoring pictures":
        "python -m workshop.authoring pictures 07",
    "make notebooks":
        "rm -r notebooks/0[1-9]* notebooks/10* notebooks/deeper && rm -r solutions/* && make notebooks",
    "python -m workshop.benchmarks.notebooks":
        "python -m workshop.benchmarks.notebooks 00 --save one.json",
    "python -m workshop.benchmarks.notebooks 02":
        "python -m workshop.benchmarks.notebooks 00 --save one.json",
    "python -m http.server --directory build/slides --bind 127.0.0.1":
        "python -u -m http.server 0 --directory build --bind 127.0.0.1",
    "python -m workshop.benchmarks.grading":
        "python -m workshop.benchmarks.grading --submissions 2 --workers 1 --save one.json",
    "python -m classroom": "python -m classroom --help",
    "python -m course.experiments run word_order --preset live --folder build/trial": RUN,
    "python -m course.experiments check": "python -m course.experiments check --runs 1 --longest 2",
    "python -m course.experiments run lengths --preset gpu --folder group-1":
        "python -m course.experiments run lengths --preset gpu --folder group-1 --help",
    "torchrun --nproc-per-node 2 -m course.experiments run …":  # two: tests/experiments/test_parallel.py
        RUN.replace("python", "torchrun --nproc-per-node 1"),
}
# fmt: on
# These run notebooks. How is what they show: on notebooks of one cell. What is in them runs in nbval.
ONE_CELL = re.compile(
    r"make notebooks|python -m workshop\.benchmarks\.notebooks.*|python -m \S+\.authoring build.*"
)
NOT_HERE = {
    "conda env create -f environment.yml": "conda is no package; test_lock.py holds the file to the lock",
    "conda activate transformer-order": "conda is no package",
    "nbgrader release_feedback": "needs an exchange; tests/grading/test_collected.py has what it asks for",
    "nbgrader collect": "needs an exchange; tests/grading/test_hub.py has one",
    "nbgrader autograde": "the page says not to",
    ".venv/bin/python -m uv pip install --python .venv/bin/python --torch-backend cpu "
    "-c requirements.lock torch": "needs PyTorch's own index; the page says that it was not tried there",
}
# `make results` runs all of these.
FULL = re.compile(r"python -m course\.experiments run \w+ --preset full")
OURS = re.compile(r"python -m ((?:course|workshop|classroom|tutorial_lib)[\w.]*)(.*)")
STAYS_OPEN = re.compile(r"--port=0|http\.server")
NEEDS_NETWORK = re.compile(r"make lock|pip install")
OFFLINE = r"dns error|NewConnectionError|[Nn]ame resolution|Network is unreachable|No matching distribution"


def commands():
    """All commands, as they stand, without comments and without placeholders in capitals."""
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        kinds = {""} if page.name == CHAPTER else {"", "sh"}
        fenced = re.findall(r"^```(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        blocks = [block for kind, block in fenced if kind in kinds]
        lines = [line.split("  #")[0].strip() for line in "\n".join(blocks).split("\n")]
        spans = re.findall(r"`([^`]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))
        found |= set(filter(COMMAND.fullmatch, (" ".join(each.split()) for each in lines + spans)))
    return sorted(each for each in found if not FULL.fullmatch(each))


def filled(command):
    """With values in the place of the placeholders."""
    for placeholder, value in {"NAME": "decay", "FOLDER": "build/trial"}.items():
        command = re.sub(rf"\b{placeholder}\b", value, command)
    return command


def executed(command):
    """What is executed for ``command``: itself, or the same on less."""
    command = filled(LESS.get(command, command))
    return re.sub(r"^pip ", "python -m pip ", command.replace(".venv/bin/python", "python"))


def arguments(command):
    """What a command says to pytest: ``["tests/unit", "-x"]``; None for a command that says nothing to it."""
    asked = re.match(r"python -m pytest\b(.*)|make test(?:-all)? ARGS=\"(.*)\"$", filled(command))
    given = shlex.split(asked[1] or asked[2] or "") if asked else None
    return (
        given if given is None or any("/" in each for each in given) else [*given, "tests/house", "tests/lab"]
    )


@pytest.fixture
def course(command, tmp_path):
    """A copy of the files of the course, with what git ignores left behind; what only prints needs none."""
    if re.match("make -n |.*--help'?$", executed(command)):
        return ROOT
    listed = (
        subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        .stdout.decode()
        .split("\0")
    )
    compiled = [str(file.relative_to(ROOT)) for part in PARTS for file in (ROOT / part).rglob("*.pyc")]
    for name in filter(None, listed + compiled):  # with their times, by which what is compiled counts
        if (ROOT / name).is_file():
            target = tmp_path / "course" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return tmp_path / "course"


def environment(course, command, home):
    """That of a reader with the course's environment; the set-up itself is tested elsewhere.

    What pip installs goes into an environment of its own, which sees all that is installed in ours.
    """
    programs = [Path(sys.executable).parent]
    if "pip install" in command:
        own = home / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", own], check=True)
        (site,) = own.glob("lib/python*/site-packages")
        (site / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        programs.insert(0, own / "bin")
    return os.environ | {
        "PYTHONPATH": str(course),  # not the course that is installed
        "HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "BROWSER": "true",
        "MAKEFLAGS": f"PYTHON=true VENV={sys.prefix}",  # `true`: it is set up
        "ARGS": "",  # those of the `make test` that runs us are none of theirs
        "PATH": os.pathsep.join(map(str, [*programs, os.environ["PATH"]])),
    }


FORKS = """
import json, os, runpy, signal, sys
import anywidget, matplotlib.pyplot, nbformat, torch
for line in sys.stdin:
    asked = json.loads(line)
    if os.fork():
        status = os.waitstatus_to_exitcode(os.wait()[1])
        print(status, flush=True)
        continue
    signal.alarm(900)
    for number, path in enumerate((os.devnull, asked["log"], asked["log"])):
        os.dup2(os.open(path, os.O_RDWR), number)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path.insert(1, asked["folder"])
    sys.argv[1:] = asked["arguments"]
    runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
    sys.exit()
"""


@pytest.fixture(scope="module")
def forked():
    """``python -m module arguments`` in a fork of a process that holds torch and what else takes seconds."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", FORKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as parent:

        def run(module, arguments, folder, log):
            asked = {"module": module, "arguments": shlex.split(arguments), "folder": str(folder)}
            asked |= {"log": str(log), "environment": environment(folder, module, log.parent)}
            print(json.dumps(asked), file=parent.stdin, flush=True)
            return int(parent.stdout.readline())

        yield run
        parent.stdin.close()


def lines(command, course, home):
    """What a command makes a shell run: of `make`, the lines below its set-up. A ~ needs the shell itself."""
    if not re.match("make (?!-n |setup)[^~]*$", command):
        return [command]
    asked = ["bash", "-c", f"{command} -n"]
    where = {"cwd": course, "env": environment(course, command, home), "check": True}
    printed = subprocess.run(asked, capture_output=True, text=True, **where).stdout
    return [each.strip().removeprefix(f"{sys.prefix}/bin/") for each in printed.splitlines()[1:]]


def opens(command, course, log):
    """Start ``command``, wait until it says where it listens, and stop it."""
    with log.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=course,
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            env=environment(course, command, log.parent),
            start_new_session=True,
        )
    try:
        end = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < end:
            if re.search(r"http://\S+(?:/lab\?token=|:\d+/\) \.\.\.)", log.read_text()):
                return
            time.sleep(0.2)
        raise AssertionError(log.read_text())
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the group of this command alone
        process.wait()


TO_PYTEST = [each for each in commands() if arguments(each) and each not in LESS]
TRIED = {executed(each): each for each in commands() if each not in NOT_HERE and each not in TO_PYTEST}
COLLECT = """
import json, sys, pytest
found = [int(pytest.main([*arguments, "--collect-only", "-qq", "-p", "no:cacheprovider"]))
         for arguments in json.loads(sys.argv[1])]
print(json.dumps(found))
"""


def named(commands):
    ids = [re.sub(r"[^ -~]", "", each)[:90] for each in commands]
    return pytest.mark.parametrize("command", commands, ids=ids)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git clone")
@named([*TRIED.values()])
def test_it_works(command, course, tmp_path, request):
    log = tmp_path / "log"  # a pipe could be held open by a process that stays
    if ONE_CELL.fullmatch(command):
        for path in [*course.glob("notebooks/*.ipynb"), *course.glob("solutions/*/*.ipynb")]:
            notebook = nbformat.read(path, as_version=4)
            notebook.cells = [nbformat.v4.new_markdown_cell("# One"), nbformat.v4.new_code_cell("6 * 7")]
            nbformat.write(notebook, path)
    if STAYS_OPEN.search(executed(command)):
        return opens(executed(command), course, log)
    log.touch()
    ours = [*map(OURS.fullmatch, lines(executed(command), course, tmp_path))]
    if ours and all(ours):
        forked = request.getfixturevalue("forked")
        status = next(filter(None, (forked(*each.groups(), course, log) for each in ours)), 0)
    else:
        with log.open("w") as file:
            status = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", executed(command)],
                cwd=course,
                timeout=900,
                stdout=file,
                stderr=file,
                stdin=subprocess.DEVNULL,
                env=environment(course, command, tmp_path),
            ).returncode
    said = log.read_text()
    if status and NEEDS_NETWORK.search(command) and re.search(OFFLINE, said):
        pytest.skip("there is no network")
    assert status == 0, said


@pytest.fixture(scope="module")
def collected():
    """Pytest's exit status for each of :data:`TO_PYTEST`, found in one process: the imports take the time."""
    given = json.dumps([arguments(each) for each in TO_PYTEST])
    done = subprocess.run([sys.executable, "-c", COLLECT, given], cwd=ROOT, capture_output=True, text=True)
    return dict(zip(TO_PYTEST, json.loads(done.stdout.splitlines()[-1]), strict=True)), done.stdout


@named(TO_PYTEST)
def test_there_are_such_tests(command, collected):
    """They run anyway. Pytest refuses a path that is not there, and says so when no test has a name."""
    status, said = collected
    assert status[command] == 0, said


def test_the_lists_name_commands_that_stand_in_the_pages():
    assert set(LESS) | set(NOT_HERE) <= set(commands())
    assert all(re.split(r"\W+", command)[0] in small for command, small in LESS.items())
    assert len(commands()) > 40
