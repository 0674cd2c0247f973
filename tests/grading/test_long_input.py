"""Whatever a student sends is read in a moment: no pattern is quadratic, and names have an end."""

import ast
import collections
import contextlib
import io
import json
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from re import _constants as kind
from re import _parser as parser

import nbformat
import pytest

from classroom import ballots, intake, roster, safe_html, similarity

ROOT = Path(intake.__file__).parents[1]
LONG = 100_000  # letters
MOMENT = 4  # seconds of processor time; a linear pattern takes 0.05, a quadratic one from 20 on


@contextlib.contextmanager
def in_a_moment(what, moment=MOMENT):
    """Fail as soon as it takes too long: a running pattern can be interrupted. Other programs don't count."""

    def stop(_number, _frame):
        pytest.fail(f"{what} took more than {moment} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, moment)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# ---- every pattern in the source ----
def text_of(node):
    """The pattern that is written there, with a name for what is filled in; None where it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "name" for part in node.values)
    return None


def patterns():
    """``(where, pattern, how)`` of all that grading and checks compile or use, ``how`` as it is used."""
    for path in sorted([*ROOT.glob("classroom/*.py"), *ROOT.glob("course/checks/*.py")]):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        ]
        used = {}
        for node in calls:
            if isinstance(node.func.value, ast.Name | ast.Attribute):
                name = node.func.value.id if isinstance(node.func.value, ast.Name) else node.func.value.attr
                used.setdefault(name, set()).add(node.func.attr)
        compiled = {
            id(node.value): node.targets[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in calls:
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
                continue
            if node.func.attr == "escape" or (text := text_of(node.args[0])) is None:
                # of stubs: texts as they are, and a name
                known = ("key", "pattern", "text", "'|'.join(stubs)")
                assert ast.unparse(node.args[0]) in known, "say here what this pattern is"
                continue
            at = {"compile": 1, "sub": 3, "subn": 3, "split": 3}.get(node.func.attr, 2)
            flags = next(
                (word.value for word in node.keywords if word.arg == "flags"),
                node.args[at] if len(node.args) > at else None,
            )
            flags = eval(ast.unparse(flags), {"re": re}) if flags is not None else 0
            methods = {node.func.attr}
            if node.func.attr == "compile":
                methods = used.get(compiled.get(id(node)), {"finditer"})
            for how in sorted(methods) if methods <= {"fullmatch", "match"} else ["finditer"]:
                yield f"{path.parent.name}/{path.name}:{node.lineno}", re.compile(text, flags), how
    for tag, allowed in safe_html.ATTRIBUTES.items():
        for name, text in allowed.items():
            yield f"safe.ATTRIBUTES {tag} {name}", re.compile(text), "fullmatch"


def samples(tokens):
    """Short texts that the pattern, or a branch of it, matches."""
    found = [""]
    for what, more in tokens:
        each = [""]
        if what is kind.LITERAL:
            each = [chr(more)]
        elif what is kind.NOT_LITERAL or what is kind.ANY:
            each = ["~"]
        elif what is kind.IN:
            each = [one_of(more)]
        elif what in (kind.MAX_REPEAT, kind.MIN_REPEAT):
            each = [text * max(1, more[0]) for text in samples(more[2])]
        elif what is kind.SUBPATTERN:
            each = samples(more[3])
        elif what is kind.BRANCH:
            each = [text for branch in more[1] for text in samples(branch)]
        found = [before + after for before in found for after in each]
    return found


def one_of(choices):
    what, more = choices[0]
    if what is kind.NEGATE:
        return "~"
    if what is kind.CATEGORY:
        return {kind.CATEGORY_DIGIT: "1", kind.CATEGORY_SPACE: " ", kind.CATEGORY_WORD: "a"}.get(more, "~")
    return chr(more[0] if what is kind.RANGE else more)


def attacks(pattern):
    """Long texts that nearly match: each letter of a match, or its beginnings, over and over."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    pumps = set()
    for sample in samples(parser.parse(text, pattern.flags & ~re.DEBUG)):
        pumps |= {
            (sample[:n], letter) for n in range(len(sample) + 1) for letter in {*sample[n : n + 1], " ", "1"}
        }
        pumps |= {("", sample[m:n]) for n in range(1, len(sample) + 1) for m in (0, n // 2) if m < n}
    for before, again in sorted(pumps):
        for end in ("", "\n/!"):
            long = before + again * (LONG // len(again) * (1 + len(again) // 8)) + end
            yield long if isinstance(pattern.pattern, str) else long.encode()


EVERY = list(patterns())


@pytest.mark.parametrize("where, pattern, how", EVERY, ids=[where for where, *_ in EVERY])
def test_no_pattern_is_quadratic(where, pattern, how):
    for text in attacks(pattern):
        with in_a_moment(f"{where}: {how} of {pattern.pattern!r} in {text[:40]!r}…"):
            found = getattr(pattern, how)(text)
            if how == "finditer":
                collections.deque(found, maxlen=0)


def test_all_patterns_are_found():
    """Those that the test above is about, and what it would say of the ones that there were."""
    assert {
        "classroom/intake.py",
        "classroom/roster.py",
        "classroom/ballots.py",
        "classroom/similarity.py",
        "checks/judge.py",
    } <= {where.split(":")[0] for where, *_ in EVERY}
    for old in (r"[ _-]*\(\d+\)$", r"vote-\d\d-[0-9a-f]{16}[^/]*\.json$", r"\w+\s*=\s*\w+;", r"(a|b|ab)*c"):
        with pytest.raises(pytest.fail.Exception, match="took more than"):
            for text in attacks(re.compile(old)):
                with in_a_moment(old, 0.5):
                    list(re.finditer(old, text))


# ---- what is made of them ----
NAMES = [
    "-",
    " (1)",
    "-copy",
    "_",
    "ex06_rope",
    "ex06",
    "(1",
    "1",
    "a_1",
    "_1_assignsubmission",
    ".ipynb",
    " ",
    "vote-06.random-1-0123456789abcdef",
    "vote-06.a",
    "\u0301",
    "म\u093e",
    "\u200d",
    "ſ",
    "İ",
]
WAYS = {
    "match": lambda name: intake.match(name, ["ex06_rope", "ex07_alibi"]),
    "sender": roster.sender,
    "is_vote": ballots.is_vote,
    "safe_id": intake.safe_id,
    "shown": intake.shown,
}
TEXTS = ["#", "'", '"', '"""', "'''", "r'", "\\", "a ", ".", "1", "%%time", "def ", "(", "[", "{", "\n", "*"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("again", NAMES)
def test_a_long_name_takes_a_moment(way, again):
    for end in ("", "!", "/x.json"):
        for before in ("", "a_1_1_"):
            name = before + again * (LONG // len(again)) + end
            with in_a_moment(f"{way} of {name[:40]!r}…"):
                WAYS[way](name)


@pytest.mark.parametrize("again", TEXTS)
def test_a_long_text_takes_a_moment(again):
    for text in (again * (LONG // len(again)), f"x {again * (LONG // len(again))}!"):
        for way in (similarity.code_tokens, similarity.word_tokens):
            with in_a_moment(f"{way.__name__} of {text[:40]!r}…"):
                way(text)


# ---- the teacher's command ----
def packed(names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, "x")
    return buffer.getvalue()


def test_one_zip_does_not_stop_the_others(room):
    """Names of members of up to 65,535 bytes, of all kinds that a pattern looks at."""
    inbox = room.root / "inbox"
    names = [
        again * (60_000 // len(again.encode())) + end
        for again in [*NAMES, "a/"]
        for end in (".ipynb", "!.ipynb", ".json")
    ]
    for student, data in (("eve", packed(names)), ("li", None)):
        (inbox / student).mkdir(parents=True)
        path = inbox / student / f"{room.name}.{'zip' if data else 'ipynb'}"
        path.write_bytes(data or nbformat.writes(room.released()).encode())
    begun = time.monotonic()
    take_in = [sys.executable, "-m", "classroom", "take-in", "--root", room.root, inbox]
    done = subprocess.run(take_in, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (room.root / "submitted" / "li" / room.name / f"{room.name}.ipynb").exists()
    said = json.loads((room.root / "marks" / room.name / "eve.json").read_text())["reason"]
    assert "letters; at most 255 are read. Rename it" in said and "1 rejected, 1 taken" in done.stdout
    assert time.monotonic() - begun < 60
