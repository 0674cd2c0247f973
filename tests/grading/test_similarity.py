"""Submissions that resemble each other are listed; what everybody has makes nobody alike."""

import json
import random

import pytest

from classroom import __main__ as command
from classroom import assignments, similarity

NAME = "ex06_rope"
CODE = """
def rope_angles(positions, dim, base):
    table = []
    for place in positions.tolist():
        row = [place / base ** (2 * pair / dim) for pair in range(dim // 2)]
        table.append(row + [])
    if not table:
        raise IndexError(positions)
    return torch.tensor(table, dtype=torch.float64).reshape(len(table), dim // 2).float()
"""
RENAMED = """
def rope_angles(p, d, b):
    # all mine
    rows = []
    for x in p.tolist():
        r = [x / b ** (2 * i / d) for i in range(d // 2)]
        rows.append(r + [])

    if not rows:
        raise IndexError(p)
    return torch.tensor(rows, dtype=torch.float64).reshape(len(rows), d // 2).float()
"""
WORDS = (
    "Each pair is turned by the same angle in both layouts, so the picture of one channel alone tells "
    "us nothing, while the partner of a channel sits next door in one of them and half a head away in "
    "the other."
)


def hand_in(root, student, **answers):
    notebook = json.loads(assignments.path(NAME, "exercises").read_bytes())
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = answers.get(name, "".join(cell["source"]))
    path = root / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))


def test_every_long_run_in_common_is_found():
    """What winnowing promises: w + k − 1 equal tokens share a fingerprint."""
    draw = random.Random(5)
    longest = similarity.WINDOW["code"] + similarity.RUN["code"] - 1
    for _ in range(200):
        a, b = ([str(draw.random()) for _ in range(80)] for _ in range(2))
        assert not similarity.fingerprints(a, "code") & similarity.fingerprints(b, "code")
        n, m = draw.randrange(80 - longest), draw.randrange(80 - longest)
        b[m : m + longest] = a[n : n + longest]
        assert similarity.fingerprints(a, "code") & similarity.fingerprints(b, "code")


def test_a_few_are_enough():
    assert similarity.fingerprints(["a"] * 3, "words") == set()
    assert len(similarity.fingerprints(list("abcdefg"), "words")) == 1


def test_other_names_and_comments_hide_nothing(tmp_path):
    hand_in(tmp_path, "ann", rope_angles=CODE)
    hand_in(tmp_path, "ben", rope_angles=RENAMED)
    hand_in(tmp_path, "cem", explain_rope_layout=WORDS)
    hand_in(tmp_path, "dan", explain_rope_layout="I say: " + WORDS)
    hand_in(tmp_path, "eve")
    rows = {(row["student"], row["other"]): row for row in similarity.compare(tmp_path, NAME)}
    assert set(rows) == {("ann", "ben"), ("cem", "dan")}
    assert rows["ann", "ben"]["code"] == 1 and rows["ann", "ben"]["words"] is None
    assert rows["cem", "dan"]["words"] > 0.8


def test_the_solution_the_notebook_and_what_many_have_make_nobody_alike(tmp_path):
    solved = json.loads(assignments.path(NAME, "solutions").read_bytes())
    right = {
        cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
        for cell in solved["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    }
    for student in ("ann", "ben"):
        hand_in(tmp_path, student, **right)
    for student in "cdefg":
        hand_in(tmp_path, student, rope_angles=CODE)
    assert similarity.compare(tmp_path, NAME) == []


def test_a_broken_notebook_stops_nobody(tmp_path):
    hand_in(tmp_path, "ann", rope_angles=CODE)
    hand_in(tmp_path, "ben", rope_angles=RENAMED)
    for n, text in enumerate(("{", "[]", '{"cells": [3]}')):
        path = tmp_path / "submitted" / f"odd{n}" / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert len(similarity.compare(tmp_path, NAME)) == 1


@pytest.mark.parametrize("copied", [True, False])
def test_the_command_writes_a_list_with_its_caveats(tmp_path, capsys, copied):
    hand_in(tmp_path, "ann", rope_angles=CODE)
    hand_in(tmp_path, "ben", rope_angles=RENAMED if copied else "def rope_angles(*args): pass")
    assert command.main(["alike", NAME, "--root", str(tmp_path)]) == 0
    assert "likeness" in capsys.readouterr().out
    text = (tmp_path / "likeness" / f"{NAME}.md").read_text()
    assert "proves nothing" in text
    assert ("| ann | ben | 100% |  |" in text) == copied and ("No two are alike" in text) != copied
