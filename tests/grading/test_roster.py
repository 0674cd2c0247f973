"""The class list, and uploads under the names that Canvas and Moodle give them."""

import csv
import io
import json
import shutil
import unicodedata

import nbformat
import pytest

from classroom import __main__ as command
from classroom import intake, reports, roster

LIST = """id,Name,E-mail,group,canvas_id,extension
fischerl,Lena Fischer,lena@uni.example,A,48213,
zoe,Zoë Müller,zoe@uni.example,B,48214,2d
wang1,王小明,wang@uni.example,B,48215,
"""


@pytest.fixture
def listed(room):
    (room.root / "roster.csv").write_text(LIST, encoding="utf-8-sig")
    return room


def put(room, name, data=None):
    """One upload, a notebook unless ``data`` is something else."""
    path = room.root / "inbox" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(nbformat.writes(room.released()).encode() if data is None else data)


def take_in(room):
    """``{student: state}`` of all that lies in the inbox."""
    taken = intake.take_in(room.root / "inbox", room.root, [room.name, "ex07_alibi"])
    assert len({(one.student, one.assignment) for one in taken}) == len(taken)
    return {(one.student, one.assignment): one.state for one in taken}


def rows(room):
    return list(csv.DictReader(io.StringIO(reports.export(room.root).read_bytes().decode("utf-8-sig"))))


CANVAS = [
    "fischerlena_LATE_48213_1190442_ex06_rope-1.ipynb",
    "mullerzoe_48214_1190443_ex06_rope.ipynb",
    "王小明_48215_1190444_homework.ipynb",
]
MOODLE = [
    "Lena Fischer_5530120_assignsubmission_file/ex06_rope.ipynb",
    "Zoe-Muller_5530121_assignsubmission_file_/ex06_rope (1).ipynb",
    "王小明_5530122_assignsubmission_file_ex06_rope.ipynb",
]


@pytest.mark.parametrize("names", [CANVAS, MOODLE])
def test_names_of_platforms_find_their_student(listed, names):
    for name in names:
        put(listed, name)
    assert take_in(listed) == {(student, listed.name): "taken" for student in ("fischerl", "zoe", "wang1")}
    assert json.loads((listed.root / "students.json").read_text())["zoe"] == "Zoë Müller"


def test_numbers_of_canvas_tell_people_of_one_name_apart(listed):
    (listed.root / "roster.csv").write_text(LIST + "wei1,Wei Wang,,,7,\nwei2,Wei Wang,,,8,\n")
    put(listed, "wangwei_8_1_ex06_rope.ipynb")
    put(listed, "Wei Wang/ex06_rope.ipynb")  # a name alone is not enough
    put(listed, "fischerlena_99_2_ex06_rope.ipynb")  # somebody else of that name
    found = take_in(listed)
    assert ("wei2", listed.name) in found and len(found) == 3
    assert not {"wei1", "fischerl"} & {student for student, _ in found}


@pytest.mark.parametrize(
    "first, second",
    [
        ("fischerlena_48213_11_ex06_rope.ipynb", "fischerlena_LATE_48213_12_ex07_alibi-2.ipynb"),
        (
            "Zoe Muller_11_assignsubmission_file/ex06_rope.ipynb",
            "Zoe Muller_12_assignsubmission_file/ex07_alibi.ipynb",
        ),
    ],
)
def test_one_student_stays_one_without_a_list(room, first, second):
    put(room, first)
    put(room, second, b"{}")  # another exercise's cells would count as the first's
    assert len({student for student, _ in take_in(room)}) == 1


def test_two_people_of_one_name_in_moodle_are_not_mixed_up(listed):
    for number in (5, 6):
        put(listed, f"Lena Fischer_{number}_assignsubmission_file/ex06_rope.ipynb")
    found = intake.take_in(listed.root / "inbox", listed.root, [listed.name])
    assert len({one.student for one in found}) == 2 and "fischerl" not in {one.student for one in found}
    assert all("More than one Lena Fischer" in one.reason for one in found)


