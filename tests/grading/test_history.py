"""Each change of a mark has who, when and why, whoever made it; an appeal has an answer."""

import csv

import pytest

from classroom import __main__ as command
from classroom import history, people


@pytest.fixture
def marked(room, monkeypatch):
    """ada and ben have 3 of 4 points in the coded question; the change log has begun."""
    monkeypatch.setenv("JUPYTERHUB_USER", "kim")
    for student in ("ada", "ben"):
        room.send(student)
        room.marks(student)
    room.merge()
    assert run(room, "export") == 0 and not (room.root / history.FILE).exists()
    return room


def run(room, *arguments):
    return command.main([*arguments, "--root", str(room.root)])


def changes(room):
    with open(room.root / history.FILE, encoding="utf-8", newline="") as file:
        return [tuple(row.values()) for row in csv.DictReader(file)]


def test_an_appeal_changes_one_mark_and_is_answered_on_the_page(marked, capsys):
    asked = ["appeal", marked.name, "ada", "answer"]
    assert (
        run(marked, *asked, "--says", "Mine is\nright!", "--answer", "It is: $x + 41$.", "--points", "4") == 0
    )
    assert "ada, answer: 3 → 4." in capsys.readouterr().out
    marked.merge()  # what a person gave stays
    assert run(marked, "feedback", marked.name) == 0
    page = (marked.root / f"feedback/ada/{marked.name}/{marked.name}.html").read_text()
    assert "answer: 4 of 4 points" in page and "<blockquote>" in page and "Mine is" in page
    assert "data:image/" in page  # the formula of the answer
    assert run(marked, *asked, "--answer", "As I said.") == 0  # nothing changes, and the first answer stays
    ((when, *row),) = changes(marked)
    why = f"appeal {marked.name} ada answer --says 'Mine is\nright!' --answer 'It is: $x + 41$.' --points 4"
    assert row == ["kim", "ada", marked.name, "answer", "3", "4", why] and when[:2] == "20"
    for wrong, words in (
        (["appeal", marked.name, "eve", "answer", "--answer", "x"], "'eve' has handed in no"),
        (["appeal", marked.name, "ada", "what", "--answer", "x"], "there are answer, explain_why"),
        ([*asked, "--answer", "x", "--points", "5"], "5 is no number from 0 to 4"),
    ):
        assert run(marked, *wrong) == 2 and words in capsys.readouterr().err
    assert len(changes(marked)) == 1


def test_what_was_changed_in_formgrader_is_noted_and_a_student_can_be_forgotten(marked):
    marked.grade("ada", "explain_why", manual_score=1.5, needs_manual_grade=False)
    marked.grade("ben", "check_answer", manual_score=2.0)
    marked.merge(due="2023-11-14T22:13:19+00:00", rules=history.gradebook.Rules(late_per_day=0.1))
    assert run(marked, "export") == 0 and run(marked, "export") == 0
    rows = {row[2:7] for row in changes(marked)}
    one = marked.name
    assert rows == {
        ("ada", one, "explain_why", "", "1.5"),
        ("ben", one, "answer", "3", "2"),
        ("ada", one, history.LATE, "0", "-0.6"),
        ("ben", one, history.LATE, "0", "-0.6"),
    }
    assert {row[7] for row in changes(marked)} == {history.ELSEWHERE}
    people.forget(marked.root, "ada", do=True)
    assert {row[2] for row in changes(marked)} == {"ben"}
    assert "ada" not in (marked.root / "marks" / ".last.json").read_text()
