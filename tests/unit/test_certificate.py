"""A certificate says what the log says, and shows when somebody has changed it."""

import json

import pytest

from course import certificate
from course.lesson import resume
from course.places import DEEPER


@pytest.fixture
def log():
    """Lesson 00 as a whole, one question of 01, a side quest of 02, and an exercise without its lesson."""
    keys = [place.key for place in resume.places() if not place.file.startswith(DEEPER)]
    quest = next(place.key for place in resume.places() if place.file.startswith(f"{DEEPER}/02"))
    first = next(key for key in keys if key.startswith("01."))
    done = [*(key for key in keys if key.startswith("00.")), first, quest]
    return {key: {"choice": "a"} for key in done} | {"03.exercise.lookup_test": {"passed": True}}


def test_it_counts_lessons_without_their_side_quests(log, tmp_path, capsys):
    rows = {title[:2]: (done, share) for title, done, share in certificate.lessons(log)}
    assert set(rows) == {"00", "01", "03"} and rows["00"][1] == 1 and "exercise 1 of 4" in rows["03"][0]
    assert rows["01"][0].startswith("1 of ") and 0 < rows["01"][1] < 0.2
    (tmp_path / "progress.json").write_text(json.dumps(log))
    made = tmp_path / "one.html"
    line = ["--log", str(tmp_path / "progress.json"), "--out", str(made)]
    assert certificate.main(["Ada <b> & Li", *line]) == 0
    text = made.read_text(encoding="utf-8")
    assert "<h1>Ada &lt;b&gt; &amp; Li</h1>" in text and "has worked through 1 of 11 lessons" in text
    assert certificate.main(["--check", str(made), *line[:2]]) == 0
    assert "by this log" in capsys.readouterr().out
    (tmp_path / "progress.json").write_text(json.dumps({**log, "nothing": {}}))
    assert certificate.main(["--check", str(made), *line[:2]]) == 0, "what is not counted says nothing"
    (tmp_path / "progress.json").write_text("{}")
    assert certificate.main(["--check", str(made), *line[:2]]) == 1
    assert certificate.main(["Ada", *line]) == 2 and certificate.main(["--check", str(tmp_path / "no")]) == 2


def test_a_change_shows(log, tmp_path):
    made, changed = tmp_path / "one.html", tmp_path / "two.html"
    made.write_text(certificate.own("Ada", log), encoding="utf-8")
    assert certificate.altered(made) == []
    text = made.read_text(encoding="utf-8")
    row = certificate.shown(certificate.stored(made)[0], "")[4]
    for old, new in (
        ("<h1>Ada", "<h1>Eve"),  # what is shown
        ('"name": "Ada"', '"name": "Eve"'),  # what it is made of
        ("1 of 11", "11 of 11"),
        (row, row + row.replace("00 ", "10 ")),  # a lesson more
        ("A19 19 0 0", "A19 19 0 1"),  # a hand that has turned on
    ):
        assert old in text
        changed.write_text(text.replace(old, new), encoding="utf-8")
        assert certificate.altered(changed), (old, new)
    assert certificate.altered(made, key="the class's"), "without its secret nobody makes one of a class"
    changed.write_text("<h1>Ada</h1>")
    with pytest.raises(ValueError, match="no certificate of this course"):
        certificate.altered(changed)