def test_what_was_typed_into_moodle_counts_only_where_nothing_else_was_sent(listed):
    put(listed, "Lena Fischer_5_assignsubmission_file/ex06_rope.ipynb")
    put(listed, "Lena Fischer_5_assignsubmission_onlinetext/onlinetext.html", b"<p>Enclosed.</p>")
    put(listed, "Zoe Muller_6_assignsubmission_onlinetext/onlinetext.html", b"<p>Here.</p>")
    taken = intake.take_in(listed.root / "inbox", listed.root, [listed.name])
    found = {one.student: one for one in taken if one.state != "left"}
    assert found["fischerl"].state == "taken" and len(found) == 2
    (left,) = (one for one in taken if one.state == "left")
    assert left.reason == "'onlinetext.html': no notebook, so not read." and left.student == "fischerl"
    assert found["zoe"].state == "rejected" and "typed into Moodle" in found["zoe"].reason


def test_names_that_students_give_are_as_before(room):
    for name in ("ex06_rope_48213_11_li.ipynb", "ada/ex06_rope.ipynb", "ex06_rope_bo.ipynb"):
        put(room, name)
    assert {student for student, _ in take_in(room)} == {"48213_11_li", "ada", "bo"}


def test_who_has_not_handed_in_stands_in_the_table(listed):
    put(listed, CANVAS[0])
    take_in(listed)
    listed.marks("fischerl")
    listed.merge()
    found = {row["student"]: row for row in rows(listed)}
    assert {student: row["state"] for student, row in found.items()} == {
        "fischerl": "graded",
        "zoe": "not handed in",
        "wang1": "not handed in",
    }
    assert (found["wang1"]["name"], found["wang1"]["group"]) == ("王小明", "B")


def test_the_command_names_strangers_and_who_is_missing(listed, capsys):
    put(listed, CANVAS[0])
    put(listed, "nobody/ex06_rope.ipynb")
    assert command.main(["take-in", "--root", str(listed.root), str(listed.root / "inbox")]) == 0
    said = capsys.readouterr().out
    assert "Not in roster.csv: nobody." in said and "from 2 of 3: wang1, zoe" in said


@pytest.mark.parametrize("text", ["id;name\nli;Li", "id\tname\nli\tLi", "id,name\n\nli,Li\n"])
def test_a_list_may_be_written_as_spreadsheets_write_it(tmp_path, text):
    (tmp_path / "roster.csv").write_text(text)
    assert roster.read(tmp_path).people["li"].name == "Li"


