"""Every upload gets a line, whatever it is: by the teacher's command, from the inbox to the class folder."""

import io
import json
import os
import tracemalloc
import zipfile

import nbformat
import pytest

from classroom import __main__ as command
from classroom import intake

NAME, OTHER = "ex06_rope", "ex07_alibi"
PNG, JPEG, PDF, RAR, SEVEN = (
    b"\x89PNG\r\n\x1a\n\0",
    b"\xff\xd8\xff\xe0\0",
    b"%PDF-1.7",
    b"Rar!\x1a\x07",
    b"7z\xbc\xaf",
)
LIST = """id,name,canvas_id
lena,Lena Fischer,48213
zoe,Zoë Müller,48214
wang,王小明,48215
"""


def packed(members: dict) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


DOCX = packed({"word/document.xml": b"<w/>"})
TEXT = b"<!DOCTYPE html><p>Both keep lengths.</p>"


class Desk:
    """A class folder, an inbox, and the command."""

    def __init__(self, room, capsys):
        self.root, self.inbox, self.capsys = room.root, room.root / "inbox", capsys
        self.notebook = nbformat.writes(room.released()).encode()
        self.inbox.mkdir(exist_ok=True)

    def put(self, name: str, data: bytes | None = None, seconds: int = 1_700_000_000):
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.notebook if data is None else data)
        os.utime(path, (seconds, seconds))

    def take_in(self) -> str:
        """What the command says; a second time it says and does the same."""
        said = []
        for _ in range(2):
            assert command.main(["take-in", str(self.inbox), "--root", str(self.root)]) == 0
            said.append(self.capsys.readouterr().out)
        assert said[0] == said[1]
        return said[0]

    @property
    def taken(self) -> set[str]:
        return {path.parts[-3] for path in self.root.glob(f"submitted/*/*/{NAME}.ipynb")}

    @property
    def rows(self) -> set[str]:
        return {path.stem for path in self.root.glob("marks/*/*.json")} | self.taken


@pytest.fixture
def desk(room, capsys):
    return Desk(room, capsys)


@pytest.fixture
def listed(desk):
    (desk.root / "roster.csv").write_text(LIST, encoding="utf-8")
    return desk


# ---- other kinds ----
@pytest.mark.parametrize(
    "data, words",
    [
        (RAR, "RAR archive"),
        (SEVEN, "7z archive"),
        (PDF, "a PDF"),
        (DOCX, "office program"),
        (JPEG, "a picture"),
        (PNG, "a picture"),
        (TEXT, "text of another kind"),
        (packed({"inner.zip": packed({f"{NAME}.ipynb": b"{}"})}), "no notebook (.ipynb), but 'inner.zip'"),
    ],
    ids=["rar", "7z", "pdf", "docx", "jpeg", "png", "html", "zip in zip"],
)
@pytest.mark.parametrize(
    "name",
    [
        "lena/{n}",
        "fischerlena_48213_119_{n}",
        "Lena Fischer_55_assignsubmission_file/{n}",
        "Lena Fischer_55_assignsubmission_file_{n}",
    ],
)
def test_another_kind_is_named_with_its_owner(listed, name, data, words):
    ending = {"RAR archive": "rar", "7z archive": "7z", "a PDF": "pdf"}.get(words, "jpg")
    listed.put(name.format(n="work." + ("zip" if "zip" in words else ending)), data)
    said = listed.take_in()
    assert "lena  –: rejected." in said and words in said, said
    assert "Nothing in the inbox from 2 of 3: wang, zoe" in said and listed.rows == {"lena"}


@pytest.mark.parametrize(
    "name, data",
    [
        ("ex06_rope_lena.rar", RAR),
        ("lena.7z", SEVEN),
        ("ex06_rope_lena.tar.gz", b"\x1f\x8b"),
        ("ex06_lena.pdf", PDF),
    ],
)
def test_another_kind_in_no_folder_is_its_owners(listed, name, data):
    listed.put(name, data)
    assert "lena  " in listed.take_in() and listed.rows == {"lena"}


def test_text_that_was_typed_is_named_on_both_platforms(listed):
    listed.put("fischerlena_LATE_48213_text.html", TEXT)
    listed.put("mullerzoe_48214_link.html", TEXT)
    listed.put("王小明_55_assignsubmission_onlinetext/onlinetext.html", TEXT)
    said = listed.take_in()
    assert said.count("typed into Canvas's text field") == 2 and said.count("typed into Moodle's") == 1
    assert listed.rows == {"lena", "zoe", "wang"}


def test_what_lies_beside_a_notebook_is_named_and_costs_nothing(listed):
    listed.put(f"lena/{NAME}.ipynb")
    for n in range(7):
        listed.put(f"lena/photo{n}.jpg", JPEG)
    listed.put(
        "zoe/work.zip", packed({f"{NAME}.ipynb": listed.notebook, "answers.docx": DOCX, "in.zip": DOCX})
    )
    listed.put("王小明_48215_1_ex06_rope.ipynb")
    listed.put("王小明_48215_2_scan.pdf", PDF)
    listed.put("syllabus.pdf", PDF)
    said = listed.take_in()
    assert "lena  –: left. 'photo0.jpg'" in said and "'photo4.jpg' and 2 more: no notebook" in said
    assert "zoe  –: left. work.zip: 'answers.docx', 'in.zip'" in said
    assert "wang  –: left. '王小明_48215_2_scan.pdf'" in said
    assert "–  –: left. 'syllabus.pdf': it names neither" in said
    assert listed.taken == {"lena", "zoe", "wang"} and not (listed.root / "marks" / "_unknown").exists()
    assert "4 left, 3 taken" in said


