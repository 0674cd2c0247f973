"""Votes: what leaves, who may write what into the folder, and what the teacher sees of it."""

import html
import json
import os

import pytest

from course import lesson
from course.lesson import predictions, votes
from course.progress import read, record

CHOICE, NUMBER, CURVE = "06.layout", "06.pairs", "06.random"
FLAT, FALL = [0.0] * 8, [1, 0.9, 0.7, 0.5, 0.3, 0.1, 0, 0]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A log and a working folder of its own, and no folder of the class."""
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.delenv("TUTORIAL_VOTES", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(predictions, "_asking", {})
    return tmp_path


@pytest.fixture
def drop(place, monkeypatch):
    """The class's folder: all may write, and only the teacher may look."""
    folder = place / "drop"
    folder.mkdir()
    folder.chmod(0o1733)
    monkeypatch.setenv("TUTORIAL_VOTES", str(folder))
    return folder


def made(key=CHOICE, choice="same", n=1, code=0, right=None):
    return {
        "question": key,
        "vote": n,
        "choice": choice,
        "right": right,
        "version": "1",
        "code": f"{code:016x}",
    }


def fill(folder, said, key=CHOICE, n=1):
    for code, choice in enumerate(said):
        votes.write(made(key, choice, n, code), folder)


# ---- sharing ----
def test_nothing_leaves_before_the_button_and_then_what_was_shown(drop):
    lesson.predict(CHOICE).choose("error")
    card = lesson.share(CHOICE)
    assert not list(drop.iterdir()) and "06.share.layout" not in read()
    seen = html.unescape(card.preview.value.split("<pre>")[1].split("</pre>")[0])
    assert json.loads(seen) == card.shown and set(card.shown) == set(votes.KEYS)
    assert card.shown["choice"] == "error" and card.shown["right"] is None
    assert "owner of the file" in card.preview.value
    card.button.click()
    (file,) = drop.iterdir()
    assert json.loads(file.read_text()) == card.shown and file.stat().st_mtime == votes.DATE
    assert "Shared, as your vote 1" in card.status.value and file.stat().st_mode & 0o777 == 0o644


def test_the_second_vote_stands_beside_the_first_and_a_correction_replaces(drop):
    asked = lesson.predict(CHOICE)
    asked.choose("error")
    card = lesson.share()
    card.button.click()
    asked.choose("same")
    assert card.shown["choice"] == "same", "seen at once"
    card.button.click()
    card.round.value = 2
    asked.choose("between")
    card.button.click()
    found = votes.gather(CHOICE, drop)
    said = [[vote["choice"] for vote in each.values()] for each in found.times.values()]
    assert said == [["same"], ["between"]]
    assert found.times[1].keys() == found.times[2].keys() and not found.ignored
    again = lesson.share(CHOICE)
    assert again.shown["code"] in found.times[1], "another day, another kernel: the same code"


def test_questions_are_not_tied_together(drop):
    for key, answer in ((CHOICE, "same"), (NUMBER, 3)):
        lesson.predict(key).choose(answer)
        lesson.share(key).button.click()
    first, second = (json.loads(file.read_text())["code"] for file in drop.iterdir())
    assert first != second


def test_right_belongs_to_the_answer_that_is_shared(place, monkeypatch):
    monkeypatch.setattr(predictions, "display", lambda card: None)
    asked = lesson.predict(CHOICE)
    asked.choose("error")
    lesson.reveal(CHOICE, "between")
    assert lesson.share(CHOICE).shown["right"] is False
    asked.choose("between")
    assert lesson.share(CHOICE).shown["right"] is None, "nothing was measured since"
    lesson.reveal(CHOICE, "between")
    assert lesson.share(CHOICE).shown["right"] is True
    record("06.predict.layout", choice="same", right=False)  # in another window
    assert lesson.share(CHOICE).shown["right"] is None


def test_what_has_changed_since_it_was_shown_is_shown_first(drop):
    lesson.predict(CHOICE).choose("error")
    card = lesson.share(CHOICE)
    predictions._asking.clear()  # the answer changes in another window
    record("06.predict.layout", choice="same")
    card.button.click()
    assert not list(drop.iterdir()) and "press again" in card.status.value and card.shown["choice"] == "same"
    card.button.click()
    assert len(list(drop.iterdir())) == 1


def test_without_an_answer_there_is_nothing_to_share(drop):
    card = lesson.share(CHOICE)
    assert card.shown is None and card.button.disabled and "not answered" in card.preview.value
    card.press()
    assert not list(drop.iterdir())


def test_without_a_class_it_stays_beside_the_notebook(place):
    lesson.predict(CURVE).choose(FLAT)
    lesson.share(CURVE).button.click()
    (file,) = (place / "votes").iterdir()
    assert votes.parse(file.read_bytes())["choice"] == FLAT


def test_a_folder_that_cannot_be_written_to_is_said(place, monkeypatch):
    monkeypatch.setenv("TUTORIAL_VOTES", str(place / "gone"))
    lesson.predict(CHOICE).choose("same")
    card = lesson.share(CHOICE)
    card.button.click()
    assert card.status.value.startswith("Nothing was shared: No such file")


