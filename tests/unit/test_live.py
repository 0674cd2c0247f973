"""The live explorers: the browser's numbers, sentences and verdicts are Python's, in every language."""

import functools
import json
import random
import re
import shutil
import subprocess

import numpy as np
import pytest
import traitlets

from tutorial_lib.explorers import RotaryExplorer, live
from tutorial_lib.explorers.parts import KINDS, Heat, Vectors
from tutorial_lib.language import speaking
from workshop import browser as browsers
from workshop import translation

ALL = live.everyone()
every_explorer = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.front)
MANY = 150  # settings of each explorer: half of them from its grid, half any
EDGES = {  # and what chance may miss
    "rotary": [{"m": 30, "n": 22}, {"pairs": 16, "pair": 8, "turning": "partial"}],
    "sinusoidal": [{"layout": "concatenated", "dimension": 8}],
    "crowd": [{"keys": 131072, "lead": lead} for lead in (11.75, 12, 12.25)]
    + [{"query": "Llama 4", "keys": 16384, "lead": 8.75}, {"query": "Scalable-Softmax", "lead": 3}],
    "relative": [
        {"tokens": 128, "method": "clipped", "size": 16},
        {"tokens": 128, "size": 16, "far": 16, "sign": "i − j"},
    ],
    "hybrid": [{"score": score, "guess": "off"} for score in ("w·p_j", "w·p_i", "relu(w·[p_i; r_ij])")],
    "scaling": [
        {"model": model, "method": "LongRoPE", "times": times, "pair": 30}
        for model in ("Phi-3.5-mini", "SmolLM2-135M")
        for times in (1, 1.5)
    ],
    "recurrence": [{"segment": 8, "memory": 1, "layers": 3, "query": query} for query in (22, 23)],
}
ASK = """asked.map(([name, p]) => ({ ...explorers[name].scene(p, data[name]),
    reached: explorers[name].reached(p, data[name]) }))"""