# ---- a whole class in one archive ----
@pytest.mark.parametrize(
    "archive, names",
    [
        (
            "rope101-ex06_rope_submissions.zip",
            [
                "fischerlena_48213_1_ex06_rope.ipynb",
                "mullerzoe_LATE_48214_2_work.zip",
                "王小明_48215_text.html",
            ],
        ),
        (
            "ROPE-Exercise 6-90125.zip",
            [
                "Lena Fischer_1_assignsubmission_file/ex06_rope.ipynb",
                "Zoe Muller_2_assignsubmission_file/work.zip",
                "王小明_3_assignsubmission_onlinetext/onlinetext.html",
            ],
        ),
        ("submissions (1).zip", ["lena/ex06_rope.ipynb", "ex06_rope_zoe.zip", "wang/ex06_rope.rar"]),
        ("ex06_rope.zip", ["lena/answers.ipynb", "zoe/work.zip", "wang/scan.rar"]),
    ],
    ids=["Canvas", "Moodle", "ids", "a folder for an exercise"],
)
@pytest.mark.parametrize("unpacked", [False, True], ids=["packed", "unpacked"])
def test_the_archive_of_a_class_is_read_as_it_comes(listed, archive, names, unpacked):
    inner = packed({"mine/ex06_rope.ipynb": listed.notebook})
    data = dict(zip(names, (listed.notebook, inner, TEXT), strict=True))
    if unpacked:
        for name, one in data.items():
            listed.put(f"{archive.removesuffix('.zip')}/{name}", one)
    else:
        listed.put(archive, packed(data))
    said = listed.take_in()
    assert listed.taken == {"lena", "zoe"} and listed.rows == {"lena", "zoe", "wang"}, said
    assert "read as what a whole class has handed in" in said and "wang  " in said
    stamp = json.loads((listed.root / "taken" / NAME / "lena.json").read_text())
    assert stamp["seconds_of_upload"] == 1_700_000_000  # not later than the download


def test_dates_inside_an_archive_count(listed):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for number, day in ((48213, 3), (48214, 5)):
            info = zipfile.ZipInfo(f"x_{number}_1_ex06_rope.ipynb", (2023, 11, day, 12, 0, 0))
            file.writestr(info, listed.notebook)
    listed.put("submissions.zip", buffer.getvalue())
    listed.take_in()
    lena, zoe = (
        json.loads((listed.root / "taken" / NAME / f"{n}.json").read_text()) for n in ("lena", "zoe")
    )
    assert zoe["seconds_of_upload"] - lena["seconds_of_upload"] == 2 * 86_400


@pytest.mark.parametrize("name", ["lena.zip", "ex06_rope_lena.zip", "homework.zip", "Lena Fischer.zip"])
def test_a_students_own_archive_hands_in_for_nobody_else(listed, name):
    members = {
        f"{who}_{number}_1_ex06_rope.ipynb": listed.notebook for who, number in (("a", 48214), ("b", 48215))
    }
    listed.put(name, packed(members))
    said = listed.take_in()
    assert not listed.taken & {"zoe", "wang"}
    assert "homework" not in name or "call it submissions.zip" in said


def test_take_in_keeps_no_archive_in_memory(desk):
    noise = os.urandom(3_000_000)
    for n in range(8):
        desk.put(f"s{n}/work.zip", packed({f"{NAME}.ipynb": desk.notebook, "noise.bin": noise}))
    tracemalloc.start()
    try:
        assert (
            len([one for one in intake.take_in(desk.inbox, desk.root, [NAME]) if one.state == "taken"]) == 8
        )
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()


# ---- names ----
@pytest.mark.parametrize(
    "name",
    [
        "lena/ex06_rope (Lena's conflicted copy 2026-03-01).ipynb",
        "ex06_rope_lena (Lenas MacBook's conflicted copy 2026-03-01).ipynb",
        "ex06_rope_lena (conflicted copy 2026-03-01 101010).ipynb",
        "ex06_rope_lena (Case Conflict 1).ipynb",
        "ex06_rope_lena.sync-conflict-20260301-101010-ABCDEFG.ipynb",
        "lena (conflicted copy 2026-03-01)/ex06_rope.ipynb",
    ],
)
def test_a_conflicted_copy_of_a_sync_is_no_student(listed, name):
    listed.put("lena/ex06_rope.ipynb", seconds=1_700_000_100)
    listed.put(name)
    said = listed.take_in()
    assert listed.taken == listed.rows == {"lena"} and "is older and was not used" in said


def test_a_name_cannot_speak_to_the_terminal(desk):
    for number in (5, 6):
        desk.put(f"Eve\x1b[2J\x07\u202e_{number}_assignsubmission_file/ex06_rope.ipynb")
    said = desk.take_in()
    assert "More than one Eve" in said and said.replace("\n", "").isprintable()


@pytest.mark.parametrize("id", ["feedback", "__pycache__", "x.pyc", "x."])
def test_an_id_that_nbgrader_would_skip_is_refused(desk, id):
    (desk.root / "roster.csv").write_text(f"id\nli\n{id}\n")
    assert command.main(["take-in", str(desk.inbox), "--root", str(desk.root)]) == 2
    assert f"line 3: '{id}' cannot be an id" in desk.capsys.readouterr().err
