"""Written answers: a page to mark them by, and marks from a table into the gradebook."""

import csv
import html
import io
import re

import pytest

from classroom import __main__ as command
from classroom import assignments, reports, written
from classroom.student_version import WRITTEN

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(1)> <div style='position:fixed'>x</div>"


@pytest.fixture
def answered(room):
    for student, why in (("li", "Since the angles add up."), ("bo", HOSTILE)):
        room.send(student, why=why)
        room.marks(student)
    room.merge()
    return room


def table(room) -> list[dict]:
    text = (room.root / "written" / room.name / written.TABLE).read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def fill(room, delimiter=",", **given):
    """Points, or points and a comment, for students; as a spreadsheet stores them."""
    rows = [
        row | dict(zip(("points", "comment"), given.get(row["student"], ()), strict=False))
        for row in table(room)
    ]
    path = room.root / "written" / room.name / written.TABLE
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def test_the_page_shows_rubric_and_answers_side_by_side_and_runs_nothing(answered, monkeypatch):
    sample = {"points": 1, "text": "Because of cosines.", "why": "It names no *reason*."}
    monkeypatch.setattr(written, "samples", lambda question: [sample])
    page, _ = written.write(answered.root, answered.name)
    text = page.read_text()
    assert "<script" not in text and "onerror" not in text and "fixed" not in text
    said = " ".join(re.sub("<[^>]*>", " ", text).split())
    for words in (
        "Because it is so.",
        "A sample worth 1 Because of cosines. It names no reason .",
        "li: – of 2 Since the angles add up.",
        "bo: – of 2",
        "2 answers, 2 to mark",
    ):
        assert words in said, words


@pytest.mark.parametrize(
    "why",
    ["<!-- Hidden words. -->", "[note]: <hidden> 'words'", "<?hidden words ?>", "<![CDATA[hidden words]]>"],
)
def test_words_that_markdown_leaves_out_are_shown_as_typed(answered, why):
    answered.send("li", why=f"Since the angles add up.\n\n{why}", seconds=1_700_000_100)
    answered.marks("li")
    answered.merge()
    page, _ = written.write(answered.root, answered.name)
    text = page.read_text()
    assert f"{html.escape(why)}</pre>" in text and text.count("As it was typed") == 1


def test_marks_go_from_the_table_into_the_gradebook_and_to_the_student(answered, capsys):
    root = str(answered.root)
    assert command.main(["written", answered.name, "--root", root]) == 0
    assert [(row["student"], row["question"], row["points"]) for row in table(answered)] == [
        ("bo", "explain_why", ""),
        ("li", "explain_why", ""),
    ]
    fill(answered, ";", li=("1,5", "=nearly"))
    assert command.main(["written", answered.name, "--root", root, "--enter"]) == 0
    assert "1 marks and comments were entered" in capsys.readouterr().out
    found = answered.grade("li", "explain_why")
    assert found["manual_score"] == 1.5 and not found["needs_manual_grade"]
    assert answered.grade("bo", "explain_why")["needs_manual_grade"]
    assert table(answered)[1]["points"] == "1.5" and table(answered)[1]["comment"] == "'=nearly"
    reports.feedback(answered.root, answered.name)
    page = (answered.root / f"feedback/li/{answered.name}/{answered.name}.html").read_text()
    assert "1.5 of 2 points" in page and "=nearly" in page and "Because it is so." in page
    before = answered.dump()
    assert written.enter(answered.root, answered.name) == []  # nothing new
    assert answered.dump() == before


def test_our_answer_is_shown_once_marking_has_begun(answered):
    """An empty answer needs no mark. Whoever hands one in must not get ours for the next attempt."""
    answered.send("max", why=WRITTEN)
    answered.marks("max")
    answered.merge()

    def shown(student: str) -> bool:
        reports.feedback(answered.root, answered.name)
        page = answered.root / f"feedback/{student}/{answered.name}/{answered.name}.html"
        return "Because it is so." in page.read_text()

    assert not shown("max")
    answered.grade("li", "explain_why", manual_score=1.0, needs_manual_grade=False)
    assert shown("max") and shown("li") and not shown("bo")


@pytest.mark.parametrize("wrong", ["3", "-1", "nan", "much", "1.5.2"])
def test_one_wrong_mark_keeps_all_out(answered, wrong):
    written.write(answered.root, answered.name)
    fill(answered, li=("1",), bo=(wrong,))
    with pytest.raises(ValueError, match=r"line 2 \(bo, explain_why\).*from 0 to 2. Nothing was entered"):
        written.enter(answered.root, answered.name)
    assert answered.grade("li", "explain_why")["manual_score"] is None


def test_a_mark_is_for_the_text_that_was_read(answered):
    written.write(answered.root, answered.name)
    fill(answered, li=("2",))
    answered.send("li", why="Another reason.", seconds=1_700_000_100)
    answered.marks("li")
    answered.merge()
    assert written.enter(answered.root, answered.name) == []
    assert answered.grade("li", "explain_why")["manual_score"] is None


def test_a_text_that_was_replaced_stops_no_other_mark(answered, capsys):
    root = str(answered.root)
    assert command.main(["written", answered.name, "--root", root]) == 0
    fill(answered, li=("2",), bo=("1",))
    answered.send("li", why="Another reason.", seconds=1_700_000_100)
    answered.marks("li")
    answered.merge()
    assert command.main(["written", answered.name, "--root", root, "--enter"]) == 0
    said = capsys.readouterr().out
    assert "li has sent another text for explain_why since; 2 is not entered" in said and "1 marks" in said
    assert answered.grade("bo", "explain_why")["manual_score"] == 1.0
    assert [row["points"] for row in table(answered)] == ["1", ""]
    assert command.main(["written", answered.name, "--root", root]) == 0
    kept = answered.root / "written" / answered.name / "marks.csv.earlier"
    assert ["bo", "li"] == [
        row["student"] for row in csv.DictReader(io.StringIO(kept.read_text("utf-8-sig")))
    ]


def test_marks_in_a_table_are_not_written_over(answered):
    written.write(answered.root, answered.name)
    fill(answered, li=("2",))
    with pytest.raises(ValueError, match="1 marks that are not in the gradebook"):
        written.write(answered.root, answered.name)
    written.enter(answered.root, answered.name)
    assert written.write(answered.root, answered.name)


def test_a_marked_answer_that_changes_is_to_be_marked_again(answered):
    answered.grade("li", "explain_why", manual_score=2.0, needs_manual_grade=False)
    answered.send("li", why="Another reason.", seconds=1_700_000_100)
    answered.marks("li")
    answered.merge()
    page, _ = written.write(answered.root, answered.name)
    assert "an earlier text had 2" in page.read_text() and table(answered)[1]["points"] == ""


@pytest.mark.parametrize("name", assignments.names())
def test_each_question_has_title_rubric_and_samples_that_are_worth_something_else(name):
    found = assignments.written(assignments.path(name))
    assert len(found) == 2
    for key, question in found.items():
        assert "In words: " in question.title and "points" not in question.title
        assert len(question.text) > 50 and "2 points" in question.model and "SOLUTION" not in question.model
        samples = written.samples(key)
        assert samples, key
        for one in samples:
            assert 0 <= one["points"] < 2 and len(one["text"]) > 60 and len(one["why"]) > 30
