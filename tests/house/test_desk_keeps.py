"""Nothing that a person wrote is lost, under any name and wherever the desk is stopped; the next start mends.

A small course in a clone of its own, whose packages are ours. The desk runs as `python -m
course.lab` runs it, up to where it becomes JupyterLab.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course.lab.working_copy import fitted, served

ROOT = Path(__file__).parents[2]
PACKAGES = "tutorial_lib", "course"
NOTE, QUEST = "notebooks/06_rope.ipynb", "notebooks/deeper/06_xpos.ipynb"
EXERCISE = "exercises/ex06_rope/ex06_rope.ipynb"
OLD, NEW, GLOSSARY = "docs/old.md", "docs/new.md", "docs/glossary.md"
GIVEN = ".course/given.json"

# Every file operation below the clone is counted, and the n-th one stops the desk. Runs are forks of one
# process, because importing the desk takes longer than running it.
STOPPED = """
import errno, json, os, resource, shutil, signal, sys, time
from pathlib import Path
import jupyterlab_server.workspaces_handler, nbformat.sign
from course.lab.__main__ import main

task = json.load(sys.stdin)
clone, how = Path(task["clone"]), task["how"]
mine = clone / "mine"
THROUGH = 99

def writes(event, given):
    if event == "open":
        return isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
    return event in ("os.rename", "os.remove", "os.link", "os.mkdir")

def watched(where):
    seen = 0
    def watch(event, given):
        nonlocal seen
        if event == "os.exec":
            os._exit(THROUGH)
        if not where or not writes(event, given) or not str(given[0]).startswith(str(mine)):
            return
        seen += 1
        if how == "full" and seen >= where:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), given[0])
        if seen != where:
            return
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "interrupted":
            raise KeyboardInterrupt
        if how == "killed while it writes":  # by the system, after twenty bytes
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
    return watch

def desk(where):
    if not (child := os.fork()):
        said = os.open(clone / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1), os.dup2(said, 2)
        sys.argv = ["python -m course.lab"]
        sys.addaudithook(watched(where))
        code = 77
        try:
            code = main(task["arguments"]) or THROUGH
        except SystemExit as end:
            code = end.code
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"status": status, "said": (clone / "said").read_text()}

def laid(source):
    for folder in source.iterdir():
        shutil.rmtree(clone / folder.name, ignore_errors=True)
        shutil.copytree(folder, clone / folder.name)

def found():
    files = {path.relative_to(mine).as_posix(): path for path in mine.rglob("*") if path.is_file()}
    return {name: path.read_bytes().decode() for name, path in files.items()
            if name == ".course/given.json" or not name.startswith(".course/") or name.endswith(".part")}

for where in range(task["first"], 1000, 2):
    laid(Path(task["before"]))
    first = desk(where) | {"found": found()}
    for part in clone.rglob("*.part"):
        os.utime(part, (0, time.time() - 3600))
    laid(Path(task["pulled"]))
    then = desk(0) | {"found": found()}
    print(json.dumps([first, then]), flush=True)
    if first["status"] == THROUGH:
        break
"""
STOPS = {"killed": -signal.SIGKILL, "killed while it writes": -signal.SIGXFSZ, "interrupted": 130, "full": 1}
#: Each operation is stopped by one of two deaths and by one of two exceptions: all four take twice as long.
FIRST = {"killed": 1, "killed while it writes": 2, "interrupted": 2, "full": 1}


def notebook(text):
    cell = {"cell_type": "markdown", "id": "one", "metadata": {}, "source": [text]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def words(text):
    return "".join(json.loads(text)["cells"][0]["source"])


def read(path):
    return words(path.read_text(encoding="utf-8"))


def edition(clone, name):
    for path in (NOTE, QUEST, EXERCISE):
        put(clone / path, notebook(f"{name} edition of {path}"))
    put(clone / GLOSSARY, f"{name} edition of the glossary, which has more than twenty letters")
    put(clone / (OLD if name == "first" else NEW), f"{name} edition of a page of its own")
    (clone / (NEW if name == "first" else OLD)).unlink(missing_ok=True)


def linked(clone):
    for name in PACKAGES:
        (clone / name).symlink_to(ROOT / name)


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "clone"
    put(folder / "pyproject.toml", "")
    linked(folder)
    edition(folder, "first")
    return folder


def python(clone):
    return {"cwd": clone, "env": os.environ | {"PYTHONPATH": str(clone)}}


# One process holds what takes longest to import; each desk is a fork of it.
DESKS = """
import json, os, runpy, sys
import jupyterlab_server.workspaces_handler, nbformat.sign