def settings(kind):
    """Settings with a fixed seed: corners of the grid, and any values."""
    dice = random.Random(19)
    found = [kind.settings(), *(kind.settings(**some) for some in EDGES.get(kind.front, []))]
    found += dice.sample(grid := list(kind.grid()), min(MANY // 2, len(grid)))
    while len(found) < MANY:
        params = {}
        for name, parameter in kind.parameters.items():
            params[name] = dice.choice(parameter.allowed(params))
        found.append(params)
    return found


MADE = "xx"
"""A made-up language, in which every text stands in ⟦ ⟧."""


@functools.cache
def asked():
    """Settings of all explorers, ``[name, parameters]``."""
    return [(kind.front, params) for kind in ALL for params in settings(kind)]


@functools.cache
def said_in(language):
    """What the browser's code says to all of them, by explorer: from node, or else from Chromium.

    Views, which are large, only in English.
    """
    ask = ASK if language == "en" else f"({ASK}).map(said => ({{ ...said, views: null }}))"
    with speaking(language):
        tables = {kind.front: live.table(kind) for kind in ALL}
        script = live.joined(*tables)
    script += f"const data = {json.dumps(tables)}, asked = {json.dumps(asked())};\n"
    if node := shutil.which("node"):
        done = subprocess.run(
            [node, "-"],
            input=f"{script}process.stdout.write(JSON.stringify({ask}));",
            capture_output=True,
            text=True,
            check=True,
            encoding="utf-8",
        )
        said = json.loads(done.stdout)
    else:
        try:
            with browsers.launch() as browser:
                said = browser.new_page().evaluate(f"() => {{ {script} return {ask}; }}")
        except RuntimeError as problem:
            pytest.skip(f"there is nothing to run JavaScript: {problem}")
    return {kind.front: said[MANY * n : MANY * (n + 1)] for n, kind in enumerate(ALL)}


@pytest.fixture(scope="module")
def answers():
    return said_in("en")


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory):
    """The library finds the texts of the made-up language, and all translations as they are kept."""
    folder, texts = tmp_path_factory.mktemp("locale"), translation.messages(translation.EXPLORERS)
    translation.compile_texts({text: f"⟦{text}⟧" for text, *_more in texts}, folder / MADE)
    for language in translation.languages():
        translation.compile_texts(translation.known(translation.EXPLORERS, language), folder / language)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUTORIAL_LOCALE", str(folder))
        yield folder


def numbers(view):
    """The numbers of a view in float64, ``[rows, columns]``."""
    if isinstance(view, Heat):
        return np.asarray(view.z, dtype=float)
    if isinstance(view, Vectors):
        return np.array([[float(x), float(y)] for x, y in view.ends.values()]).T
    return np.array([np.asarray(row, dtype=float) for row in (view.x, *view.ys.values())])


@every_explorer
def test_the_numbers_are_those_of_python(kind, answers):
    for params, said in zip(settings(kind), answers[kind.front], strict=True):
        views = kind.scene(**params).views
        assert list(said["views"]) == list(views) and tuple(view.kind for view in views.values()) in KINDS
        for name, view in views.items():
            exact, got = numbers(view), np.array(said["views"][name], dtype=float)
            assert got.shape == exact.shape, (params, name)
            gap = np.abs(got - exact) / np.maximum(1, np.abs(exact))
            if "degrees" in getattr(view, "ylabel", ""):
                gap = np.minimum(gap, np.abs(360 - np.abs(got - exact)))  # −180° is 180°
            assert np.array_equal(np.isnan(got), np.isnan(exact)) and np.nanmax(gap) < 1e-6, (params, name)


@every_explorer
def test_the_sentences_and_verdicts_are_those_of_python(kind, answers):
    won = 0
    for params, said in zip(settings(kind), answers[kind.front], strict=True):
        assert said["description"] == kind.scene(**params).description, params
        assert said["reached"] == kind.reached(**params), params
        readouts = {name: view.readout for name, view in kind.scene(**params).views.items()}
        assert said.get("readouts", {}).items() <= readouts.items(), params
        won += bool(said["reached"])
    assert won, "no setting of the sample meets the challenge: the verdicts were not compared"


# ---- other languages ----
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?")


@every_explorer
def test_python_and_the_browser_say_the_same_texts_in_another_language(kind, catalogs):
    """The same message for the same sentence: what Python leaves in English would differ."""
    both = [*zip(settings(kind), said_in(MADE)[kind.front], strict=True)]
    won = [each for each in both if each[1]["reached"]]
    assert won
    with speaking(MADE):
        for params, said in (*both[:12], *won[:2]):
            assert said["description"] == kind.scene(**params).description, params
            assert said["reached"] == kind.reached(**params) and said["description"][0] == "⟦", params
            readouts = {name: view.readout for name, view in kind.scene(**params).views.items()}
            assert said.get("readouts", {}).items() <= readouts.items(), params


@pytest.mark.parametrize("language", translation.languages())
@every_explorer
def test_a_translated_sentence_has_the_numbers_of_the_english_one(kind, language, catalogs, answers):
    changed = 0
    for one, other in zip(answers[kind.front], said_in(language)[kind.front], strict=True):
        for part in ("description", "reached"):
            assert sorted(NUMBER.findall(one[part])) == sorted(NUMBER.findall(other[part])), other[part]
        changed += one["description"] != other["description"]
    assert changed == MANY


@every_explorer
def test_a_widget_and_a_page_speak_the_readers_language(kind, catalogs):
    assert "kit.learn({" not in live.module(kind) and "texts: {" not in live.part(kind)
    with speaking(MADE):
        explorer = kind()
        assert f'"challenge":"⟦{kind.challenge}⟧"' in explorer._esm and "kit.learn({" in explorer._esm
        assert explorer.verdict == f"⟦Challenge: ⟦{kind.challenge}⟧ ⟦Not reached yet.⟧⟧"
        for name, label in explorer.parameters.items():
            assert f'"label":"⟦{label.label or name}⟧"' in live.part(kind)
    assert explorer.params == kind.settings(), "values are names, and stay as they are"


def test_the_alternative_text_of_a_stored_picture_is_in_the_readers_language(catalogs):
    with speaking(MADE):
        alt = RotaryExplorer().stored()[1]["image/png"]["alt"]
    assert alt.startswith("⟦Arrows beside lines.⟧ ⟦Query at ")


def test_every_template_of_the_source_is_a_message():
    known = {text for text, *_more in translation.messages(translation.EXPLORERS)}
    for file in live.HERE.glob("*.js"):
        source = re.sub(r"^\s*(//|/?\*).*", "", file.read_text(encoding="utf-8"), flags=re.M)
        texts = live.said(source)
        assert len(texts) == source.count("speak`") and known.issuperset(texts), file.name


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
    assert explorer.verdict == f"Challenge: {kind.challenge} Not reached yet."


def test_the_browser_and_python_move_the_same_parameters():
    explorer, heard = RotaryExplorer(m=30), []
    explorer.observe(lambda change: heard.append(change["new"]["n"]), "params")
    explorer.set_state({"params": explorer.params | {"n": 22}})  # as a browser does
    assert heard == [22] and explorer.verdict.endswith("n − m is -8 both times.")
    explorer.move(m=3)
    assert explorer.params["m"] == 3 and explorer.params["n"] == 22
    for wrong in ({"m": 99}, {"mm": 1}, {"base": "10"}):
        with pytest.raises((ValueError, traitlets.TraitError)):
            explorer.set_state({"params": explorer.params | wrong})
    assert explorer.params["m"] == 3


def test_a_stored_output_says_how_it_comes_to_life_again():
    data, metadata = RotaryExplorer(m=31)._repr_mimebundle_()
    assert metadata["live"] == {"name": "rotary", "params": RotaryExplorer.settings(m=31)}
    assert metadata["image/png"]["alt"] in data["text/html"] and data["image/png"]
