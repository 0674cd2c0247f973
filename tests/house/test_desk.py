"""The learner's working copy: nothing of theirs is lost, and what they left alone follows the course."""

import json
import re
from pathlib import Path

import pytest

from course.lab import __main__ as desk
from course.lab import server, working_copy
from course.lab.working_copy import again, changed, renew
from course.places import ROOT

NOTE = "notebooks/06_rope.ipynb"


def notebook(text):
    return json.dumps(
        {
            "cells": [{"cell_type": "markdown", "id": "one", "metadata": {}, "source": [text]}],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def words(path):
    return "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])


@pytest.fixture
def course(tmp_path):
    folder = tmp_path / "course"
    put(folder / NOTE, notebook("first edition"))
    put(folder / "exercises/ex06_rope/ex06_rope.ipynb", notebook("to do"))
    put(folder / "docs/glossary.md", "terms")
    put(folder / "docs/instructor/answers.md", "answers")
    put(folder / "notebooks/.ipynb_checkpoints/06_rope.ipynb", notebook("an accident"))
    put(folder / "notebooks/06_rope.py", "scratch paper of an author")
    return folder


@pytest.fixture
def mine(course):
    folder = course.parent / "mine"
    assert renew(course, folder) == {}
    return folder


def test_learners_get_what_is_theirs_and_nothing_of_the_teachers(mine):
    given = {path.relative_to(mine).as_posix() for path in mine.rglob("*") if path.is_file()}
    assert given == {NOTE, "exercises/ex06_rope/ex06_rope.ipynb", "docs/glossary.md", ".course/given.json"}


def test_what_nobody_touched_follows_the_course(course, mine):
    put(course / NOTE, notebook("second edition"))
    put(course / "notebooks/10_frontier.ipynb", notebook("new"))
    (course / "docs/glossary.md").unlink()
    assert renew(course, mine) == {} and changed(mine) == []
    assert words(mine / NOTE) == "second edition" and words(mine / "notebooks/10_frontier.ipynb") == "new"
    assert not (mine / "docs/glossary.md").exists()


def test_what_the_learner_changed_stays_and_the_new_version_lies_beside_it(course, mine):
    put(mine / NOTE, notebook("my notes"))
    assert renew(course, mine) == {} and changed(mine) == [NOTE]
    put(course / NOTE, notebook("second edition"))
    assert renew(course, mine) == {NOTE: "notebooks/06_rope.new.ipynb"}
    assert words(mine / NOTE) == "my notes"
    assert words(mine / "notebooks/06_rope.new.ipynb") == "second edition"
    (mine / "notebooks/06_rope.new.ipynb").unlink()
    assert renew(course, mine) == {}, "told once"
    assert words(mine / NOTE) == "my notes" and not (mine / "notebooks/06_rope.new.ipynb").exists()


def test_a_changed_file_that_the_course_drops_stays(course, mine):
    put(mine / "docs/glossary.md", "my terms")
    (course / "docs/glossary.md").unlink()
    assert renew(course, mine) == {} and (mine / "docs/glossary.md").read_text() == "my terms"


def test_a_deleted_file_comes_back_and_a_file_that_was_there_before_is_kept(course, mine):
    (mine / NOTE).unlink()
    renew(course, mine)
    assert words(mine / NOTE) == "first edition"
    other = course.parent / "other"
    put(other / NOTE, notebook("from an earlier year"))
    assert [*renew(course, other)] == [NOTE] and words(other / NOTE) == "from an earlier year"


def test_again_gives_a_fresh_copy_and_keeps_the_old_ones(course, mine):
    for text in ("first try", "second try"):
        put(mine / NOTE, notebook(text))
        name, kept = again(course, mine, "06")
        assert name == NOTE and words(mine / kept) == text and words(mine / NOTE) == "first edition"
    assert again(course, mine, "06") == (NOTE, ""), "nothing of theirs to keep"
    assert sorted(path.name for path in (mine / "notebooks").glob("06*")) == [
        "06_rope.ipynb",
        "06_rope.mine-1.ipynb",
        "06_rope.mine-2.ipynb",
    ]
    assert changed(mine) == []
    assert again(course, mine, "ex06")[0] == "exercises/ex06_rope/ex06_rope.ipynb"
    put(course / "notebooks/deeper/06_xpos.ipynb", notebook("a side quest"))
    assert again(course, mine, "06")[0] == NOTE, "the lesson before its side quests"
    assert again(course, mine, "06_xpos")[0] == "notebooks/deeper/06_xpos.ipynb"


@pytest.mark.parametrize("name", ["", "07", "0x"])
def test_again_says_what_there_is(course, mine, name):
    with pytest.raises(ValueError, match="06_rope, ex06_rope|ex06_rope, 06_rope"):
        again(course, mine, name)


def test_a_notebook_is_given_out_as_jupyterlab_would_write_it(course, mine):
    metadata = json.loads((mine / NOTE).read_text())["metadata"]
    assert metadata["kernelspec"]["display_name"] == "Python 3 (ipykernel)"
    assert metadata["language_info"]["codemirror_mode"] == {"name": "ipython", "version": 3}


def test_notebooks_as_given_out_are_trusted_and_others_are_not(course, mine):
    import nbformat
    from nbformat.sign import NotebookNotary

    put(mine / "exercises/ex06_rope/ex06_rope.ipynb", notebook("from the internet"))
    server.sign(mine)
    trusted = NotebookNotary(data_dir=str(mine / ".course")).check_signature
    assert trusted(nbformat.read(mine / NOTE, as_version=4))
    assert not trusted(nbformat.read(mine / "exercises/ex06_rope/ex06_rope.ipynb", as_version=4))


def test_the_desk_is_laid_once(mine):
    server.lay(mine)
    [layout] = (mine / ".course/workspaces").iterdir()
    stored = json.loads(layout.read_text())["data"]
    assert stored[f"notebook:{working_copy.FIRST}"]["data"]["path"] == working_copy.FIRST
    layout.write_text("the learner's own")
    server.lay(mine)
    assert layout.read_text() == "the learner's own"


def test_all_relative_links_of_the_working_copy_lead_somewhere(tmp_path):
    renew(ROOT, tmp_path)
    broken = []
    for path in [*tmp_path.rglob("*.ipynb"), *tmp_path.rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(((?:\.\./)*[\w./-]+\.(?:ipynb|md|png|pdf))[#)]", text):
            if not (path.parent / link).exists():
                broken.append(f"{path.relative_to(tmp_path)}: {link}")
    assert [one for one in broken if not re.search(r"instructor/|/README\.md$", one)] == []


def test_the_command_line(course, mine, monkeypatch, capsys):
    started = []
    monkeypatch.setattr(desk, "ROOT", course)
    monkeypatch.setattr(desk, "start", lambda line, folder, environment: started.append((line, folder)) or 0)
    put(mine / NOTE, notebook("my notes"))
    put(course / NOTE, notebook("second edition"))
    assert desk.main(["--mine", str(mine), "--no-browser"]) == 0
    line, folder = started[-1]
    assert folder == mine and f"--ServerApp.root_dir={mine}" in line and line[-1] == "--no-browser"
    assert "06_rope.new.ipynb" in capsys.readouterr().out
    assert desk.main(["again", "06", "--mine", str(mine)]) == 0
    assert "Yours is now notebooks/06_rope.mine-1.ipynb" in capsys.readouterr().out
    desk.main(["open", "ex06", "--mine", str(mine)])
    assert [flag for flag in started[-1][0] if "default_url" in flag] == [
        "--LabApp.default_url=/lab/tree/exercises/ex06_rope/ex06_rope.ipynb"
    ]
    desk.main(["teach"])
    assert started[-1][1] == course
    with pytest.raises(SystemExit):
        desk.main(["again", "99", "--mine", str(mine)])
    assert "there are 06_rope" in capsys.readouterr().err


@pytest.mark.parametrize("language, locale", [("zh", "zh_CN"), ("zh_CN", "zh_CN"), ("en", ""), ("xx", "")])
def test_the_menus_are_those_of_the_language_and_the_home_is_left_alone(tmp_path, language, locale):
    assert server.menus(language) == locale
    line = server.command(tmp_path, language=language)
    [folder] = {Path(flag.split("=")[1]) for flag in line if "app_settings_dir" in flag}
    ours = json.loads((folder / "overrides.json").read_text())
    assert ours.pop("@jupyterlab/translation-extension:plugin", {}).get("locale", "") == locale
    assert ours == json.loads((server.HERE / "settings" / "overrides.json").read_text())
    assert (folder == server.HERE / "settings") is (not locale)
    assert not locale or folder.is_relative_to(tmp_path)


@pytest.mark.parametrize("front", ["lab", "notebook"])
def test_nothing_is_kept_outside_the_working_copy(front):
    line = server.command(Path("/somewhere/mine"), front)
    for name in ("user_settings_dir", "workspaces_dir", "NotebookNotary.data_dir"):
        [flag] = [flag for flag in line if name in flag]
        assert flag.split("=")[1].startswith("/somewhere/mine/.course")