@pytest.mark.parametrize(
    "text, words",
    [
        ("name\nLi", "no column 'id'"),
        ("id,phone\nli,1", "'phone'.*may be: id, name"),
        ("id\nli\nli", "line 3.*twice"),
        ("id\nZoë", "line 2.*'Zoë' cannot be an id"),
        ("id,extension\nli,soon", "line 2.*'soon' is no length"),
        ("id,id\n1,2", "more than once"),
        ('id,name\nada,"Ada\nben,Ben\nzoe,Zoe\n', "a quotation mark is not closed"),
        ('id,name\nada,"Ada\nben,"Ben"\nzoe,Zoe\n', "a quotation mark is not closed"),
        ('id,name\nada,"Ada\nben,Ben"\n', "line 3.*does not fit the 2 columns"),
        ("id,name\nada,Lovelace, Ada\n", "line 2.*separator in a name"),
        ("id\nli\nLI", "line 3: the id 'LI' is there twice, first in line 2"),
        ("id,canvas_id\nli,7\nbo,7", "line 3: the canvas_id '7' is there twice"),
        ("id,email\nli,a@b\nbo,A@b", "the email 'A@b' is there twice"),
        ("id,canvas_id\nli,4.83E+09", "line 2: 4.83E\\+09 in 'canvas_id'.*Format the column as text"),
        ("Student,ID,SIS Login ID,Section\nA,1,a@b,\nB,1,b@b,\n", "an export of Canvas, and none of its"),
    ],
)
def test_a_mistake_in_the_list_is_named(tmp_path, text, words):
    (tmp_path / "roster.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        roster.read(tmp_path)


def test_a_number_stays_one_whatever_a_spreadsheet_made_of_it(listed):
    """48213.0 is 48213, and nobody else's; 0007 may have become 7, in the list or in the upload's name."""
    (listed.root / "roster.csv").write_text(
        "id,name,canvas_id,sis_id\nfischerl,Lena Fischer,48213.0,7\nzoe,Zoe Muller,48214.0,0008\n"
        "0012.0,Li,,\n"
    )
    assert set(roster.read(listed.root).people) == {"fischerl", "zoe", "0012"}
    for name in ("fischerlena_48213_1_ex06_rope.ipynb", "0008/ex06_rope.ipynb", "12/ex06_rope.ipynb"):
        put(listed, name)
    assert {student for student, _ in take_in(listed)} == {"fischerl", "zoe", "0012"}
    put(listed, "0007/ex07_alibi.ipynb", b"{}")
    assert ("fischerl", "ex07_alibi") in take_in(listed)


CANVAS_EXPORT = """Student,ID,SIS User ID,SIS Login ID,Section,ex06_rope (123),Final Score
,,,,,Manual Posting,
    Points Possible,,,,,20.00,(read only)
"Fischer, Lena",48213,S0007,lfischer,A,18,90
"Müller, Zoë",48214,S0008,zmueller,B,,
"Student, Test",99999,,abcdef0123456789,A,,
"""
MOODLE_EXPORT = """First name,Last name,ID number,Institution,Email address,Assignment: ex06,Last downloaded
Lena,Fischer,S0007,,lena@uni.example,18,1764
Zoë,Müller,,,zoe@uni.example,-,1764
"""
PARTICIPANTS = (
    "First name;Surname;Email address;Groups\nLena;Fischer;lena@uni.example;A\nZoë;Müller;zoe@u.example;B\n"
)


@pytest.mark.parametrize(
    "text, ids, upload",
    [
        (CANVAS_EXPORT, ["lfischer", "zmueller"], "fischerlena_48213_1_ex06_rope.ipynb"),
        (MOODLE_EXPORT, ["lena", "zoe"], "Lena Fischer_5_assignsubmission_file/ex06_rope.ipynb"),
        (PARTICIPANTS, ["lena", "zoe"], "Lena Fischer_5_assignsubmission_file/ex06_rope.ipynb"),
    ],
    ids=["Canvas", "Moodle, grades", "Moodle, participants"],
)
def test_the_platforms_own_exports_are_lists(room, capsys, text, ids, upload):
    (room.root / "roster.csv").write_text(text, encoding="utf-8-sig")
    put(room, upload)
    found, said = arrived(room, capsys)
    assert set(found) == {ids[0]} and f"from 1 of 2: {ids[1]}" in said
    people = roster.read(room.root).people
    assert list(people) == ids and "Zoë" in people[ids[1]].name


def test_a_list_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "roster.csv").write_bytes("id,name\nzoe,Zoë".encode("latin-1"))
    with pytest.raises(ValueError, match="CSV UTF-8"):
        roster.read(tmp_path)


def test_without_a_list_nothing_is_asked(room):
    shutil.rmtree(room.root / "inbox", ignore_errors=True)
    put(room, "Zoë/ex06_rope.ipynb")
    ((student, _),) = take_in(room)
    assert student.startswith("Zoe-")


# ---- names of all scripts, through the teacher's command ----
def arrived(room, capsys):
    """What the command took in: ``{id: the exercises}``, and what it said."""
    assert command.main(["take-in", "--root", str(room.root), str(room.root / "inbox")]) == 0
    found = {path.name: sorted(one.name for one in path.iterdir()) for path in room.root.glob("submitted/*")}
    return found, capsys.readouterr().out


def as_sent(platform, name, exercise, number, user=48301):
    """The name of an upload, as a platform makes it of a student's name. Canvas keeps letters and signs."""
    if platform == "canvas":
        name = "".join(each for each in name if each == "_" or unicodedata.category(each)[0] in "LMN").lower()
        return f"{name}_{user}_{number}_{exercise}.ipynb"
    return {
        "moodle": f"{name}_{number}_assignsubmission_file/{exercise}.ipynb",
        "moodle without folders": f"{name}_{number}_assignsubmission_file_{exercise}.ipynb",
        "folder": f"{name}/{exercise}.ipynb",
        "file": f"{exercise}_{name}.ipynb",
    }[platform]


