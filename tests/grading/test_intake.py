"""Uploads as students send them: every one ends in one outcome, with words, and the inbox stays as it was."""

import hashlib
import io
import json
import os
import stat
import struct
import zipfile

import nbformat
import pytest

from classroom import intake
from course import files

NAMES = ["ex06_rope", "ex07_alibi"]


def notebook(source="def answer(x):\n    return x", **more) -> dict:
    """A notebook as a student sends it, with an output and all kinds of metadata."""
    cell = {
        "cell_type": "code",
        "id": "a1",
        "execution_count": 3,
        "source": source,
        "metadata": {"tags": ["skip-execution"], "nbgrader": {"grade_id": "answer", "points": 1e9}},
        "outputs": [
            {
                "output_type": "display_data",
                "metadata": {},
                "data": {"text/html": "<script>alert(1)</script>"},
            }
        ],
    }
    return {
        "cells": [cell],
        "metadata": {"kernelspec": {"name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    } | more


def text(**more) -> bytes:
    return json.dumps(notebook(**more)).encode()


def put(path, data: bytes, seconds: int = 1_700_000_000):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (seconds, seconds))
    return path


def packed(members: dict, **options) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def tree(folder) -> dict:
    """Every path below a folder: its kind, times and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
        found[str(path)] = (about.st_mode, about.st_mtime_ns, hashlib.sha256(content).hexdigest())
    return found


@pytest.fixture
def inbox(tmp_path):
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def only(inbox):
    """The one outcome of an inbox, but for what was left; a second run gives the same and changes nothing."""
    root = inbox.parent
    before = tree(inbox)
    first = intake.take_in(inbox, root, NAMES)
    (taken,) = (one for one in first if one.state != "left")
    after = tree(root)
    assert intake.take_in(inbox, root, NAMES) == first
    assert tree(root) == after
    assert tree(inbox) == before
    check(root, taken)
    return taken


def check(root, taken):
    """What holds for every outcome."""
    assert taken.state in ("taken", "rejected")
    marks = root / "marks" / (taken.assignment or "_unknown") / f"{taken.student}.json"
    assert taken.student in json.loads((root / "students.json").read_text())
    if taken.state == "rejected":
        found = json.loads(marks.read_text())
        assert found["state"] == "rejected" and found["reason"] == taken.reason and taken.path is None
        assert len(taken.reason.split()) > 3
    else:
        assert not marks.exists()
        data = taken.path.read_bytes()
        assert taken.sha256 == hashlib.sha256(data).hexdigest()
        assert taken.path == (
            root / "submitted" / taken.student / taken.assignment / f"{taken.assignment}.ipynb"
        )
        found = nbformat.reads(data.decode(), as_version=4)
        nbformat.validate(found)
        assert found.metadata.kernelspec == intake.KERNEL
        for cell in found.cells:
            assert not cell.get("outputs") and set(cell.metadata) <= {"nbgrader"}


# ---- layouts ----


@pytest.mark.parametrize(
    "name",
    [
        "li/ex06_rope.ipynb",
        "li/ex06_rope/ex06_rope.ipynb",
        "li/ex06_rope (1).ipynb",
        "li/ex06_rope-copy1.ipynb",
        "li/ex06_rope-Copy2 (3).ipynb",
        "li/a/b/EX06_ROPE.ipynb",
        "li/ex06.ipynb",
        "li/ex06_rope/answer.ipynb",
        "ex06_rope_li.ipynb",
        "li_ex06-rope.ipynb",
        "li/ex06_rope.ipynb.json",
        "li/ex06_rope_final.ipynb",
    ],
)
def test_layout(inbox, name):
    put(inbox / name, text())
    taken = only(inbox)
    assert (taken.student, taken.assignment, taken.state) == ("li", "ex06_rope", "taken")
    assert taken.seconds_of_upload == 1_700_000_000
    stamp = taken.path.with_name("timestamp.txt").read_text()
    assert stamp == "2023-11-14 22:13:20.000000 UTC"


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("li/work.zip", "ex06_rope.ipynb"),
        ("li.zip", "li/ex06_rope.ipynb"),
        ("ex06_rope_li.zip", "x/mine.ipynb"),
        ("li/ex06_rope.zip", "ex06_rope/ex06_rope.ipynb"),
    ],
)
def test_zip(inbox, name, member):
    put(inbox / name, packed({member: text(), "__MACOSX/._ex06_rope.ipynb": b"\0", "data.csv": b"1"}))
    taken = only(inbox)
    assert (taken.student, taken.assignment, taken.state) == ("li", "ex06_rope", "taken")


def test_several_uploads_one_outcome(inbox):
    put(inbox / "li/ex06_rope.ipynb", text(source="old"), 1000)
    put(inbox / "li/ex06_rope (1).ipynb", text(source="new"), 2000)
    put(inbox / "li/ex06_rope (2).ipynb", b"", 3000)
    put(inbox / "li/notes.txt", b"hello")
    taken = only(inbox)
    assert json.loads(taken.path.read_text())["cells"][0]["source"] == "new"
    assert taken.seconds_of_upload == 2000
    assert "'ex06_rope (2).ipynb' could not be used: The file is empty." in taken.reason
    assert "'ex06_rope.ipynb' is older" in taken.reason


def test_two_exercises_of_one_student(inbox):
    put(inbox / "li/all.zip", packed({"ex06_rope.ipynb": text(), "ex07_alibi.ipynb": b"{"}))
    found = intake.take_in(inbox, inbox.parent, NAMES)
    assert [(t.assignment, t.state) for t in found] == [("ex06_rope", "taken"), ("ex07_alibi", "rejected")]


def test_newer_replaces_and_keeps_the_earlier(inbox):
    path = put(inbox / "li/ex06_rope.ipynb", text(source="one"), 1000)
    first = only(inbox)
    kept = first.path.read_bytes()
    put(path, text(source="two"), 2000)
    second = only(inbox)
    assert second.sha256 != first.sha256
    assert first.path.with_name("ex06_rope.ipynb.earlier").read_bytes() == kept
    put(path, text(source="two"), 3000)  # sent again unchanged: the first time counts
    assert only(inbox).seconds_of_upload == 2000
    put(path, text(source="one"), 1500)  # an older upload does not come back
    assert only(inbox).sha256 == second.sha256
    put(path, b"broken", 4000)
    still = only(inbox)
    assert still.state == "taken" and still.sha256 == second.sha256 and "earlier one counts" in still.reason


def test_rejection_goes_when_a_good_upload_comes(inbox):
    path = put(inbox / "li/ex06_rope.ipynb", b"", 1000)
    assert only(inbox).state == "rejected"
    put(path, text(), 2000)
    assert only(inbox).state == "taken"


# ---- contents ----


def deep() -> bytes:
    return b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


REJECTED = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "truncated": (text()[:-40], "truncated"),
    "truncated string": (text()[:60], "truncated"),
    "binary": (bytes(range(256)), "binary"),
    "pdf": (b"%PDF-1.4 x", "binary"),
    "zip under a notebook's name": (packed({"a": b"b"}), "binary"),
    "conflict": (
        b'{\n<<<<<<< HEAD\n "cells": [],\n=======\n "cells": [1]\n>>>>>>> theirs\n}',
        "merge conflict",
    ),
    "damaged": (b'{"cells": [},\n1', "damaged in line 1"),
    "deep": (deep(), "nested too deeply"),
    "too many parts": (b"[" + b"[]," * 1_000_001 + b"[]]", "parts"),
    "large": (b'{"cells": [{"cell_type": "raw", "source": "' + b"x" * 20_000_000 + b'"}]}', "20 MB are read"),
    "cells": (text(cells=[{"cell_type": "markdown", "source": ""}] * 2001), "2001 cells"),
    "no cells": (text(cells=[]), "no cells"),
    "not a notebook": (b'{"a": 1}', "no cells"),
    "a list": (b"[1]", "no cells"),
    "a number": (b"9" * 5000, "damaged"),
    "cell of no kind": (text(cells=[{"cell_type": "video"}]), "neither code nor text"),
    "cell that is a number": (text(cells=[7]), "neither code nor text"),
    "source that is a number": (text(cells=[{"cell_type": "code", "source": 7}]), "holds no text"),
    "format 9": (text(nbformat=9), "format 9"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_rejected_with_a_reason(inbox, case):
    data, words = REJECTED[case]
    put(inbox / "li/ex06_rope.ipynb", data)
    taken = only(inbox)
    assert taken.state == "rejected" and words in taken.reason, taken.reason


OLD = {
    "nbformat": 3,
    "metadata": {},
    "worksheets": [
        {
            "cells": [
                {"cell_type": "heading", "level": 2, "source": ["Title"]},
                {"cell_type": "code", "input": ["x = 1\n", "y = 2"], "outputs": []},
            ]
        }
    ],
}
TAKEN = {
    "utf-16": (json.dumps(notebook()).encode("utf-16"), "UTF-16"),
    "utf-16 without a mark": (json.dumps(notebook()).encode("utf-16-le"), "UTF-16"),
    "utf-8 mark": (b"\xef\xbb\xbf" + text(), "byte order mark"),
    "latin letters": (
        json.dumps(notebook("# naïve"), ensure_ascii=False).encode("latin-1"),
        "not stored as UTF-8",
    ),
    "format 3": (json.dumps(OLD).encode(), "old format 3"),
    "unknown kernel": (text(metadata={"kernelspec": {"name": "conda-env-li"}}), "'conda-env-li'"),
    "no metadata": (text(metadata=None), ""),
    "lone surrogate": (text(source="x = '\ud800'"), ""),
    "nothing to say": (text(), ""),
}


@pytest.mark.parametrize("case", TAKEN)
def test_taken_with_a_remark(inbox, case):
    data, words = TAKEN[case]
    put(inbox / "li/ex06_rope.ipynb", data)
    taken = only(inbox)
    assert taken.state == "taken" and (words in taken.reason if words else not taken.reason), taken.reason


WORDS = {
    "gb18030": "旋转矩阵保持长度不变，因为它是正交的。",
    "big5": "旋轉矩陣保持長度不變，因為它是正交的。",
    "cp1251": "Поворот сохраняет длину, поэтому всё зависит только от разности.",
    "cp1252": "L’angle dépend de la différence, déjà calculée.",
    "cp932": "回転行列は長さを保つので、内積は相対位置だけに依存する。",
    "cp949": "회전 행렬은 길이를 보존하므로 내적은 상대 위치에만 의존한다.",
}


@pytest.mark.parametrize("encoding", WORDS)
def test_text_that_is_not_utf8_is_read_by_evidence(inbox, encoding):
    data = json.dumps(notebook(WORDS[encoding]), ensure_ascii=False).encode(encoding)
    put(inbox / "li/ex06_rope.ipynb", data)
    taken = only(inbox)
    assert json.loads(taken.path.read_text(encoding="utf-8"))["cells"][0]["source"] == WORDS[encoding]
    assert f"read as {encoding}" in taken.reason
    assert taken.path.with_name("ex06_rope.ipynb.sent").read_bytes() == data


def test_one_bad_byte_changes_no_other_letter(inbox):
    data = json.dumps(notebook("Größer, 旋转, длина"), ensure_ascii=False).encode()
    put(inbox / "li/ex06_rope.ipynb", data.replace("旋".encode(), b"\xff"))
    taken = only(inbox)
    assert json.loads(taken.path.read_text(encoding="utf-8"))["cells"][0]["source"] == "Größer, �转, длина"
    assert "shown as �" in taken.reason


def test_old_format_keeps_its_cells(inbox):
    put(inbox / "li/ex06_rope.ipynb", json.dumps(OLD).encode())
    cells = json.loads(only(inbox).path.read_text())["cells"]
    found = [(cell["cell_type"], cell["source"]) for cell in cells]
    assert found == [("markdown", "## Title"), ("code", "x = 1\ny = 2")]


def test_ids_are_repaired(inbox):
    cells = [
        {"cell_type": "code", "source": f"{n}", "metadata": {"nbgrader": {"grade_id": "answer"}}, **more}
        for n, more in enumerate([{}, {"id": "same"}, {"id": "same"}, {"id": "not valid!"}])
    ]
    put(inbox / "li/ex06_rope.ipynb", text(cells=cells))
    taken = only(inbox)
    found = json.loads(taken.path.read_text())["cells"]
    assert len({cell["id"] for cell in found}) == 4 and found[1]["id"] == "same"
    assert [cell["metadata"]["nbgrader"]["grade_id"] for cell in found] == ["answer"] * 4


def test_only_pictures_stay_attached(inbox):
    cell = {
        "cell_type": "markdown",
        "source": "![](attachment:a.png)",
        "attachments": {
            "a.png": {"image/png": "iVBORw0KGgo=", "text/html": "PHNjcmlwdD4="},
            "b.svg": {"image/svg+xml": "x"},
        },
    }
    put(inbox / "li/ex06_rope.ipynb", text(cells=[cell]))
    (found,) = json.loads(only(inbox).path.read_text())["cells"]
    assert found["attachments"] == {"a.png": {"image/png": "iVBORw0KGgo="}}


# ---- things that are no files ----


def test_links_are_not_followed(inbox, tmp_path):
    secret = put(tmp_path / "secret/ex06_rope.ipynb", text(source="secret"))
    (inbox / "a").mkdir()
    (inbox / "a/ex06_rope.ipynb").symlink_to(secret)
    (inbox / "b").mkdir()
    (inbox / "b/ex06_rope").symlink_to(secret.parent)
    (inbox / "ex06_rope_c.ipynb").symlink_to(secret)
    for taken in intake.take_in(inbox, tmp_path, NAMES):
        assert (taken.assignment, taken.state) == ("ex06_rope", "rejected") and "a link" in taken.reason
    assert not (tmp_path / "submitted").exists()


def test_pipe_folder_and_sparse_file(inbox, tmp_path):
    for student in "abc":
        (inbox / student).mkdir()
    os.mkfifo(inbox / "a/ex06_rope.ipynb")
    (inbox / "b/ex06_rope.ipynb").mkdir()
    with open(inbox / "c/ex06_rope.ipynb", "wb") as file:
        file.truncate(1 << 40)
    a, b, c = intake.take_in(inbox, tmp_path, NAMES)
    assert {a.state, b.state, c.state} == {"rejected"}
    assert "a pipe" in a.reason and "empty" in b.reason and "100 MB" in c.reason


def test_files_refuse_in_plain_words(tmp_path):
    put(tmp_path / "in/file", b"12345")
    assert files.read(tmp_path / "in/file", 5) == b"12345"
    with pytest.raises(files.Refused, match="larger"):
        files.read(tmp_path / "in/file", 4)
    with pytest.raises(files.Refused, match="a folder"):
        files.read(tmp_path / "in", 4)
    with pytest.raises(files.Refused, match="device"):
        files.read(intake.Path("/dev/null"), 4)
    (tmp_path / "there").symlink_to(tmp_path / "in")
    with pytest.raises(files.Refused, match="a link"):
        files.read(tmp_path / "there/file", 9, tmp_path)
    assert files.read(tmp_path / "there/file", 9, tmp_path / "there") == b"12345"  # the root is trusted
    with pytest.raises(ValueError, match="is not below"):
        files.read(tmp_path / "in/../in/file", 9, tmp_path)


def test_replace_is_whole_and_does_not_write_through_a_link(tmp_path):
    target = put(tmp_path / "target", b"keep")
    (tmp_path / "link").symlink_to(target)
    assert files.replace(tmp_path / "link", b"new") is True
    assert target.read_bytes() == b"keep" and not (tmp_path / "link").is_symlink()
    assert files.replace(tmp_path / "link", b"new") is False
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        files.replace(tmp_path / "folder", b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "link", "target"]  # nothing is left over


# ---- zip files with ill will ----


def locked() -> bytes:
    data = bytearray(packed({"ex06_rope.ipynb": text()}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def lying() -> bytes:
    """A member of 30 MB that claims to have 10 bytes."""
    data = bytearray(packed({"ex06_rope.ipynb": b"x" * 30_000_000}))
    for at in (22, data.index(b"PK\x01\x02") + 24):
        data[at : at + 4] = struct.pack("<I", 10)
    return bytes(data)


def linked() -> bytes:
    info = zipfile.ZipInfo("ex06_rope.ipynb")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return packed({info: b"/etc/passwd"})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (packed({"../../ex06_rope.ipynb": text()}), "leads out"),
        (packed({"/ex06_rope.ipynb": text()}), "leads out"),
        (packed({"ex06_rope.ipynb": b" " * 19_000_000}), "too large"),
        (packed({"ex06_rope.ipynb": b"x" * 30_000_000}), "too large"),
        (packed({f"{n}.txt": b"" for n in range(1001)}), "more than 1000 files"),
        (linked(), "a link"),
        (locked(), "password"),
        (lying(), "damaged"),
        (b"PK\x03\x04 no", "damaged"),
        (packed({"ex06_rope.txt": b"x"}), "no notebook"),
        (packed({"ex06_rope.zip": packed({})}), "no notebook"),
    ],
    ids=["up", "root", "spaces", "letters", "many", "linked", "locked", "lying", "cut", "text", "zip-in-zip"],
)
def test_hostile_zip(inbox, tmp_path, data, words):
    put(inbox / "li/ex06_rope.zip", data)
    taken = only(inbox)
    assert taken.state == "rejected" and words in taken.reason, taken.reason
    assert not list(tmp_path.parent.glob("*.ipynb"))


def test_many_members_are_too_large_together(inbox, monkeypatch):
    monkeypatch.setattr(intake, "MOST_UNPACKED_BYTES", 2 * len(text()))
    put(inbox / "li/ex06_rope.zip", packed({f"{n}/ex06_rope.ipynb": text() for n in range(3)}))
    taken = only(inbox)
    assert taken.state == "taken" and taken.reason.count("too large") == 1


# ---- names ----

STRANGE = [
    "a=b",
    "a,b",
    "a\nb",
    "$(id)",
    "`id`",
    "Zoë Müller",
    "李雷",
    "-rf",
    "--help",
    "x" * 250,
    "a b",
    "..a",
    "'; DROP TABLE student; --",
    '"><script>alert(1)</script>'.replace("/", "\\"),
    "feedback",
    "=HYPERLINK(1)",
    os.fsdecode(b"\xff\xfe"),
]


def test_strange_names(inbox, tmp_path):
    for name in STRANGE:
        put(inbox / name / "ex06_rope.ipynb", text())
    found = [t for t in intake.take_in(inbox, tmp_path, NAMES)]
    names = json.loads((tmp_path / "students.json").read_text())
    assert sorted(names[t.student] for t in found) == sorted(STRANGE)  # reversible, and nobody is lost
    for taken in found:
        check(tmp_path, taken)
        assert taken.student.isascii() and taken.student[0].isalnum() and len(taken.student) <= 60
        assert set(taken.student) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def test_strange_file_names(inbox):
    put(inbox / "li" / "ex06_rope\n$(id),=1.ipynb", b"")
    assert "\n" not in only(inbox).reason


def test_a_name_that_looks_like_anothers_id(inbox, tmp_path):
    put(inbox / "a b" / "ex06_rope.ipynb", text())
    put(inbox / intake.safe_id("a b") / "ex06_rope.ipynb", text(source="other"))
    one, two = intake.take_in(inbox, tmp_path, NAMES)
    assert one.student != two.student and one.sha256 != two.sha256


def test_nobody_is_lost(inbox, tmp_path):
    (inbox / "empty").mkdir()
    put(inbox / "other" / "homework.ipynb", text())
    put(inbox / "pdf" / "answers.pdf", b"%PDF")
    put(inbox / "ex06_rope.ipynb", text())
    put(inbox / "list.csv", b"names")
    os.makedirs(inbox / "deep" / "/".join("abcdefghijk"))
    for n in range(501):
        put(inbox / "many" / f"{n}.txt", b"")
    found = {t.student: t for t in intake.take_in(inbox, tmp_path, NAMES)}
    assert found.pop("").reason.startswith("'list.csv': it names neither")
    assert {t.state for t in found.values()} == {"rejected"}
    assert set(found) == {"empty", "other", "pdf", "unnamed", "deep", "many"}
    assert "ex06_rope.ipynb, ex07_alibi.ipynb" in found["other"].reason
    assert "whose it is" in found["unnamed"].reason and "deep" in found["deep"].reason
    (inbox / "other/homework.ipynb").rename(inbox / "other/ex06_rope.ipynb")
    intake.take_in(inbox, tmp_path, NAMES)
    assert not (tmp_path / "marks/_unknown/other.json").exists()


def test_without_an_inbox(tmp_path):
    with pytest.raises(FileNotFoundError, match="put the students' uploads there"):
        intake.take_in(tmp_path / "inbox", tmp_path, NAMES)
