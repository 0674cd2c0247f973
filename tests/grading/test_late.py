"""Late days and extensions are days of the calendar: by the commands, in the nights when clocks change."""

import csv
import datetime
import os
import time

import pytest

from classroom import __main__ as command
from classroom import assignments, clock, marking, rules

NAME = "ex06_rope"
OCTOBER, MARCH = "2023-10-28T18:00", "2023-03-25T18:00"  # the day that follows has 25 hours, or 23, in Berlin
SENT = {  # the next day
    "ann": "2023-10-29T17:59+01:00",
    "ben": "2023-10-29T18:01+01:00",
    "eva": "2023-03-26T17:59+02:00",
    "leo": "2023-03-26T18:01+02:00",
}


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """A class folder of four students, whose empty notebooks are marked already."""
    root = tmp_path_factory.mktemp("class")
    for student, sent in SENT.items():
        path = root / "inbox" / student / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(assignments.path(NAME, "exercises").read_bytes())
        os.utime(path, (datetime.datetime.fromisoformat(sent).timestamp(),) * 2)
    assert command.main(["take-in", str(root / "inbox"), "--root", str(root)]) == 0
    data = (root / "submitted" / "ann" / NAME / f"{NAME}.ipynb").read_bytes()
    marks = marking.mark(data, NAME, "ann", marking.secret_of(root), trusted=True)
    for student in SENT:  # the same notebook
        marking._store(root, marks | {"student": student}, aside=False)
    return root


@pytest.fixture
def days(marked, monkeypatch):
    """Grade with these options; the days that each student pays for, at a tenth of 20 points a day."""

    def machine(zone):
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    def grade(*options, zone="Europe/Berlin"):
        machine(zone)
        root = ["--root", str(marked)]
        assert command.main(["grade", NAME, *root, "--trusted", "--late-per-day", "0.1", *options]) == 0
        assert command.main(["export", *root]) == 0
        with open(marked / "exports" / "grades.csv", encoding="utf-8-sig", newline="") as file:
            return {row["student"]: float(row["late penalty"]) / 2 for row in csv.DictReader(file)}

    yield grade
    grade(*(word for student in SENT for word in ("--extend", student, "0")))
    monkeypatch.undo()
    time.tzset()
    for kept in (marked / "marks" / NAME / ".rules", marked / "marks" / ".zone"):
        kept.unlink(missing_ok=True)


def test_a_day_ends_at_the_same_time_of_day(days):
    autumn, spring = days("--due", OCTOBER), days("--due", MARCH)
    assert (autumn["ann"], autumn["ben"]) == (1, 2)
    assert (spring["eva"], spring["leo"]) == (1, 2)
    autumn = days("--due", OCTOBER, "--part-of-day", "share")
    assert autumn["ann"] == pytest.approx(1 - 1 / (25 * 60), abs=0.005)
    autumn = days("--due", OCTOBER, "--part-of-day", "none")
    assert (autumn["ann"], autumn["ben"]) == (0, 1)


def test_an_extension_of_a_day_reaches_the_same_time_of_day(days):
    for due, early, late in ((OCTOBER, "ann", "ben"), (MARCH, "eva", "leo")):
        found = days("--due", due, "--extend", early, "1d", "--extend", late, "1d")
        assert (found[early], found[late]) == (0, 1), due
    assert days("--due", OCTOBER, "--extend", "ann", "24h")["ann"] == 1  # hours are hours
    assert days("--due", OCTOBER, "--extend", "ann", "25h")["ann"] == 0


def test_an_extension_of_the_class_list_does_so_too(days, marked):
    (marked / "roster.csv").write_text("id,extension\nann,1d\nben,1d\n")
    found = days("--due", OCTOBER)
    (marked / "roster.csv").unlink()
    assert (found["ann"], found["ben"]) == (0, 1)


def test_the_class_has_a_zone_of_its_own(days, marked, capsys):
    """A server in UTC marks a class in Berlin; the zone is kept, and a preview keeps nothing."""
    zone = ("--zone", "Europe/Berlin")
    days(*zone, "--due", MARCH, "--preview", zone="UTC")
    assert not (marked / "marks" / ".zone").exists()
    found = days(*zone, "--due", OCTOBER, zone="UTC")
    assert (found["ann"], found["ben"]) == (1, 2)
    found = days("--due", MARCH, zone="America/New_York")
    assert (found["eva"], found["leo"]) == (1, 2)
    for wrong in ("Berlin", "Europe", "../etc", "CET+x"):
        with pytest.raises(SystemExit):
            days("--zone", wrong)
        assert f"{wrong!r} is no time zone: write it like Europe/Berlin" in capsys.readouterr().err