def test_a_student_writes_into_the_folder_and_cannot_list_it(place, drop):
    """In a process of another user, where the tests may start one."""
    if os.getuid():
        pytest.skip("only root can become another user")
    for folder in (drop, *drop.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    votes.write(made(code=1), drop)
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            votes.write(made(code=2), drop)
            try:
                os.listdir(drop)
            except PermissionError:
                code = 2
            try:
                os.unlink(drop / votes.name_of(made(code=1)))
            except PermissionError:
                code += 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert len(votes.gather(CHOICE, drop).times[1]) == 2


# ---- what lies in the folder ----
def hostile(folder):
    """Files that are no votes; returns how many."""
    real = made(code=99)
    secret = folder.parent / "secret.json"
    secret.write_text(json.dumps(real))
    (folder / votes.name_of(real)).symlink_to(secret)
    os.mkfifo(folder / votes.name_of(made(code=98)))
    (folder / votes.name_of(made(code=97))).mkdir()
    odd = {
        "notes.txt": "hello",
        votes.name_of(made(code=96)): "{",
        votes.name_of(made(code=95)): "[" * 1900,
        votes.name_of(made(code=94)): json.dumps(made(code=94)) + " " * 3000,
        votes.name_of(made(code=93)): json.dumps(made(code=0)),  # a code that has voted
        votes.name_of(made(code=92)): json.dumps(made(code=92) | {"name": "Ada"}),
        votes.name_of(made(code=91)): json.dumps(made(code=91) | {"choice": "<b>"}),
        votes.name_of(made(code=90)): json.dumps(made(code=90) | {"choice": ["same"]}),
        votes.name_of(made(code=89)): json.dumps(made(code=89) | {"right": 1}),
        votes.name_of(made(code=88)): json.dumps(made(code=88) | {"vote": True}),
        votes.name_of(made("06.nothing", code=87)): json.dumps(made("06.nothing", code=87)),
        votes.name_of(made(NUMBER, 3, code=86)).replace("06.pairs", "77.pairs"): "{}",
    }
    for name, text in odd.items():
        (folder / name).write_text(text)
    (folder / votes.name_of(made(code=85))).write_bytes(b"\xff\xfe\x00")
    (folder / ".vote-half").write_text("{")  # being written: not counted as anything
    return len(odd) + 4


def test_hostile_files_are_counted_and_nothing_else(drop):
    fill(drop, ["same"] * 6)
    fill(drop, [3] * 2, NUMBER)
    odd = hostile(drop)
    found = votes.gather(CHOICE, drop)
    assert len(found.times[1]) == 6 and not found.times[2] and found.ignored == odd


@pytest.mark.parametrize(
    "key, choice",
    [
        (NUMBER, True),
        (NUMBER, "3"),
        (NUMBER, float("nan")),
        (NUMBER, float("inf")),
        (NUMBER, 10**400),
        (CURVE, FLAT[1:]),
        (CURVE, [*FLAT[1:], None]),
        (CURVE, [*FLAT[1:], float("-inf")]),
        (CURVE, "00000000"),
        (CURVE, 1),
        ("../06.random", FLAT),
        ("06.random\n", FLAT),
        ("", 1),
        ("99.x", 1),
    ],
)
def test_an_answer_that_is_none_is_no_vote(key, choice):
    with pytest.raises(ValueError):
        votes.check(made(key, choice))


def test_a_flood_is_not_read(drop, monkeypatch):
    monkeypatch.setattr(votes, "MOST_FILES", 10)
    fill(drop, ["same"] * 15)
    found = votes.gather(CHOICE, drop)
    assert len(found.times[1]) == 10 and found.ignored == 5


def test_other_files_hide_no_vote(drop, monkeypatch):
    monkeypatch.setattr(votes, "MOST_FILES", 10)
    for n in range(200):
        (drop / f"junk{n}").touch()
        (drop / f"vote-99.nothing-1-{n:016x}.json").touch()
    fill(drop, ["same"] * 10)
    found = votes.gather(CHOICE, drop)
    assert len(found.times[1]) == 10 and found.ignored == 400


# ---- what the teacher sees ----
def test_counts_are_hidden_until_revealed_and_from_five_votes_on(drop):
    fill(drop, ["same"] * 3 + ["error"])
    card = lesson.vote(CHOICE)
    card.look(True)
    assert card.shown["votes"] == [4, 0] and card.shown["rows"] == []
    fill(drop, ["same"] * 3 + ["error"] * 4)
    card.look(False)
    assert card.shown["votes"] == [7, 0] and card.shown["rows"] == []
    fill(drop, ["between"] * 4, n=2)
    card._handle_custom_msg({"open": True}, [])
    assert [row[1:3] for row in card.shown["rows"]] == [[4, None], [3, None], [0, None], [0, None]]
    fill(drop, ["between"] * 5, n=2)
    card._handle_custom_msg({}, [])
    assert [row[2] for row in card.shown["rows"]] == [0, 0, 5, 0], "still open, counted anew"
    assert not any(f"{code:016x}" in json.dumps(card.shown) for code in range(7))


def test_what_was_measured_is_marked_once_it_is(drop, monkeypatch):
    monkeypatch.setattr(predictions, "display", lambda card: None)
    fill(drop, ["same"] * 5)
    lesson.predict(CHOICE)
    card = lesson.vote(CHOICE)
    card.look(True)
    assert not any(row[3] for row in card.shown["rows"])
    lesson.reveal(CHOICE, "between")
    card.look()
    assert [row[3] for row in card.shown["rows"]] == [False, False, True, False]


def test_numbers_stand_in_ranges_and_one_wild_one_spoils_nothing(drop):
    fill(drop, [4, 6, 8, 10, 1e300], NUMBER)
    fill(drop, [24, 25, 25, 26, 25], NUMBER, 2)
    rows = votes.rows(NUMBER, votes.gather(NUMBER, drop))
    assert len(rows) == 5 and rows[0][0].startswith("below ") and rows[0][0].endswith(" pairs")
    assert [sum(row[n] for row in rows) for n in (1, 2)] == [5, 5]
    assert max(row[1] for row in rows) < 5 and rows[-1][1] >= 1


@pytest.mark.parametrize("said", [[0] * 5, [-1e308, 1e308, 0, 5, 5], [7], [-1e308, 1e308] * 3])
def test_odd_numbers_have_ranges_too(drop, said):
    fill(drop, said, NUMBER)
    rows = votes.rows(NUMBER, votes.gather(NUMBER, drop))
    assert sum(row[1] or 0 for row in rows) == (len(said) if len(said) >= votes.FEWEST else 0)
    assert not any("inf" in row[0] or "nan" in row[0] for row in rows)


def test_curves_stand_under_their_shape(drop):
    bend = [0, 0, 0.6, 0.8, 0.6, 0, 0, 0]
    fill(drop, [FALL, FALL, FALL, FALL[::-1], bend, FLAT], CURVE)
    rows = votes.rows(CURVE, votes.gather(CURVE, drop), FLAT)
    assert [row[1] for row in rows] == [1, 3, 1, 1]
    assert [row[3] for row in rows] == [True, False, False, False]


def test_a_teacher_without_a_folder_is_told_how_to_name_one(place):
    with pytest.raises(ValueError, match="TUTORIAL_VOTES"):
        lesson.vote(CHOICE)
    card = lesson.vote(CHOICE, place / "gone")
    assert "cannot be read: No such file" in card.shown["problem"]
    for call in (lesson.vote, lesson.share):
        with pytest.raises(KeyError, match="06 has no question"):
            call("06.nothing")
    with pytest.raises(KeyError, match="no prediction has been asked"):
        lesson.share()


def test_a_stored_notebook_holds_no_vote(drop):
    fill(drop, ["same"] * 9)
    lesson.predict(CHOICE).choose("same")
    for card in (lesson.vote(CHOICE), lesson.share(CHOICE)):
        assert "Run this cell" in card.stored()[0]["text/plain"]


# ---- the board ----
def test_a_design_is_shared_like_a_vote_and_the_board_has_the_best_first(drop):
    card = lesson.share(votes.BOARD)
    assert card.shown is None, "nothing was designed yet"
    record("10.share.two_clocks", choice=[8, 4, 50.0, 0, 0, 0, 1.0, 0.47])
    (card := lesson.share(votes.BOARD)).button.click()
    assert card.shown["choice"] == [8, 4, 50, 0, 0, 0, 1, 0.47] and len(list(drop.iterdir())) == 1
    assert lesson.share(votes.BOARD).shown == card.shown, "the code is kept, and the design with it"
    fill(drop, [[0, 4, 50, 1, 0.1]] * 2 + [[0, 0, 0, 0.2, 0.5]] + [[4, 4, 9, 1, 0.6]], votes.BOARD)
    board = lesson.vote(votes.BOARD)
    board.look(True)
    assert [row[:2] for row in board.shown["rows"]] == [
        ["4/4/9: 1.00, 0.60", 1],
        ["8/4/50 0/0/0: 1.00, 0.47", 1],
        ["0/4/50: 1.00, 0.10", 2],
        ["0/0/0: 0.20, 0.50", 1],
    ]


def test_a_board_names_the_best_and_counts_the_others(drop, monkeypatch):
    monkeypatch.setattr(votes, "MOST_DESIGNS", 2)
    fill(drop, [[0, 4, 50, 1, n / 10] for n in range(6)], votes.BOARD)
    rows = votes.rows(votes.BOARD, votes.gather(votes.BOARD, drop))
    assert [row[:2] for row in rows] == [
        ["0/4/50: 1.00, 0.50", 1],
        ["0/4/50: 1.00, 0.40", 1],
        ["all others", 4],
    ]


@pytest.mark.parametrize(
    "entry",
    ["8/4/50", [1, 0.5], [8, 4, 50, 1, 1.5], [-1, 4, 50, 1, 1], [8, 4, 1e400, 1, 1], [0, 0, 0] * 9 + [1, 1]],
)
def test_what_is_no_design_is_no_vote(entry):
    with pytest.raises(ValueError):
        votes.check(made(votes.BOARD, entry))