PLATFORMS = ("canvas", "moodle", "moodle without folders", "folder", "file")
ANOTHERS = {
    "Hindi": ("राम", "रमा"),
    "Thai": ("มานี", "มานะ"),
    "Thai, a sign": ("สมชาย", "สมชาย์"),
    "Arabic": ("سلمى", "سُلمى"),
    "Japanese": ("かとう", "がとう"),
    "Russian": ("Андреи", "Андрей"),
    "Vietnamese": ("Nguyễn Thị Hoa", "Nguyễn Thị Hoà"),
    "French": ("André Rene", "André René"),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("case", ANOTHERS)
def test_a_sign_more_is_another_name(room, capsys, case, platform):
    listed, other = ANOTHERS[case]
    (room.root / "roster.csv").write_text(f"id,name\nlisted,{listed}\n", encoding="utf-8")
    put(room, as_sent(platform, other, room.name, 111))
    found, said = arrived(room, capsys)
    assert len(found) == 1 and "listed" not in found
    assert "Not in roster.csv" in said and "Nothing in the inbox from 1 of 1: listed" in said
    (room.root / "roster.csv").write_text(f"id,name\nlisted,{listed}\nother,{other}\n", encoding="utf-8")
    shutil.rmtree(room.root / "submitted")
    put(room, as_sent(platform, listed, room.name, 112, 48302))
    assert set(arrived(room, capsys)[0]) == {"listed", "other"}


SINHALA = "ශ්\u200dරීමාලි පෙරේරා"  # with a joiner that cannot be seen
WRITTEN = {
    "Hindi": "शर्मा प्रिया",
    "Thai": "ใจดี สมชาย",
    "Tamil": "செல்வி",
    "Korean": "김 민준",
    "accents": "Müller Zoë",
    "Sinhala": SINHALA,
    "Persian": "علی\u200cرضا",
    "an underline": "li_na",
}


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("case", WRITTEN)
def test_one_student_stays_one_in_every_script(room, capsys, case, platform, listed):
    """Two exercises, written with accents of their own and without, joiners or not: as it comes."""
    name = WRITTEN[case]
    if listed:
        (room.root / "roster.csv").write_text(f"id,name\nher,{name}\n", encoding="utf-8")
    put(room, as_sent(platform, unicodedata.normalize("NFC", name), room.name, 111))
    plain = "".join(each for each in name if unicodedata.category(each) != "Cf")
    put(room, as_sent(platform, unicodedata.normalize("NFD", plain), "ex07_alibi", 222), b"{}")
    found, said = arrived(room, capsys)
    ((student, _),) = found.items()
    assert student == "her" if listed else student.isascii()
    assert said.count(f"{student}  ex07_alibi: rejected.") == 1


@pytest.mark.parametrize(
    "listed, sent",
    [
        ("Zoë Müller", "Zoe Muller"),
        ("Zoe Muller", "Zoë Müller"),
        ("ΠΑΠΑΔΟΠΟΥΛΟΣ", "Παπαδόπουλος"),
        ("Straße, Jörg", "jörg STRASSE"),
        ("Łukasz Żak", "łukasz żak"),
    ],
)
def test_who_leaves_out_all_accents_is_found(room, capsys, listed, sent):
    (room.root / "roster.csv").write_text(f'id,name\nher,"{listed}"\n', encoding="utf-8")
    put(room, f"{sent}/ex06_rope.ipynb")
    assert set(arrived(room, capsys)[0]) == {"her"}


def test_where_two_could_be_meant_nobody_is(room, capsys):
    (room.root / "roster.csv").write_text("id,name\njose1,Jose Silva\njose2,José Silva\n", encoding="utf-8")
    put(room, "Jose Silva/ex06_rope.ipynb")  # the accent may have been left out
    put(room, "José Silva/ex06_rope.ipynb")
    found, said = arrived(room, capsys)
    assert len(found) == 2 and "jose1" not in found and "jose2" in found
    assert "Nothing in the inbox from 1 of 2: jose1" in said


def test_what_is_said_keeps_joiners_that_a_name_needs(room, capsys):
    put(room, f"{SINHALA}/ex06_rope.ipynb")
    put(room, f"li/{SINHALA} ex06_rope.ipynb", b"")
    assert SINHALA in arrived(room, capsys)[1]
    assert SINHALA in json.loads((room.root / "students.json").read_text()).values()