def test_a_due_time_with_a_zone_of_its_own_keeps_it(days):
    found = days("--due", f"{OCTOBER}+02:00", "--zone", "Europe/Berlin", zone="UTC")
    assert (found["ann"], found["ben"]) == (1, 2)


def test_what_was_kept_in_seconds_is_days(tmp_path):
    path = tmp_path / "marks" / NAME / ".rules"
    path.parent.mkdir(parents=True)
    path.write_text(
        '{"dropped": [], "extensions": {"ann": 86400.0, "ben": 129600.0, "eva": 0.0}, '
        '"given": [], "late_per_day": 0.1, "part_of_day": "whole"}'
    )
    kept = rules.load(tmp_path, NAME)
    assert kept.extensions == {"ann": "1d", "ben": "36h", "eva": "0h"}
    rules.save(tmp_path, NAME, kept)
    assert rules.load(tmp_path, NAME) == kept


@pytest.mark.parametrize("text", ["soon", "3", "-1d", "1w", "99999999999d", "1e3d", ""])
def test_a_length_of_time_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="3d for three days"):
        clock.length(text)


def test_a_moment_that_comes_twice_or_never():
    """Due at 02:30 on the day when that comes twice, and the day before it is left out."""
    zone = clock.zone("Europe/Berlin")
    due = datetime.datetime(2023, 10, 29, 1, 30)  # the second 02:30, in UTC
    assert clock.later(due, 0, zone) == due
    assert clock.days(due, due, zone) == 0 and 0 < clock.days(due, due + clock.SECOND, zone) < 0.001
    due = datetime.datetime(2023, 3, 25, 1, 30)
    assert clock.later(due, 1, zone) == datetime.datetime(2023, 3, 26, 1, 30)
    assert clock.days(due, datetime.datetime(2023, 3, 27, 0, 30), zone) == 2


def test_what_was_understood_is_said_in_words_with_its_zone(days, marked, capsys):
    days("--due", "2023-10-29", zone="Europe/Berlin")
    said = capsys.readouterr().out
    assert f"{NAME} is due on Sunday, 29 October 2023, 00:00 (the zone of this machine, UTC+02:00)" in said
    assert "the first minute of the day" in said
    days("--due", OCTOBER, "--zone", "America/New_York")
    said = capsys.readouterr().out
    assert "Saturday, 28 October 2023, 18:00 (America/New_York, UTC-04:00).\n" in said


@pytest.mark.parametrize("due", ["0001-01-01", "9999-12-31T23:00", "2023-02-30", "1e9"])
def test_a_date_of_no_use_is_refused_in_words(days, due, capsys):
    with pytest.raises(SystemExit):
        days("--due", due, "--extend", "ann", "3d")
    assert "no date of our days: write it like" in capsys.readouterr().err


def test_all_dates_stand_in_one_file(days, marked, capsys):
    """Zone and dates of groups; an extension begins at the date of the group."""
    (marked / "roster.csv").write_text("id,group,extension\nann,A,\nben,B,\neva,B,1d\nleo,,\n")
    (marked / "due.toml").write_text(
        f'zone = "Europe/Berlin"\n{NAME} = {{all = {MARCH}:00, A = {OCTOBER}:00, B = 2023-03-24T18:00:00}}\n'
        "ex07_alibi = 2023-11-01T18:00:00\n"
    )
    try:
        found = days(zone="UTC")
        said = capsys.readouterr().out
        assert found == {"ann": 1, "ben": 10, "eva": 1, "leo": 2}
        assert f"{NAME}, group B is due on Friday, 24 March 2023, 18:00 (Europe/Berlin, UTC+01:00)" in said
        with pytest.raises(AssertionError):
            days("--due", OCTOBER)
        assert "due.toml says when ex06_rope is due: change it there" in capsys.readouterr().err
    finally:
        (marked / "roster.csv").unlink()
        (marked / "due.toml").unlink()


@pytest.mark.parametrize(
    "text, words",
    [
        ("zone = 'Berlin'", "'Berlin' is no time zone"),
        ("ex99 = 2023-03-24T18:00:00", "'ex99' is no exercise; there are ex01_order"),
        (f"{NAME} = 2023-03-24", "is 2023-03-24; write day and time"),
        (f"{NAME} = {{A = 2023-03-24T18:00:00}}", "one for all others, too"),
        (f"{NAME} = {{all = 2023-03-24T18:00:00, Q = 2023-03-24T18:00:00}}", "names the group 'Q'"),
        (f"{NAME} = soon", "cannot be read"),
    ],
)
def test_a_mistake_in_the_file_of_dates_is_named(marked, capsys, text, words):
    (marked / "due.toml").write_text(text)
    try:
        assert command.main(["grade", NAME, "--root", str(marked), "--trusted"]) == 2
        said = capsys.readouterr().err
        assert "due.toml" in said and words in said
    finally:
        (marked / "due.toml").unlink()
