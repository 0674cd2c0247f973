"""What a class's answers say about the questions, and what the course changed."""

import csv
import json

import numpy as np
import pytest

from classroom import __main__ as command
from classroom import items, reports


def verdict(share=1.0, name="", kind="mistake"):
    return {"points": 4 * share, "max": 4.0, "passed": share == 1, "kind": kind, "name": name}


def klass(*rows, state="graded"):
    """Marks of students with the questions a, b, c …"""
    return {
        f"s{n}": {"state": state, "questions": dict(zip("abcdef", row, strict=False))}
        for n, row in enumerate(rows)
    }


def row_of(rows, name, key="question"):
    return next(row for row in rows if row[key] == name)


# ---- questions ----
def test_difficulty_and_discrimination():
    rng = np.random.default_rng(1)
    skill = rng.normal(size=60)
    marks = klass(
        *[
            [
                verdict(float(s > 0)),
                verdict(float(s > 0.5)),
                verdict(float(s < -0.2)),
                verdict(float(rng.random() > 0.5)),
            ]
            for s in skill
        ]
    )
    rows = items.questions(marks)
    assert row_of(rows, "a")["passed"] == pytest.approx((skill > 0).mean())
    shares = np.array([[float(v["passed"]) for v in found["questions"].values()] for found in marks.values()])
    for n, name in enumerate("abcd"):
        rest = shares.sum(1) - shares[:, n]
        expected = np.corrcoef(shares[:, n], rest)[0, 1]
        assert row_of(rows, name)["discrimination"] == pytest.approx(expected)
    assert row_of(rows, "c")["discrimination"] < 0


def test_no_discrimination_of_few_or_of_equals():
    few = klass(*[[verdict(n % 2), verdict(n % 2)] for n in range(items.FEWEST - 1)])
    equal = klass(*[[verdict(1), verdict(n % 2)] for n in range(30)])
    assert items.questions(few)[0]["discrimination"] is None
    assert items.questions(equal)[0]["discrimination"] is None


def test_who_was_not_marked_counts_nowhere():
    marks = klass([verdict(1)], [verdict(0)]) | {"x": {"state": "rejected", "questions": {"a": verdict(0)}}}
    assert items.questions(marks)[0]["answers"] == 2


def test_one_cause_counts_once():
    both = [verdict(0, "the other layout"), verdict(0, "the other layout"), verdict(0, "mean change")]
    one = [verdict(1), verdict(0, "the other layout"), verdict(1)]
    (first, second) = items.beliefs(klass(both, one, [verdict(1)] * 3, [verdict(1)] * 3))
    assert (first["question"], first["students"], first["share"]) == ("a, b", 2, 0.5)
    assert (second["misconception"], second["students"]) == ("mean change", 1)


def test_code_to_be_mended_that_was_left_alone_is_no_mistake_of_anybody():
    assert not items.beliefs(klass([verdict(0, "as it was given")], [verdict(0, "as given")]))


# ---- the reports ----
def test_report_has_written_answers_and_who_is_missing(room):
    (room.root / "roster.csv").write_text("id\nli\nbo\nzoe\n")
    for student in ("li", "bo"):
        room.send(student)
        room.marks(student)
    room.merge()
    room.grade("li", "explain_why", manual_score=1.5, needs_manual_grade=False)
    text = reports.report(room.root, room.name).read_text()
    assert "2 graded, 1 not handed in" in text
    assert "| explain_why | 1 | 1 | 75% |" in text


def test_the_trend_has_a_row_for_each_exercise(room, capsys):
    (room.root / "roster.csv").write_text("id\nli\nbo\n")
    room.marks("li", 2.0, name="swapped")
    other = room.root / "marks" / "ex07_alibi" / "li.json"
    other.parent.mkdir()
    other.write_text(json.dumps({"state": "graded", "questions": {"b": verdict(1)}}))
    assert command.main(["report", room.name, "--root", str(room.root)]) == 0
    assert "trend.md" in capsys.readouterr().out
    with open(room.root / "report" / "trend.csv", encoding="utf-8-sig", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["exercise"], first["not handed in"]) == (room.name, "1")
    assert first["mean share of points"] == "0.5"
    assert (first["most common mistake"], second["mean share of points"]) == ("swapped (answer), 1", "1")


# ---- before and after ----
def log(before, after, unanswered=0):
    """A log with so many right answers before and after; the others are wrong."""
    found = {"06.predict.swap": {"choice": "x"}}
    for when, right in (("before", before), ("after", after)):
        for n, (name, question) in enumerate(list(items.asked().items())[unanswered:]):
            wrong = next(choice for choice in question["choices"] if choice != question["answer"])
            found[f"inventory.{when}.{name}"] = {"choice": question["answer"] if n < right else wrong}
    return found


def collect(folder, logs):
    for n, one in enumerate(logs):
        path = folder / f"s{n}" / "progress.json"
        path.parent.mkdir(parents=True)
        path.write_text(one if isinstance(one, str) else json.dumps(one))
    return folder


def test_gain_of_a_class(tmp_path):
    pairs, left_out = items.logs(
        collect(
            tmp_path / "logs",
            [log(6, 12)] * 6
            + [log(9, 9)] * 6
            + [log(0, 18, unanswered=9), "{", "[]", log(3, 3) | {"inventory.after.decoder": "x"}],
        )
    )
    assert (len(pairs), left_out) == (12, 4)
    found = items.inventory(pairs)
    before, after = 7.5 / 18, 10.5 / 18
    assert found.before == pytest.approx(before)
    assert found.gain == pytest.approx((after - before) / (1 - before))
    assert 0 < found.low < found.gain < found.high < 1


def test_the_interval_is_the_bootstraps():
    """Against the spread of many classes that are drawn from one population."""
    rng = np.random.default_rng(3)
    before = rng.binomial(18, 0.35, 80) / 18
    after = np.clip(before + rng.binomial(18, 0.3, 80) / 18, 0, 1)
    found = items.gain(before, after)
    classes = [rng.integers(0, 80, 80) for _ in range(4000)]
    gains = [(after[c].mean() - before[c].mean()) / (1 - before[c].mean()) for c in classes]
    assert [found.low, found.high] == pytest.approx(np.percentile(gains, [2.5, 97.5]), abs=0.01)


def test_a_gain_of_few_or_of_nothing_is_refused(tmp_path, capsys):
    nine = collect(tmp_path / "nine", [log(6, 12)] * 9)
    assert command.main(["inventory", str(nine), "--root", str(tmp_path)]) == 2
    assert "9 students have answered" in capsys.readouterr().err and not (tmp_path / "report").exists()
    with pytest.raises(ValueError, match="nothing to gain"):
        items.gain([1.0] * 10, [1.0] * 10)
    with pytest.raises(ValueError, match="no .json file"):
        items.logs(tmp_path / "report")


def test_the_inventory_is_a_page_that_names_no_student(tmp_path, capsys):
    logs = collect(tmp_path / "logs", [log(6, 12)] * 12)
    assert command.main(["inventory", str(logs), "--root", str(tmp_path)]) == 0
    text = (tmp_path / "report" / "inventory.md").read_text()
    assert "12 students answered both times; 0 did not" in text and "Normalised gain: 0.50" in text
    assert "| shuffled | 100% | 100% |  |  | 0 |" in text and "s11" not in text
