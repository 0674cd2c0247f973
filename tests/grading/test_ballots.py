"""Votes in the inbox: beside homework or alone, under any platform's names; none of them is a submission."""

import io
import json
import os
import re
import unicodedata
import zipfile

import pytest

from classroom import __main__ as command
from classroom import intake
from course.lesson import votes

KEY = "06.layout"
NAMES = ["ex06_rope"]


def vote(choice="same", n=1, code=0, right=None):
    return {
        "question": KEY,
        "vote": n,
        "choice": choice,
        "right": right,
        "version": "1",
        "code": f"{code:016x}",
    }


def put(path, one, seconds=1_700_000_000):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(one if isinstance(one, str) else json.dumps(one))
    os.utime(path, (seconds, seconds))


@pytest.fixture
def inbox(tmp_path):
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def kept(root):
    return votes.gather(KEY, root / "votes").times


def test_every_layout_of_the_inbox_is_read(inbox, tmp_path):
    named = [votes.name_of(vote(code=code)) for code in range(6)]
    put(inbox / "ada" / "votes" / named[0], vote(code=0))
    put(inbox / f"fischerlena_LATE_48213_119_{named[1].removesuffix('.json')}-1.json", vote(code=1))
    put(inbox / "Zoe Muller_5530121_assignsubmission_file" / named[2], vote(code=2))
    put(inbox / f"ben_{named[3]}", vote(code=3))
    put(inbox / named[4], vote(code=4))
    with zipfile.ZipFile(inbox / "eve.zip", "w") as packed:
        packed.writestr(f"votes/{named[5]}", json.dumps(vote(code=5)))
    assert intake.take_in_votes(inbox, tmp_path) == (6, 0)
    assert len(kept(tmp_path)[1]) == 6 and "ada" not in "".join(os.listdir(tmp_path / "votes"))
    assert intake.take_in(inbox, tmp_path, NAMES) == [], "votes are no submissions"
    assert intake.take_in_votes(inbox, tmp_path) == (6, 0) and len(kept(tmp_path)[1]) == 6, "again: the same"


def test_one_sender_has_one_vote_whatever_they_send(inbox, tmp_path):
    for code in range(9):
        choice = "error" if code else "between"
        put(inbox / "ada" / votes.name_of(vote(code=code)), vote(choice, code=code), 1_700_000_000 - code)
    put(inbox / "ada" / "again" / votes.name_of(vote(n=2, code=3)), vote(n=2, code=3))
    assert intake.take_in_votes(inbox, tmp_path) == (2, 0)
    assert [one["choice"] for one in kept(tmp_path)[1].values()] == ["between"], "the newest"


@pytest.mark.parametrize(
    "name",
    [
        "शर्माप्रिया_48301_{n}_{vote}",
        "müllerzoë_48213_{n}_{vote}",
        "Zoë_{vote}",
        "Zoë/{vote}",
        "li_na_{n}_assignsubmission_file/{vote}",
    ],
)
def test_one_sender_is_one_in_every_script(inbox, tmp_path, capsys, name):
    for n, form in enumerate(("NFC", "NFD")):
        sent = name.format(n=n, vote=votes.name_of(vote(code=n)))
        put(inbox / unicodedata.normalize(form, sent), vote(["same", "error"][n], code=n), 1_700_000_000 + n)
    assert command.main(["take-in", "--root", str(tmp_path), str(inbox)]) == 0
    assert "1 votes" in capsys.readouterr().out
    assert [one["choice"] for one in kept(tmp_path)[1].values()] == ["error"]


def test_what_only_looks_like_a_vote_is_counted_and_stops_nobody(inbox, tmp_path):
    names = [votes.name_of(vote(code=code)) for code in range(7)]
    put(inbox / "ada" / names[0], vote(code=0))
    put(inbox / "bob" / names[1], "{")
    put(inbox / "bob" / names[2], "[" * 1900)
    put(inbox / "bob" / names[3], " " * 9000)
    put(inbox / "bob" / names[4], vote(code=4) | {"name": "Bob"})
    (inbox / "bob" / names[5]).symlink_to(inbox / "ada" / names[0])
    os.mkfifo(inbox / "bob" / names[6])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(names[1], b" " * 10_000_000)
    (inbox / "carl.zip").write_bytes(buffer.getvalue())
    (inbox / "dora.zip").write_bytes(buffer.getvalue()[:-40])
    assert intake.take_in_votes(inbox, tmp_path) == (1, 5)
    assert [one.student for one in intake.take_in(inbox, tmp_path, NAMES)] == ["dora"], "a broken zip file"


