"""The live explorers: sentences, each said once and in every language; what a page and Python get."""

import ast
import html
import re
from pathlib import Path

import nbformat
import pytest
import traitlets

from course import playground
from tutorial_lib.explorers import RotaryExplorer, live
from workshop import authoring, front, translation

ALL = live.everyone()
every_explorer = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.front)
WORD = re.compile(r"[A-Za-z]{2,}")


@pytest.mark.parametrize("path", filter(Path.exists, authoring.known()), ids=lambda path: path.stem)
def test_a_stored_picture_has_the_words_of_the_browser(path):
    kinds = {kind.front: kind for kind in ALL}
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            own = output.get("metadata", {}).get("live")
            if (
                own and own["name"] != playground.NAME
            ):  # its words say what it learned: tests/browser holds them
                alt = front.seen(kinds[own["name"]], **own["params"]).alt
                assert f'<img alt="{html.escape(alt)}" src="data:' in output.data["text/html"]


def test_every_template_of_the_source_is_a_message():
    known = {text for text, *_more in translation.messages(translation.EXPLORERS)}
    for file in live.HERE.glob("*.js"):
        source = re.sub(r"^\s*(//|/?\*).*", "", file.read_text(encoding="utf-8"), flags=re.M)
        texts = live.said(source)
        assert len(texts) == source.count("speak`") and known.issuperset(texts), file.name


def test_no_sentence_stands_in_python_and_in_javascript():
    """A label of a few words may: the length of the text is a parameter and an axis."""
    says = {
        text
        for file in live.HERE.glob("*.js")
        for text in live.messages(file.stem)
        if len(WORD.findall(text)) > 4
    }
    sources = [ast.parse(path.read_text(encoding="utf-8")) for path in live.HERE.parent.glob("*.py")]
    python = {
        node.value
        for source in sources
        for node in ast.walk(source)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(says) > 100 and not says & python


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("speak`a`", ["a"]),
        ("speak`a ${b} c ${`d ${e} }`} f`", ["a {0} c {1} f"]),
        ("speak`a ${b ? speak`c ${{ d: '}' }.d}` : \"`\"}`", ["a {0}", "c {0}"]),
        ("import { set,\n  speak } from 'kit';\nspeak`a`", ["a"]),
        ("export function speak(parts) {}", []),
        ("// speak`no`\nspeaks`b`", []),
    ],
)
def test_templates_are_read(source, texts):
    assert live.said(source) == texts


@pytest.mark.parametrize(
    "source",
    [
        "speak(text)",
        "const f = speak;",
        "speak`a ${b",
        "speak`a",
        "speak`a\nb`",
        "speak`a \\u2003`",
        "speak`{a}`",
        "speak``",
        "speak`a ${'b}`",
    ],
)
def test_a_template_that_cannot_be_read_is_told(source):
    with pytest.raises(ValueError, match="text|value"):
        live.said(source)


# ---- one text, three entries ----
def test_all_of_it_is_small():
    """All that a page takes to show one explorer, but for tables of pretrained models."""
    page = len(live.script().encode()) + len(live.style().encode())
    assert page < 40_000
    for kind in ALL:
        bulk = len(live.compact(kind.bulk()).encode())
        assert page + len(live.part(kind).encode()) - bulk < 70_000, kind.front


@every_explorer
def test_a_widget_carries_the_kit_its_own_module_and_its_own_table(kind):
    text = kind()._esm
    assert "import" not in re.findall(r"^\w+", text, re.M) and text.count("export ") == 1
    assert f'"python":"{kind.__name__}"' in text
    assert [other.front for other in ALL if f"\n{other.front}: (() => {{" in text] == [kind.front]


def test_names_of_two_modules_cannot_collide_and_comments_stay_at_home():
    text = live.script(ALL)
    assert "/**" not in text and "\n  " not in text and 'from "./kit.js"' not in text
    assert text.rstrip().endswith("})();")
    assert text.count("(window.liveExplorers ??= {}).") == len(ALL), "the only name in the page"


def test_an_apostrophe_cannot_leave_the_attribute():
    place = live.place("rotary", {"content": 'it\'s <"so">'}, "<img>")
    assert "'" not in place.split(">")[0].replace("&#x27;", "") and place.endswith("<img></div>")
    assert "data-small" in live.place("rotary", {}, small=True)


# ---- Python's side ----
@every_explorer
def test_python_sees_parameters_and_nothing_else(kind):
    explorer = kind()
    synced = {name for name in explorer.keys if not name.startswith("_")}
    assert synced - {"layout", "tabbable", "tooltip"} == {"params"}
    assert explorer.params == kind.settings()


def test_the_browser_and_python_move_the_same_parameters():
    explorer, heard = RotaryExplorer(m=30), []
    explorer.observe(lambda change: heard.append(change["new"]["n"]), "params")
    explorer.set_state({"params": explorer.params | {"n": 22}})  # as a browser does
    assert heard == [22]
    explorer.move(m=3)
    assert explorer.params["m"] == 3 and explorer.params["n"] == 22
    for wrong in ({"m": 99}, {"mm": 1}, {"base": "10"}):
        with pytest.raises((ValueError, traitlets.TraitError)):
            explorer.set_state({"params": explorer.params | wrong})
    assert explorer.params["m"] == 3