for line in sys.stdin:
    clone, arguments, log = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1), os.dup2(said, 2)
    os.chdir(clone)
    sys.path.insert(0, clone)
    sys.argv[1:] = arguments
    sys.addaudithook(lambda event, given: event == "os.exec" and os._exit(0))
    runpy.run_module("course.lab", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module", autouse=True)
def desks(tmp_path_factory):
    """What :func:`desk` asks."""
    with subprocess.Popen(
        [sys.executable, "-c", DESKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        desk.process, desk.log = process, tmp_path_factory.mktemp("desks") / "said"
        yield
        process.stdin.close()


def desk(clone, *arguments, before=(), fails=False):
    """`python -m course.lab` to its end, or to where it becomes JupyterLab; returns what the desk says.

    ``before`` is a program that starts it, then a process of its own.
    """
    if before:
        line = [*before, sys.executable, "-m", "course.lab", *arguments]
        line += [] if "again" in arguments else ["--version"]
        done = subprocess.run(line, capture_output=True, text=True, **python(clone))
        status, said = done.returncode, done.stdout + done.stderr
    else:
        print(json.dumps([str(clone), arguments, str(desk.log)]), file=desk.process.stdin, flush=True)
        status, said = int(desk.process.stdout.readline()), desk.log.read_text()
    assert "Traceback" not in said and (status != 0) is fails, said
    return said


def stopped(clone, how, arguments=(), edit=lambda: None, pull=lambda: None):
    """The desk, stopped at a file operation, and started again; at the next but one; and so on.

    Returns pairs: what was said and found after the one, and after the other. ``edit`` is what happened
    before, ``pull`` what happens between.
    """
    folders = {}
    for name, change in (("before", edit), ("pulled", pull)):
        change()
        folders[name] = clone.parent / name
        for folder in ("notebooks", "exercises", "docs", "mine")[: 4 if name == "before" else 3]:
            if (clone / folder).exists():
                shutil.copytree(clone / folder, folders[name] / folder)
    (folders["before"] / "mine").mkdir(exist_ok=True)
    task = {"clone": str(clone), "how": how, "first": FIRST[how], "arguments": arguments} | {
        name: str(folder) for name, folder in folders.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        **python(clone),
    )
    assert done.returncode == 0, done.stderr
    pairs = [json.loads(line) for line in done.stdout.splitlines()]
    *pairs, through = pairs
    assert len(pairs) > 4 and {first["status"] for first, _ in pairs} == {STOPS[how]}
    for first, then in pairs:
        assert "Traceback" not in first["said"] and "Traceback" not in then["said"], first["said"]
        assert not [name for name in then["found"] if name.endswith(".part")], "what a kill leaves"
    return pairs, through


@pytest.mark.parametrize("how", STOPS)
def test_a_first_start_that_was_stopped(clone, how):
    pairs, (_, whole) = stopped(clone, how)
    for _, then in pairs:
        assert "you have changed it" not in then["said"] and then["found"] == whole["found"]


@pytest.mark.parametrize("how, pulled", [*((how, "") for how in STOPS), ("killed", "third")])
def test_an_update_that_was_stopped(clone, how, pulled):
    """Also where the course has moved on before the desk is started once more."""

    def edit():
        desk(clone)
        put(clone / "mine" / EXERCISE, notebook("my answer"))
        edition(clone, "second")

    pairs, (_, whole) = stopped(clone, how, edit=edit, pull=lambda: pulled and edition(clone, pulled))
    for first, then in pairs:
        for found in (first["found"], then["found"]):
            assert words(found[EXERCISE]) == "my answer"
        assert NOTE not in then["said"] and GLOSSARY not in then["said"], "nobody has changed these"
        assert {name: text for name, text in then["found"].items() if name != GIVEN} == {
            name: text for name, text in whole["found"].items() if name != GIVEN
        }
    assert words(whole["found"]["exercises/ex06_rope/ex06_rope.new.ipynb"]).startswith(pulled or "second")


@pytest.mark.parametrize("how", ["killed", "full"])
def test_a_notebook_begun_anew_and_stopped(clone, how):
    def edit():
        desk(clone)
        put(clone / "mine" / EXERCISE, notebook("my answer"))

    pairs, _ = stopped(clone, how, ["again", "ex06"], edit)
    kept = "exercises/ex06_rope/ex06_rope.mine-1.ipynb"
    for first, then in pairs:
        texts = [
            words(text)
            for name, text in first["found"].items()
            if name.startswith(EXERCISE[:-6]) and text.endswith("}")
        ]
        assert "my answer" in texts
        assert words(then["found"][kept]) == "my answer" and "ex06_rope.mine-2" not in str([*then["found"]])
        assert words(then["found"][EXERCISE]).startswith("first edition")


# ---- the course itself ----
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_whole_course_stopped_while_it_is_copied(tmp_path, how):
    mine = tmp_path / "mine"
    line = [sys.executable, "-m", "course.lab", "--mine", str(mine), "--version"]
    with open(tmp_path / "said", "w") as said:
        first = subprocess.Popen(line, stdout=said, stderr=said, **python(ROOT))
        end = time.monotonic() + 60
        while not [*mine.glob("docs/*")] and [*mine.rglob("*.ipynb")] == [] and time.monotonic() < end:
            time.sleep(0.001)
        first.send_signal(how)
        first.wait(60)
    assert first.returncode == (130 if how == signal.SIGINT else -how)
    assert "Traceback" not in (tmp_path / "said").read_text()
    assert "you have changed it" not in desk(ROOT, "--mine", str(mine))
    for name in served(ROOT):
        assert (mine / name).read_bytes() == fitted((ROOT / name).read_bytes(), str(name))


# ---- what an earlier version has left ----
def test_files_cut_short_and_a_record_that_is_none(clone):
    desk(clone)
    mine = clone / "mine"
    whole = {
        path: path.read_bytes()
        for path in (clone / "mine").rglob("*")
        if path.is_file()
        if path.name == "given.json" or ".course" not in path.parts
    }
    for record in ("", '{"notebooks/06_ro', "[]", '{"notebooks/06_rope.ipynb": 1}', None):
        for name, size in ((NOTE, 100), (GLOSSARY, 10), (QUEST, 0)):
            os.truncate(mine / name, size)
        (mine / GIVEN).unlink() if record is None else put(mine / GIVEN, record)
        assert "you have changed it" not in desk(clone)
        assert {path: path.read_bytes() for path in whole} == whole, record


# ---- where nothing can be written ----
def test_a_clone_that_is_read_only_is_one_sentence(clone, tmp_path):
    root = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []
    if root and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and `setpriv` is missing")
    clone.chmod(0o555)
    try:
        said = desk(clone, before=root, fails=True)
        assert said.count("\n") == 1 and str(clone / "mine") in said and "Permission denied" in said
        assert 'make lab LAB_FLAGS="--mine ~/my-course"' in said
        assert "`python -m course.lab --mine ~/my-course`" in said
        assert said == desk(clone, "again", "ex06", before=root, fails=True)
        desk(clone, "--mine", str(tmp_path / "elsewhere"), before=root)
        assert (tmp_path / "elsewhere" / NOTE).exists()
    finally:
        clone.chmod(0o755)


@pytest.mark.parametrize("where", ["", "notebooks", "docs/mine"])
def test_the_clone_itself_is_no_working_copy(clone, where):
    before = {path: path.read_bytes() for path in clone.rglob("*.*") if path.is_file()}
    said = desk(clone, "--mine", str(clone / where), fails=True)
    assert "--mine" in said and "another folder" in said
    assert {path: path.read_bytes() for path in clone.rglob("*.*") if path.is_file()} == before


# ---- what is the learner's ----
SECOND, THIRD = (f"mine/notebooks/06_rope.new{n}.ipynb" for n in ("", "-2"))


def test_who_works_in_the_new_version_keeps_it_too(clone):
    desk(clone)
    put(clone / "mine" / NOTE, notebook("my first notes"))
    edition(clone, "second")
    assert "as 06_rope.new.ipynb." in desk(clone)
    assert read(clone / SECOND).startswith("second edition")
    put(clone / SECOND, notebook("my second notes"))
    edition(clone, "third")
    assert "as 06_rope.new-2.ipynb." in desk(clone)
    assert "you have changed it" not in desk(clone), "told once"
    assert read(clone / THIRD).startswith("third edition")
    edition(clone, "fourth")
    assert "as 06_rope.new-2.ipynb." in desk(clone), "nobody has touched that one"
    assert read(clone / THIRD).startswith("fourth edition")
    assert "Yours is now notebooks/06_rope.mine-1.ipynb" in desk(clone, "again", "06_rope")
    assert read(clone / "mine/notebooks/06_rope.mine-1.ipynb") == "my first notes"
    assert read(clone / SECOND) == "my second notes" and not (clone / THIRD).exists()
    (clone / NOTE).unlink()
    desk(clone)
    assert read(clone / SECOND) == "my second notes" and not (clone / "mine" / NOTE).exists()


def test_who_takes_the_new_version_for_their_own_follows_the_course_again(clone):
    desk(clone)
    for taken in (True, False):
        put(clone / "mine" / NOTE, notebook("my notes"))
        edition(clone, f"second, {taken}")
        desk(clone)
        (clone / SECOND).replace(clone / "mine" / NOTE) if taken else (clone / "mine" / NOTE).unlink()
        edition(clone, f"third, {taken}")
        assert "you have changed it" not in desk(clone)
        assert read(clone / "mine" / NOTE).startswith("third") and not (clone / SECOND).exists()


def test_an_older_version_that_the_learner_has_put_back_is_theirs(clone):
    desk(clone)
    older = (clone / "mine" / NOTE).read_bytes()
    edition(clone, "second")
    desk(clone)
    (clone / "mine" / NOTE).write_bytes(older)
    (clone / "mine" / QUEST).rename(clone / "mine/notebooks/10_frontier.ipynb")
    put(clone / "notebooks/10_frontier.ipynb", notebook("a new lesson"))
    edition(clone, "third")
    assert desk(clone).count("you have changed it") == 2
    assert read(clone / "mine" / NOTE).startswith("first")
    assert read(clone / "mine/notebooks/10_frontier.ipynb").startswith("second edition of " + QUEST)
    assert read(clone / "mine" / QUEST).startswith("third")


def test_a_text_whose_end_the_learner_has_deleted_is_theirs_and_so_is_a_link(clone):
    desk(clone)
    os.truncate(clone / "mine" / GLOSSARY, 20)
    (clone / "mine" / NOTE).unlink()
    (clone / "mine" / NOTE).symlink_to("/a/disk/that/is/not/there.ipynb")
    desk(clone)
    assert (clone / "mine" / GLOSSARY).stat().st_size == 20 and (clone / "mine" / NOTE).is_symlink()


MEANWHILE = """
import sys
from pathlib import Path
from course.lab.__main__ import main

when, path, text, *arguments = sys.argv[1:]

def meanwhile(event, given):
    global when
    if when and event in ("open", "os.link", "os.rename") and when in map(str, given[:2]):
        when = ""
        Path(path).write_text(text)

sys.addaudithook(meanwhile)
sys.exit(main(arguments))
"""


def meanwhile(clone, when, path, text, *arguments):
    """The desk; when it comes to ``when``, somebody else writes ``text`` into ``path``."""
    line = [sys.executable, "-c", MEANWHILE, str(when), str(path), text, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, **python(clone))
    assert done.returncode == 0, done.stderr


def test_what_is_saved_while_the_desk_starts_is_kept(clone):
    desk(clone)
    edition(clone, "second")
    mine, text = clone / "mine", notebook("saved in an open JupyterLab")
    meanwhile(clone, clone / QUEST, mine / QUEST, text, "--version")  # before the desk has looked at it
    assert read(mine / QUEST) == "saved in an open JupyterLab"
    edition(clone, "third")
    meanwhile(clone, mine / EXERCISE, mine / NOTE, text, "--version")  # it has: the exercise is next
    assert read(mine / NOTE) == "saved in an open JupyterLab"


def test_begun_anew_twice_at_the_same_moment(clone):
    desk(clone)
    put(clone / "mine" / NOTE, notebook("my notes"))
    kept = [clone / f"mine/notebooks/06_rope.mine-{n}.ipynb" for n in (1, 2)]
    meanwhile(clone, kept[0], kept[0], notebook("kept by the other"), "again", "06_rope")
    assert [read(path) for path in kept] == ["kept by the other", "my notes"]


def test_the_chinese_copy_while_the_course_is_made_anew(clone):
    """A file that is missing for a while is dropped, and comes back; what the learner wrote stays, and no
    conflict is reported where the course has not changed."""
    chinese = clone / "build" / "zh"
    edition(chinese, "中文版")
    desk(clone, "--language", "zh")
    put(clone / "mine-zh" / NOTE, notebook("我的笔记"))
    missing = (chinese / NOTE).read_bytes()
    (chinese / NOTE).unlink()
    desk(clone, "--language", "zh")
    (chinese / NOTE).write_bytes(missing)
    assert "you have changed it" not in desk(clone, "--language", "zh")
    assert read(clone / "mine-zh" / NOTE) == "我的笔记" and not (clone / "mine").exists()


def test_two_clones_with_one_working_copy(clone, tmp_path):
    mine, other = tmp_path / "shared", tmp_path / "other"
    put(other / "pyproject.toml", "")
    linked(other)
    edition(other, "second")
    desk(clone, "--mine", str(mine))
    put(mine / NOTE, notebook("my notes"))
    for where in (other, clone, other):
        desk(where, "--mine", str(mine))
        assert read(mine / NOTE) == "my notes"
        assert read(mine / QUEST) == read(where / QUEST)
    assert read(mine / "notebooks/06_rope.new.ipynb").startswith("second")


def test_a_notebook_of_the_clone_that_is_none_is_one_sentence(clone):
    put(clone / NOTE, "<<<<<<< HEAD")
    said = desk(clone, fails=True)
    assert f"{NOTE} of the course is not a notebook" in said and "git status" in said


def test_cleaning_up_leaves_the_working_copy_alone(clone):
    """A checkpoint, to which JupyterLab can go back, cannot be made again."""
    shutil.copy(ROOT / "Makefile", clone)
    for name in PACKAGES:
        (clone / name).unlink()
    checkpoint = "notebooks/.ipynb_checkpoints/06_rope-checkpoint.ipynb"
    own = [clone / mine / checkpoint for mine in ("mine", "mine-zh")]
    for path in (*own, clone / checkpoint):
        put(path, notebook("an hour ago"))
    subprocess.run(["make", "clean"], cwd=clone, check=True, capture_output=True)
    assert all(path.exists() for path in own) and not (clone / "notebooks/.ipynb_checkpoints").exists()