def test_homework_beside_votes_is_taken_in_as_ever(inbox, tmp_path):
    put(inbox / "ada" / "ex06_rope" / "votes" / votes.name_of(vote()), vote())
    notebook = {
        "cells": [
            {
                "cell_type": "code",
                "id": "a",
                "source": "1",
                "metadata": {},
                "outputs": [],
                "execution_count": None,
            }
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    put(inbox / "ada" / "ex06_rope" / "ex06_rope.ipynb", notebook)
    (inbox / "bob").mkdir()
    taken = intake.take_in(inbox, tmp_path, NAMES)
    assert [(one.student, one.state) for one in taken] == [("ada", "taken"), ("bob", "rejected")]
    assert taken[0].reason == ""


def test_the_report_has_both_votes_and_no_names(inbox, tmp_path, capsys):
    for code in range(8):
        for n, choice in ((1, "error"), (2, "between" if code < 6 else "error")):
            put(
                inbox / f"student{code}" / votes.name_of(vote(n=n, code=code)),
                vote(choice, n, code, right=choice == "between"),
            )
    assert command.main(["take-in", str(inbox), "--root", str(tmp_path)]) == 0
    assert "16 votes, and 0 files that only look like one" in capsys.readouterr().out
    text = (tmp_path / "report" / "votes.md").read_text(encoding="utf-8")
    assert "| An error: something doesn't fit. | 8 | 2 |" in text and "student" not in text
    assert "Voted twice: 8; changed their answer: 6." in text
    assert "first vote, of those who ran the measurement before they shared: 0 of 8." in text
    assert "second vote, of those who ran the measurement before they shared: 6 of 8." in text


def test_the_report_hides_what_few_have_said(inbox, tmp_path):
    for code in range(4):
        put(inbox / f"s{code}" / votes.name_of(vote(code=code)), vote("error", code=code, right=False))
    design = vote([8, 4, 50, 0, 0, 0, 1, 0.47]) | {"question": votes.BOARD}
    put(inbox / "s0" / votes.name_of(design), design)
    assert command.main(["take-in", str(inbox), "--root", str(tmp_path)]) == 0
    text = (tmp_path / "report" / "votes.md").read_text(encoding="utf-8")
    assert "## 10.two_clocks" in text and "| 8/4/50 0/0/0: 1.00, 0.47 | – | – |" in text
    assert "| An error: something doesn't fit. | – | – |" in text and not re.search(r"\d of 4\b", text)


def kept_now(inbox, root) -> int:
    """How many first votes there are after the teacher's command."""
    assert command.main(["take-in", str(inbox), "--root", str(root)]) == 0
    return len(kept(root)[1])


def test_a_student_counts_once_whatever_code_and_whichever_way(inbox, tmp_path):
    """Also in a later run, with a new code, when the first inbox is gone."""
    (tmp_path / "roster.csv").write_text("id,name,canvas_id\nada,Ada Lovelace,48213\n")
    ways = ["ada/{}", "ada_{}", "lovelaceada_48213_77_{}", "Ada Lovelace_55_assignsubmission_file/{}"]
    for code, way in enumerate(ways):
        put(inbox / way.format(votes.name_of(vote(code=code))), vote(code=code), 1_700_000_000 + code)
    with zipfile.ZipFile(inbox / "ex06_rope_ada.zip", "w") as packed:
        packed.writestr(votes.name_of(vote(code=9)), json.dumps(vote(code=9)))
    assert kept_now(inbox, tmp_path) == 1
    later = tmp_path / "later"
    put(later / "ada" / votes.name_of(vote(code=10)), vote("error", code=10))
    assert kept_now(later, tmp_path) == 1
    assert [one["choice"] for one in kept(tmp_path)[1].values()] == ["error"]


@pytest.mark.parametrize("way", ["packed", "unpacked"])
def test_the_votes_in_the_archive_of_a_class_are_each_ones_own(inbox, tmp_path, way):
    name = "{}_{}_1_" + votes.name_of(vote(code=7))
    names = [name.format("fischerlena", 48213), name.format("mullerzoe", 48214)]
    if way == "unpacked":
        for one in names:
            put(inbox / "course-ex06 submissions" / one, vote(code=7))
    else:
        with zipfile.ZipFile(inbox / "course-ex06_submissions.zip", "w") as packed:
            for one in names:
                packed.writestr(one, json.dumps(vote(code=7)))
    assert kept_now(inbox, tmp_path) == 2


def test_two_students_with_one_code_are_two(inbox, tmp_path):
    for student in ("ada", "ben"):
        put(inbox / student / votes.name_of(vote(code=7)), vote(code=7))
    assert kept_now(inbox, tmp_path) == 2


def test_both_votes_of_a_student_go_together(inbox, tmp_path):
    for n in (1, 2):
        put(inbox / "ada" / votes.name_of(vote(n=n, code=n)), vote(n=n, code=n))
    assert kept_now(inbox, tmp_path) == 1
    first, second = kept(tmp_path).values()
    assert set(first) == set(second) and not {"0" * 15 + "1", "0" * 15 + "2"} & set(first)
