"""The list of breakages can be made, and the command that makes them tells red from green."""

import shutil

import pytest

from workshop import breakages
from workshop.breakages import Breakage

LIST = breakages.breakages()
AREAS = {
    "library": tuple(
        f"tutorial_lib/{name}"
        for name in ("encodings/", "attention", "fast_attention", "masks", "model", "training")
    ),
    "checks": ("course/checks/",),
    "grading": ("classroom/",),
    "explorers": ("tutorial_lib/explorers/",),
}


def test_the_list_is_long_and_each_area_has_its_share():
    assert len(LIST) == len({(one.file, one.old) for one in LIST}) >= 60
    for area, starts in AREAS.items():
        assert sum(one.file.startswith(starts) for one in LIST) >= 10, area


@pytest.mark.parametrize("breakage", LIST, ids=lambda one: f"{one.file}:{one.old.strip()[:30]}")
def test_each_can_be_made(breakage):
    assert breakages.problem(breakage) == ""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A course of one function and one test, under the conftest of this one."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copy(breakages.ROOT / "conftest.py", folder)
    (folder / "double.py").write_text("def double(x):\n    y = 2 * x\n    return y\n")
    (folder / "test_double.py").write_text(
        "from double import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
    )
    return folder


def made(old, new):
    return Breakage("double.py", old, new, ("test_double.py",))


def test_a_breakage_that_a_test_notices_is_red_with_its_name(toy, capsys):
    assert breakages.run([made("2 * x", "3 * x")], toy, jobs=1) == []
    assert "test_double.py::test_two" in capsys.readouterr().out


def test_one_that_no_test_notices_is_told_and_the_course_stays_as_it_is(toy, capsys):
    before = (toy / "double.py").read_text()
    survivor, seen = made("2 * x", "x ** 2"), made("return y", "return 0")
    assert breakages.run([survivor, seen], toy, jobs=2) == [survivor]
    assert capsys.readouterr().out.startswith("GREEN double.py: 2 * x  →  x ** 2")
    assert (toy / "double.py").read_text() == before


def test_a_test_that_cannot_be_run_is_no_proof(toy):
    with pytest.raises(RuntimeError, match="pytest ended with 4"):
        breakages.run([made("2 * x", "3 * x")._replace(tests=("test_double.py::test_gone",))], toy, jobs=1)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (made("3 * x", "4 * x"), "stands 0 times"),
        (made("y", "z"), "stands 2 times"),
        (made("2 * x", "2 * x"), "changes nothing"),
        (made("2 * x", "3 * x")._replace(tests=("tests/none.py",)), "there is no tests/none.py"),
    ],
)
def test_what_cannot_be_made_is_refused(toy, wrong, says):
    with pytest.raises(ValueError, match=says):
        breakages.run([wrong], toy)


def test_the_command_ends_with_1_where_one_is_not_noticed(toy, monkeypatch, capsys):
    monkeypatch.setattr(breakages, "run", lambda chosen, jobs: list(chosen)[:1])
    assert breakages.main(["encodings/alibi.py"]) == 1
    assert " breakages turn a test red" in capsys.readouterr().out
    monkeypatch.setattr(breakages, "run", lambda chosen, jobs: [])
    assert breakages.main(["encodings/alibi.py"]) == 0
    with pytest.raises(SystemExit):
        breakages.main(["no such word"])
