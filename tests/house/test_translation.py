"""Another language: what is translated, what must not change, and how a stale translation shows."""

import ast
import functools
import itertools
import json
import re
import shutil
import statistics
from pathlib import Path

import nbformat
import pytest
import torch

from classroom import assignments, gradebook, marking, similarity
from course import atlas, checks, experiments
from course.checks import judge_process, report
from course.checks import questions as graded
from course.checks.answer import collect
from course.checks.judge import judge
from course.experiments import lengths, why_rope
from course.lab import __main__ as desk
from course.lesson import museum, predictions, questions, resume, turns
from tutorial_lib import conformance, readability
from tutorial_lib import language as spoken
from tutorial_lib.data import SOURCES
from tutorial_lib.language import _, joined, speaking, translated
from workshop import documents, navigation, pieces, slides, translation
from workshop.pieces import Say

NAMES = list(translation.sources())
LANGUAGES = translation.languages()
FIRST, EXERCISE = "01_permutation_invariance", "ex01_order"


class Made(Say):
    """A made-up language: ⟦text⟧, and in a row of a table each cell."""

    def __call__(self, text):
        row = text.startswith("|")
        return re.sub(r"[^|]*[A-Za-z]{2}[^|]*", r"⟦\g<0>⟧", text) if row else f"⟦{text}⟧"


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The library speaks the made-up language; its catalog has all texts of notebook and exercise 01."""
    names = translation.LIBRARY, translation.EXPLORERS, FIRST, EXERCISE
    known = {text for name in names for text, *_more in translation.messages(name)}
    translation.compile_texts({text: Made()(text) for text in known}, tmp_path / "xx")
    monkeypatch.setenv("TUTORIAL_LOCALE", str(tmp_path))
    monkeypatch.setenv("TUTORIAL_LANG", "xx")
    return tmp_path


# ---- nothing but words changes ----
@pytest.mark.parametrize("name", NAMES)
def test_said_in_english_a_notebook_is_itself(name):
    english = translation.read(name)
    again = translation.translate(name, lambda _name: Say())
    assert [cell.source for cell in again.cells] == [cell.source for cell in english.cells]


def without_fingerprint(cell):
    """The metadata of a cell, but for what an edition in another language adds."""
    return {key: value for key, value in cell.metadata.items() if key != assignments.PROSE}


@pytest.mark.parametrize("name", NAMES)
def test_in_another_language_it_has_the_same_cells_and_code(name):
    english, other = translation.read(name), translation.translate(name, lambda _name: Made())
    assert [(cell.id, cell.cell_type, without_fingerprint(cell)) for cell in other.cells] == [
        (cell.id, cell.cell_type, cell.metadata) for cell in english.cells
    ]
    for one, two in zip(english.cells, other.cells, strict=True):
        stub = "raise NotImplementedError(" in one.source
        assert one.cell_type != "code" or stub or pieces.same_code(one.source, two.source)
        assert not stub or "⟦" in two.source.partition("raise NotImplementedError(")[2]
    assert sum("⟦" in cell.source for cell in other.cells) > 5


@pytest.mark.parametrize(
    "one, other",
    [
        ('print(f"loss {x:.2f}")', 'print(f"loss {y:.2f}")'),
        ('print("loss", mean["a b"])', 'print("loss", mean["c d"])'),
        ('encode("The cat")', 'encode("Die Katze")'),
        ('claims.test("It is", holds=x > 1)', 'claims.test("It is", holds=x > 2)'),
        (
            '"{a:.2f} and {b}".format(a=1, b=2); print("{a} b".format(a=1))',
            '"{a:.2f} and {b}".format(a=1, b=2); print("b".format(a=1))',
        ),
    ],
    ids=["expression", "key", "input", "condition", "braces"],
)
def test_another_program_is_told(one, other):
    assert pieces.same_code(one, one) and not pieces.same_code(one, other)


def test_another_program_is_refused(monkeypatch):
    monkeypatch.setattr(pieces, "code", lambda cell, say: cell + "\nx = 1")
    with pytest.raises(ValueError, match="another program"):
        translation.translate(FIRST, lambda _name: Made())


def test_words_are_said_and_names_are_not():
    cell = (
        'x = load("a model")  # two words\nprint(f"mean {x[\'as trained\']:.2f} nats", sep="and")\n'
        'plots.show(plots.bars({"a key": 1, f"layer {n}": 2}, levels={"a line": 0}, title="a title"), '
        '"Bars of a mean.")'
    )
    assert pieces.code(cell, Made()) == (
        'x = load("a model")  # ⟦two words⟧\nprint(f"⟦mean {x[\'as trained\']:.2f} nats⟧", sep="and")\n'
        'plots.show(plots.bars({"a key": 1, f"⟦layer {n}⟧": 2}, levels={"⟦a line⟧": 0}, title="⟦a title⟧"), '
        '"⟦Bars of a mean.⟧")'
    )


def test_the_parts_of_a_claim_are_said():
    cell = 'claims.test("It is", {"one part": x > 1, "a key": x["a key"]}, f"got {x:.2f}")'
    assert pieces.code(cell, Made()) == (
        'claims.test("⟦It is⟧", {"⟦one part⟧": x > 1, "⟦a key⟧": x["a key"]}, f"⟦got {x:.2f}⟧")'
    )
    assert pieces.texts('print("a", {"no text": 1})') == []


def test_what_is_joined_is_said_once():
    cell = 'print("all:", ", ".join(f"{x:.2f} at {n} L" for n, x in z["a key"].items()), sep="or".join(y))'
    assert pieces.code(cell, Made()) == (
        'print("⟦all:⟧", ", ".join(f"⟦{x:.2f} at {n} L⟧" for n, x in z["a key"].items()), sep="or".join(y))'
    )


def test_labels_that_a_cell_gives_to_matplotlib_are_said():
    cell = (
        'ax.set(xlim=(0, 1), title=f"pair {t}\\n{x:.0f}°", xlabel="a channel")\n'
        'ax.set_ylabel("a pair", pad=3)'
    )
    assert pieces.code(cell, Made()) == (
        'ax.set(xlim=(0, 1), title=f"⟦pair {t}\\n{x:.0f}°⟧", xlabel="⟦a channel⟧")\n'
        'ax.set_ylabel("⟦a pair⟧", pad=3)'
    )


def test_what_dials_and_intervals_say():
    cell = (
        'plots.dials({f"place {p}": a[p] for p in b}, columns=[f"clock {t}" for t in c], title="hands")\n'
        'plots.forest({"a name": 1}, spread=spread, level=("no effect", 0), xlabel="a gain")'
    )
    assert pieces.code(cell, Made()) == (
        'plots.dials({f"⟦place {p}⟧": a[p] for p in b}, columns=[f"⟦clock {t}⟧" for t in c], '
        'title="⟦hands⟧")\n'
        'plots.forest({"a name": 1}, spread=spread, level=("⟦no effect⟧", 0), xlabel="⟦a gain⟧")'
    )
    assert pieces.names([cell]) == ["a name"]


def test_a_name_is_followed_through_the_values_of_a_dict():
    cells = [
        'LABELS = {"key one": "one label", "key two": "two labels"}\nTITLES = {"mean": "a mean"}',
        "tail = {label: load(name) for name, label in LABELS.items()}\n"
        "plots.lines(x, {n: y.mean(0) for n, y in tail.items()}, title=TITLES[what])\n"
        'for ax, part, title in zip(axes, ("a part", "another"), ("left one", "right one")):\n'
        "    plots.heat(z[part], title=title)\n"
        'plots.bars({NAMES[key]: 1 for key in z})\nNAMES = {"not shown": "shown name"}',
    ]
    assert sorted(pieces.names(cells)) == [
        "a mean",
        "left one",
        "one label",
        "right one",
        "shown name",
        "two labels",
    ]


def test_a_name_in_a_figure_is_found_where_it_stands():
    cells = [
        'MODELS = {"a table": Table, "no table": None}\nother = {"not shown": 1}\n'
        'def through(x):\n    return {"layer one": x, "layer two": x + 1}',
        'loss = {name: train(model) for name, model in MODELS.items()}\nloss["as trained"] = 2.0\n'
        'for ax, (title, z) in zip(axes, through("an input").items()):\n    plots.heat(z, title=title)\n'
        'for ax, kind in ((left, "old way"), (right, "new way")):\n    plots.heat(z, title=kind)\n'
        'plots.bars({name: x.mean() for name, x in loss.items()}, levels={"a guess": 1})\n'
        'plots.lines(x, {f"clock {t}": wave(t) for t in (0, 1)}, size=size["large one"])',
    ]
    assert sorted(pieces.names(cells)) == [
        "a table",
        "an input",
        "as trained",
        "layer one",
        "layer two",
        "new way",
        "no table",
        "old way",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_and_slides_are_not_looked_up_and_names_in_figures_are(language):
    said = translation.looked_up(language)
    notes = {text: note for text, _place, note in translation.messages("02_details")}
    title = "interleaved: fast to slow, once"
    assert title in said and notes[title] == pieces.NAME
    comment = next(text for text, note in notes.items() if note == pieces.COMMENT)
    answers = {text for text, _place, note in translation.messages("slides_02") if note == slides.NOTE}
    assert comment not in said and len(answers) > 30 and not answers & said.keys()


# ---- documents ----
@pytest.mark.parametrize("name", [name for name in documents.paths() if name != documents.GLOSSARY])
def test_said_in_english_a_document_is_itself(name):
    assert translation.document(name, lambda _name: Say()) == documents.read(name)


@pytest.mark.parametrize("name", [documents.README, documents.INDEX, documents.GLOSSARY, "setup"])
def test_in_another_language_no_words_of_a_document_escape(name):
    text = translation.document(name, lambda _name: Made())
    while "⟦" in text:
        text = re.sub("⟦[^⟦⟧]*⟧", "", text)
    if name == documents.GLOSSARY:  # a term and its name in English stay beside each other
        text = re.sub(r"^\| <a .*?\| .*? \|", "", text, flags=re.M)
    code = r"^```.*?^```$|`[^`]*`|\]\([^)]*\)|<[^>]+>"
    assert not re.search("[A-Za-z]{3,}", re.sub(code, "", text, flags=re.M | re.S))


def test_in_the_glossary_the_other_language_leads():
    pair = "Two channels with one frequency: a sine and a cosine; RoPE turns the two together."
    say = Say({pair: "一起转。"})
    text = translation.document(documents.GLOSSARY, lambda _name: say)
    assert '| <a id="pair"></a>维度对 | pair | 一起转。 | [02 ' in text
    mark = "<small>(not translated)</small>"
    english = "Interpolates slow pairs, leaves fast ones alone, and sharpens the scores a little."
    assert f"| YaRN | {english} {mark} | [08 " in text


def test_a_changed_block_of_a_document_is_english_with_a_mark(locale, monkeypatch):
    before = documents.read(documents.INDEX)
    monkeypatch.setattr(documents, "read", lambda name: before.replace("For everyone who", "For all who"))
    translation.stored(documents.INDEX, "zh").write_bytes(translation.updated(documents.INDEX, "zh"))
    translation.load.cache_clear()
    text = translation.document(documents.INDEX, translation.speakers("zh"))
    assert re.findall("^.*（未翻译）.*$", text, re.M) == [
        "**For whom?** For all who can read a little Python and has seen a matrix product. The [side quests]"
        "(../../notebooks/00_start_here.ipynb) go deeper. <small>（未翻译）</small>"
    ]


def test_links_of_a_document_that_is_kept_elsewhere_lead_to_the_same_files(tmp_path):
    text = '[a](docs/a.md#x) [b](https://b.org) [c](#c) <img src="docs/c.gif"> [own](docs/own.md)'
    assert documents.moved(text, tmp_path, tmp_path / "docs" / "own.md") == (
        '[a](a.md#x) [b](https://b.org) [c](#c) <img src="c.gif"> [own](../README.md)'
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_readme_of_a_language_follows_its_catalog_and_leads_back(language):
    text = translation.readme(language).read_text(encoding="utf-8")
    assert text == translation.readme_text(language), f"run `make locale LANGUAGE={language}`"
    english = documents.read(documents.README)
    assert "](../README.md)" in text and f"](docs/{translation.readme(language).name})" in english


# ---- stale or missing ----
def test_what_has_no_translation_is_english_with_a_mark():
    say = Say({"It moves.": "它会动。"}, {pieces.MARK: "（未翻译）"})
    said = pieces.prose("## A head\n\nIt moves.\n\n- It stays.\n\n| a row | 1 |", say)
    mark = "<small>（未翻译）</small>"
    assert said == f"## A head\n\n它会动。\n\n- It stays. {mark}\n\n| a row | 1 {mark} |"
    assert pieces.code("x = 1  # a name", say) == "x = 1  # a name （未翻译）"


@pytest.fixture
def locale(tmp_path, monkeypatch):
    """Catalogs that may be changed, with a copy of English that may be."""
    shutil.copytree(translation.LOCALE, tmp_path / "locale")
    monkeypatch.setattr(translation, "LOCALE", tmp_path / "locale")
    monkeypatch.setattr(translation, "load", functools.cache(translation.load.__wrapped__))
    monkeypatch.setattr(translation, "messages", functools.cache(translation.messages.__wrapped__))
    return tmp_path / "locale"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_changed_block_makes_its_own_translation_stale(locale, monkeypatch, capsys, language):
    before = translation.known("00_start_here", language)
    changed = translation.read("00_start_here").copy()
    changed.cells = [nbformat.from_dict(cell) for cell in changed.cells]
    (cell,) = [cell for cell in changed.cells if "A story begins." in cell.source]
    cell.source = cell.source.replace("A story begins.", "A nice story begins.")
    read = translation.read
    monkeypatch.setattr(translation, "read", lambda name: changed if name == "00_start_here" else read(name))
    assert translation.main(["check", language])
    assert f"00_start_here: run `make locale LANGUAGE={language}`" in capsys.readouterr().out
    text = translation.updated("00_start_here", language)
    translation.stored("00_start_here", language).write_bytes(text)
    translation.load.cache_clear()
    now = translation.known("00_start_here", language)
    assert text.decode().count("\n#, fuzzy") == 1 and "#| msgid" in text.decode()
    assert {*before} - {*now} == {each for each in before if "A story begins." in each}
    assert not [each for each in now if "A nice story begins." in each], "stale"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_catalogs_follow_the_english(language):
    stale = translation.stale(language)
    assert not stale, f"the English has changed: run `make locale LANGUAGE={language}`"


def test_the_page_says_what_is_translated():
    assert translation.PAGE.read_text(encoding="utf-8") == translation.page()


def test_the_page_names_what_is_still_to_do(monkeypatch):
    monkeypatch.setattr(translation, "coverage", lambda name, _language: (3 - (name == "06_rope"), 3))
    said = translation.page()
    assert "- zh, 06_rope: 2 of 3\n" in said and "everything is translated" not in said
    assert said.count(": 2 of 3") == len(LANGUAGES)


def test_what_chinese_lessons_say_of_a_chinese_text_is_in_its_record():
    """The English has nothing that they could be compared with."""
    record = experiments.load("lengths", "chinese")
    said = {name: "".join(translation.known(name, "zh").values()) for name in ("02_sinusoidal", "07_alibi")}

    def tail(name, at):
        return statistics.fmean(each[at] for each in lengths.losses(record, name, "tail"))

    first = [f"{tail(name, at):.2f}" for name in ("sinusoidal", "none") for at in (0, 1)]
    assert "正弦编码的损失从 {} 升到 {}，不带位置的只从 {} 升到 {}".format(*first) in said["02_sinusoidal"]
    assert "五个种子的平均" in said["02_sinusoidal"] and len(record.seeds) == 5
    rotary, alibi = (tail(name, -1) - tail(name, 0) for name in ("rotary", "alibi"))
    assert f"变化不到 0.01 nat，用 RoPE 的却升高 {rotary:.2f} nat" in said["07_alibi"] and abs(alibi) < 0.01


# ---- what a translation must keep ----
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_translation_is_broken(language):
    names = translation.catalogs(language)
    assert not [fault for name in names for fault in translation.faults(name, language)]
    left = [
        name
        for name in translation.catalogs(language)
        if "\n# |" in translation.stored(name, language).read_text("utf-8")
    ]
    assert not left, "an old English text stands as a comment"


@pytest.mark.parametrize(
    "english, said, fault",
    [
        ("Let $x$ be 2.", "设为 2。", "formulas"),
        ("see [it](a.ipynb)", "见[它](b.ipynb)", "links"),
        ("| a b | c |", "| 甲 |", "bars"),
        ("from 0.4 to 0.9", "从 0.4 到 0.8", "numbers"),
        ("**so**: it", "**因果（so）**的", "stars"),
        ("run `x`", "运行", "code"),
    ],
)
def test_a_broken_translation_is_found(english, said, fault):
    assert any(fault in found for found in pieces.faults(english, said, True))
    assert not pieces.faults(english, english, True)


def test_a_lost_brace_is_found():
    assert pieces.faults("{n} of 3", "3 个", False) == ["braces are not kept"]


@pytest.mark.parametrize("text", ["好,坏", "用RoPE", "好， 坏", "等等...", '好"坏', "您好"])
def test_the_rules_of_chinese_typography_catch(text):
    assert any(re.search(rule, text) for rule in translation.typography("zh").values())


def test_chinese_as_it_should_be_breaks_no_rule():
    text = "**轮到你了。** 用 `x` 写出 $p$ 的“损失”：0.5 nat（第 3 步）……好吗？"
    assert not [rule for rule in translation.typography("zh").values() if re.search(rule, text)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_rule_of_style_catches_its_example_and_not_what_it_advises(language):
    rules = [rule for rule in translation.style(language)["rules"] if rule["pattern"]]
    examples = [(bool(re.search(one["pattern"], one[key])), key) for one in rules for key in ("not", "but")]
    assert rules and all(caught == (key == "not") for caught, key in examples)
    assert not re.search(r"(?<![转跳移了混不带])过去", "转过去")
    unread = translation.style(language)["unread"]
    heard = [name for name in translation.catalogs(language) if not name.startswith(tuple(unread))]
    assert len(heard) > 40 and all(translation.ear(name, language) for name in heard)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_library_looks_up_has_one_translation(language):
    """One list of all texts is compiled: the same English may not be two things in two catalogs."""
    told = translation.looked_up(language)
    own = {
        text: said
        for name in (translation.EXPLORERS, translation.LIBRARY)
        for text, said in translation.known(name, language).items()
    }
    assert not {text: (said, told[text]) for text, said in own.items() if told[text] != said}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_learner_gets_nothing_of_what_is_for_teachers(language):
    """Decks and the guide tell answers."""

    def texts(names):
        return {text for name in names for text, *_rest in translation.messages(name)}

    names = translation.catalogs(language)
    teachers = {name for name in names if name.startswith(documents.GUIDE) or name in translation.decks()}
    only = texts(teachers) - texts({*names} - teachers)
    assert len(only) > 1000 and not only & translation.looked_up(language).keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_between_documents_lead_to_headings(language):
    """As GitHub and the site name them; the README stands among English pages, and leads to theirs."""
    says, seen = translation.speakers(language), 0
    there = {
        path: name
        for name, path in documents.paths().items()
        if name in translation.catalogs(language) and name != documents.README
    }
    made = {name: translation.document(name, says) for name in there.values()}
    ids = {
        name: {documents.slug(head) for head in re.findall(r"^#+ (.+)$", text, re.M)}
        | {*re.findall('id="([^"]+)"', text)}
        for name, text in made.items()
    }
    for path, name in there.items():
        for page, anchor in re.findall(r"\]\(([^()\s#]*\.md)?#([^()\s]+)\)", made[name]):
            target = (path.parent / page).resolve() if page else path
            if target in there:
                assert anchor in ids[there[target]], (name, page, anchor)
                seen += 1
    assert seen > 8
    assert "](setup.md#your-working-copy)" in translation.readme_text(language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_to_headings_lead_to_headings(language):
    says, wrong = translation.speakers(language), []
    translated = {name: translation.translate(name, says) for name in NAMES}
    prose = {
        name: "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        for name, notebook in translated.items()
    }
    heads = {
        name: {each.replace(" ", "-") for each in re.findall(r"^#+ (.+?)\s*$", text, re.M)}
        for name, text in prose.items()
    }
    for name, text in prose.items():
        for file, anchor in re.findall(r"\]\(([^()\s#:]*)#((?:[^()\s]|\([^()\s]*\))+)", text):
            target = Path(file).stem if file else name
            if not file.endswith(".md") and anchor not in heads.get(target, ()):
                wrong.append(f"{name}: {file}#{anchor}")
    assert not wrong


# What is English in any language: code, formulas, addresses, titles of works, quotes, terms in brackets.
SAME = (
    r'(?s)```.*?```|\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|<[^>]+>|\]\([^\s)]*(?: "[^"]*")?\)',
    r"\*\*|\{[^{}]*\}|[\[(][\w, ]+[\])]",
    r"\*[^*]+\*|“[^”]*”|（[^（）]*）|noqa.*",
)


def english_left(notebook):
    """The runs of three English words, the first in small letters, that a reader of a notebook sees.

    Without those whose words are all words of the notebook's code: inputs, keys, names of arguments.
    """
    trees = [(cell, ast.parse(cell.source)) for cell in notebook.cells if cell.cell_type == "code"]
    seen = {cell.id: pieces.shown(tree) for cell, tree in trees}
    own = {id(part) for found in seen.values() for text in found for part in ast.walk(text)}
    names = " ".join(
        str(getattr(node, "value", None) or getattr(node, "id", None) or getattr(node, "arg", None))
        for _cell, tree in trees
        for node in ast.walk(tree)
        if id(node) not in own
    )
    for cell in notebook.cells:
        told = [cell.source]
        if cell.cell_type == "code":
            told = [pieces._spelled(node) for node in seen[cell.id]]
            told += [text for *_place, text in pieces.comments(cell.source)]
            told += re.findall(r'NotImplementedError\("(.*)"\)', cell.source)
        for text in [*told, *pieces.WORDS.findall(cell.source)]:
            for same in SAME:
                text = re.sub(same, " · ", text)
            for run in re.findall(r"\b[a-z][a-z'’-]+(?:,? [A-Za-z'’]{2,}){2,}", text):
                if not {*re.findall(r"\w+", run)} <= {*re.findall(r"[^\W_]+", names)}:
                    yield run


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_english_is_left_but_for_code_and_names(language):
    """In lessons, side quests and exercises; outputs follow from these and the library."""
    says = translation.speakers(language)
    left = {name: [*english_left(translation.translate(name, says))] for name in NAMES}
    assert not {name: found for name, found in left.items() if found}
    assert all(sum(1 for _run in english_left(translation.read(name))) > 40 for name in (FIRST, EXERCISE))


# ---- the library ----
def test_without_a_catalog_the_library_speaks_english(monkeypatch):
    monkeypatch.delenv("TUTORIAL_LANG", raising=False)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert _("Right.") == "Right." and predictions.texts() == {}
    monkeypatch.setenv("TUTORIAL_LANG", "no-such")
    assert _("Right.") == "Right."


@pytest.mark.parametrize(
    "data", [b"", b"x" * 99, b"\xde\x12\x04\x95" + b"\xff" * 40], ids=["empty", "text", "cut"]
)
def test_a_catalog_that_is_damaged_is_named_and_english_will_do(tmp_path, monkeypatch, data):
    (tmp_path / "yy").mkdir()
    (tmp_path / "yy" / "texts.mo").write_bytes(data)
    monkeypatch.setenv("TUTORIAL_LANG", "yy")
    monkeypatch.setenv("TUTORIAL_LOCALE", str(tmp_path))
    with pytest.warns(
        UserWarning, match=r"texts.mo is damaged .*workshop.translation build yy` makes it again"
    ):
        assert _("Right.") == "Right."


def test_the_notebook_that_runs_names_the_language(made, tmp_path, monkeypatch):
    monkeypatch.delenv("TUTORIAL_LANG")
    notebook = tmp_path / "one.ipynb"
    notebook.write_text(json.dumps({"metadata": {"language": "xx"}}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(notebook))
    assert _("Right.") == "⟦Right.⟧"
    other = tmp_path / "other.ipynb"
    other.write_text(json.dumps({"metadata": {"language": "../xx"}}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(other))
    assert spoken.language() == "en" and _("Right.") == "Right."


def test_questions_are_translated_and_their_names_are_not(made):
    asked = questions.find("check", "01.pool")
    assert asked["answer"] == "along" and asked["choices"]["along"] == "⟦Each word keeps the label it had.⟧"
    assert translated({"kind": "number", "within": 0.5}) == {"kind": "number", "within": 0.5}


def test_a_wrong_answer_is_told_in_the_readers_language(made, monkeypatch, tmp_path):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))
    shown = []
    monkeypatch.setattr(turns, "display", shown.append)
    wrong = turns.find("01.shuffled_scores").wrong[0]
    turns.your_turn("01.shuffled_scores", wrong.answer, seed=0)
    assert f"⟦{wrong.says}⟧" in shown[0].text and shown[0].verdict == "⟦✘ Not yet.⟧"
    assert "⟦Hint 1⟧" in shown[0]._repr_html_()
    turns.your_turn("01.shuffled_scores", lambda S, order: S.sin() + S, seed=0)
    assert "⟦With ⟦" in shown[1].text


@pytest.mark.parametrize(
    "sentences, text",
    [
        (["a.", "b."], "a. b."),
        (["甲。", "乙。"], "甲。乙。"),
        (["", "a.", ""], "a."),
        (["a.", "（乙）"], "a.（乙）"),
        (["甲。", "`b`"], "甲。`b`"),
    ],
)
def test_no_space_stands_beside_full_width_punctuation(sentences, text):
    assert joined(sentences) == text


def test_no_text_of_the_bug_museum_escapes(made):
    def left(text):
        for _each in range(4):  # from the inside
            text = re.sub(r"<pre>.*?</pre>|<div.*?</div>|<[^>]*>|⟦[^⟦⟧]*⟧", "", text, flags=re.DOTALL)
        return re.findall("[A-Za-z]{3,}", text)

    for (name, exhibit), check in zip(museum.EXHIBITS.items(), itertools.cycle(museum.CHECKS), strict=False):
        visit = museum.visit(name)
        visit.choose(check)  # what a check says is made of the same words at each exhibit
        said = [visit.stored()[0]["text/html"], visit.status.value]
        visit.name_line(museum.wrong_lines(exhibit)[0])
        assert not left(" ".join([*said, visit.told.value])), name
    assert not left(" ".join(cell for row in museum.tour().rows() for cell in row))


def test_no_text_of_an_ending_escapes():
    """What has words and a space in it, and is no docstring, is a message to the letter."""
    messages = {text for text, *_more in translation.messages(translation.LIBRARY)}
    for path in sorted(translation.COURSE.glob("endings/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and re.search("[A-Za-z]{2} | [A-Za-z]{2}", str(node.value))
            and id(node) not in docstrings
        }
        assert texts <= messages, (path.name, texts - messages)


def figures_of_records():
    """What the lessons show of stored records: figures with alternative texts."""
    shown = {
        name
        for path in (*navigation.notebooks(translation.ROOT), *resume.quests(translation.ROOT))
        for name in re.findall(r"again with: \S+ -m \S+ run (\w+)", path.read_text(encoding="utf-8"))
    }
    assert {"word_order", "clipping", "hybrid", "lengths", "position_gap"} <= shown
    for name in (*sorted(shown - {"scoreboard"}), "long_range"):  # of the scoreboard a quest shows no figure
        record, each = experiments.load(name), experiments.find(name)
        yield each.figure(record), each.alt(record)
    records = {name: experiments.load(name) for name in why_rope.RECORDS}
    yield why_rope.figure(records), why_rope.alt(records)
    yield atlas.strips("llama", "bloom"), ""


def test_no_text_of_a_recorded_figure_escapes(made):
    names, escaped = "BLEU|MiB|llama|bloom", []
    for fig, alt in figures_of_records():
        fig.draw_without_rendering()
        said = [alt, *(text.get_text() for text in readability.texts(fig))]
        while said != (inner := [re.sub("⟦[^⟦⟧]*⟧", "", text) for text in said]):
            said = inner
        escaped += [text for text in said if re.search("[A-Za-z]{2}", re.sub(rf"\$.*\$|{names}", "", text))]
    assert not escaped


def test_a_report_on_position_code_is_in_the_language_of_its_reader(made):
    def rotate(x, positions):
        angles = (positions[..., None] + 1) * 10_000.0 ** (-torch.arange(0, 64, 2) / 64)
        (a, b), cos, sin = x.chunk(2, -1), angles.cos(), angles.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    said = "\n".join(
        line for each in conformance.check(rotate, layout="half").findings for line in each.lines()
    )
    assert "⟦golden values⟧: ⟦failed⟧. ⟦The numbers are those of a known bug.⟧" in said
    assert "positions from 1 – ⟦positions are counted from 1⟧" in said and "⟦do: ⟦the first token" in said


def test_the_script_of_the_cards_gets_its_words(made):
    words = predictions.texts()
    assert len(words) > 15 and all(said == f"⟦{text}⟧" for text, said in words.items())
    assert predictions.Prediction("01.swap", questions.find("predict", "01.swap")).texts == words


# ---- exercises ----
@pytest.fixture(scope="module")
def catalogs(tmp_path_factory):
    """The translations as they are kept, compiled."""
    folder = tmp_path_factory.mktemp("locale")
    for language in LANGUAGES:
        translation.compile_texts(translation.looked_up(language), folder / language)
    return folder


def verdicts(exercise, languages):
    """What right, wrong and broken answers to an exercise are told: for each, verdicts in each language."""
    for question in graded.load(exercise):
        cases, reference = question.cases(3), question.reference
        answers = [
            reference,
            *(each.answer for each in (*question.variants, *question.wrong)),
            lambda *args: None,
            lambda *args: object(),
            lambda *args, f=reference: torch.as_tensor(f(*args))[None],
            lambda *args, f=reference: torch.as_tensor(f(*args)) + 0.25,
            lambda *args, f=reference: torch.as_tensor(f(*args)) * torch.nan,
        ]
        for answer in answers:
            outcomes = collect(answer, [case.args for case in cases])
            for hidden in (False, True):
                told = []
                for language in languages:
                    with speaking(language):
                        told.append(judge(question, 3, outcomes, hidden))
                yield told


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_model_answer_has_the_docstring_of_the_notebook(catalogs, monkeypatch, language):
    monkeypatch.setenv("TUTORIAL_LOCALE", str(catalogs))
    turn = turns.find("02.angle")
    with speaking(language):
        said = turns._said(turn)
    assert turn.reference.__doc__ not in said and said != turns.solution(turn)
    assert pieces.same_code(said, turns.solution(turn)) and turns._said(turn) == turns.solution(turn)


TRANSLATED = [
    (name[2:4], language)
    for language in LANGUAGES
    for name in translation.catalogs(language)
    if re.match(r"ex\d", name)
]
TOLD = [each for each in TRANSLATED if int(each[0]) % 3 == 1]
"""Of these every answer is judged twice, which takes long; the texts of all are compared elsewhere."""


@pytest.mark.usefixtures("recorded_runs")
@pytest.mark.parametrize("exercise, language", TOLD)
def test_the_same_answer_is_judged_alike_and_told_in_the_language(exercise, language, catalogs, monkeypatch):
    monkeypatch.setenv("TUTORIAL_LOCALE", str(catalogs))
    english, other = zip(*verdicts(exercise, ("en", language)), strict=True)
    assert [(one.question, one.passed, one.kind, one.name, one.reread) for one in english] == [
        (one.question, one.passed, one.kind, one.name, one.reread) for one in other
    ]
    theirs = r"`.*?`|\w+Error: [ -~]+"  # code, and what Python says of an error
    left = [one.text for one in other if re.search(r"([A-Za-z]{2,} ){3}", re.sub(theirs, "", one.text))]
    assert not left and len({one.kind for one in other}) >= 6
    told = {each.says for question in graded.load(exercise) for each in question.wrong}
    assert len(told & {one.text for one in english}) > 40 and not told & {one.text for one in other}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_question_finds_by_itself_is_told_in_the_language(language, catalogs, monkeypatch):
    monkeypatch.setenv("TUTORIAL_LOCALE", str(catalogs))
    asked = {}
    for question in (each for name, one in TRANSLATED if one == language for each in graded.load(name)):
        for wrong in question.wrong if question.faults else ():
            cases = question.cases(3)
            for case, got in zip(cases, collect(wrong.answer, [each.args for each in cases]), strict=True):
                english = question.faults(got["value"], case)
                with speaking(language):
                    other = question.faults(got["value"], case)
                assert bool(english) == bool(other) and (not english or other != english), english
                asked.setdefault(question.name, set()).add(english)
    assert len(asked["predict_and_train"]) > 4 and all(len(texts) > 2 for texts in asked.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_stub_of_the_language_is_known_as_one_in_either(language, catalogs, monkeypatch):
    """Whoever has written the second answer before the first is told so."""
    monkeypatch.setenv("TUTORIAL_LOCALE", str(catalogs))
    (question,) = [each for each in graded.load("06") if each.name == "rope_rotate"]
    say = translation.speakers(language)(EXERCISE)
    source = translation.stub('raise NotImplementedError("rope_angles is not written yet")', say)

    def answer(*args):
        exec(source)

    outcomes = collect(answer, [case.args for case in question.cases(3)])
    assert "rope_angles is not" not in source and outcomes[0]["kind"] == "stub"
    with speaking(language):
        told = judge(question, 3, outcomes, False)
    assert told.kind == "stub" and "rope_angles" in told.text and "rope_rotate" in told.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translated_exercise_is_marked_as_the_english_one(language):
    english, other = (
        translation.read(EXERCISE),
        translation.translate(EXERCISE, translation.speakers(language)),
    )
    assert [(cell.id, without_fingerprint(cell)) for cell in other.cells] == [
        (cell.id, cell.metadata) for cell in english.cells
    ]
    assert sum(one.source != two.source for one, two in zip(english.cells, other.cells, strict=True)) > 25
    untouched = gradebook.graft(english, other)
    assert gradebook.digests(untouched) == gradebook.digests(english) and not gradebook.own(untouched)
    ran = [marking.grafted(nbformat.writes(each).encode(), EXERCISE)[0] for each in (english, other)]
    assert ran[0] == ran[1], "what was given out is run once, and in English"
    assert not [*similarity._answers(other, {cell.source for cell in english.cells})]
    for cell in other.cells:
        if "answer:pool_tokens" in cell.metadata.get("tags", []):
            cell.source = "def pool_tokens(h, is_token):\n    return h.mean(1)"
    marked, once = (gradebook.graft(english, each) for each in (other, english))
    code = [[cell.source for cell in each.cells if cell.cell_type == "code"] for each in (marked, once)]
    assert len(code[0]) == len(code[1])
    assert [one for one, two in zip(*code, strict=True) if one != two] == [
        "def pool_tokens(h, is_token):\n    return h.mean(1)"
    ]
    other.cells.insert(10, nbformat.v4.new_markdown_cell("A remark."))
    shown = gradebook.graft(english, other)
    prose = [
        [
            cell.source
            for cell in each.cells
            if cell.cell_type == "markdown" and "nbgrader" not in cell.metadata
        ]
        for each in (shown, other)
    ]
    assert prose[0] == prose[1]
    assert [cell.source for cell in gradebook.own(shown)] == ["A remark."]
    changed = next(cell for cell in other.cells if assignments.PROSE in cell.metadata)
    changed.source += "\n\nMy own words."  # the fingerprint no longer fits: nothing of it goes unseen
    assert any("My own words." in cell.source for cell in gradebook.graft(english, other).cells)


@pytest.mark.parametrize("exercise, language", TRANSLATED)
def test_what_to_read_again_is_a_heading_of_its_notebook(exercise, language, catalogs, monkeypatch):
    monkeypatch.setenv("TUTORIAL_LOCALE", str(catalogs))
    speakers = translation.speakers(language)
    written = functools.cache(lambda name: translation.translate(name, speakers))
    for question in graded.load(exercise):
        place = question.section.partition(",")[0]
        (name,) = (
            name
            for name, path in translation.sources().items()
            if re.search(f"notebooks/{place}(_[^/]*)?[.]ipynb$", path.as_posix())
        )
        notebook = written(name)
        heads = re.findall(r"^#+ (.+?)\s*$", "\n".join(cell.source for cell in notebook.cells), re.MULTILINE)
        with speaking(language):
            where = report._section(question.section)
        assert [head for head in heads if head in where] and question.section not in where


@pytest.fixture
def judged(made, tmp_path, monkeypatch):
    """A judging process that knows the made-up language, and a log of its own."""
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(report.plots, "show", lambda fig, alt: None)
    judge_process.stop()
    yield
    judge_process.stop()


def test_a_check_says_all_in_the_readers_language(judged, capsys, monkeypatch):
    with pytest.raises(checks.NotYet) as caught:
        checks.pool_tokens(lambda h, is_token: h.mean(1))
    checks.hint("pool_tokens")
    print(checks.progress("01"), caught.value, repr(checks.pool_tokens), checks.pool_tokens.__doc__)
    checks.model_answer("order_lost", "short")
    out = capsys.readouterr().out
    assert "✗ pool_tokens: ⟦All L rows" in out and "⟦Read again: ⟦01, section" in out
    while "⟦" in out:  # from the inside
        out = re.sub("⟦[^⟦⟧]*⟧", "", out)
    names = "|".join(question.name for question in graded.load("01"))
    assert not re.search("[A-Za-z]{3,}", re.sub(rf"\b({names})\b|<check\.", "", out)), out
    monkeypatch.delenv("TUTORIAL_LANG")
    with pytest.raises(checks.NotYet, match="^pool_tokens is not right yet; "):  # by the same process
        checks.pool_tokens(lambda h, is_token: h.mean(1))
    assert "✗ pool_tokens: All L rows are averaged, padding included." in capsys.readouterr().out


@pytest.mark.parametrize(
    "text, words",
    [
        ("the mean forgets the order", 5),
        ("", 0),
        ("平均忘掉了顺序。", 3),
        ("注意力是 equivariant，平均不是", 5),
        ("a – b", 3),
    ],
)
def test_an_answer_without_spaces_has_words_too(text, words):
    assert spoken.words(text) == words


# ---- a whole notebook ----
# Words of data and code stay English; all else that 01 shows is translated, a warm-up by the catalog of 00.
ENGLISH = re.compile(r"ANIMALS\[|sentence, output in|warm_up\(")


def test_a_notebook_runs_in_the_made_up_language_and_no_text_escapes(made, monkeypatch):
    monkeypatch.delenv("TUTORIAL_LOCALE")  # the one who builds has none: only the notebook's kernel gets it
    notebook = translation.translate(FIRST, lambda _name: Made())
    environment = {"TUTORIAL_LANG": "xx", "TUTORIAL_LOCALE": str(made)}
    (notebook,) = translation.run(
        [translation.Job(notebook, FIRST, environment, translation.sources()[FIRST].parent)]
    )
    escaped = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "live" in output.get("metadata", {}):
                alt = re.search('alt="([^"]*)"', output.data["text/html"])[1]
                assert alt.startswith("⟦An explorer, “⟦"), alt
            page = output.get("data", {}).get("text/html", "")
            page = re.sub("<pre>.*?</pre>|<[^>]*>", " ", page, flags=re.DOTALL)
            left = output.get("text", page)
            for _each in range(3):  # from the inside
                left = re.sub(r"⟦[^⟦⟧]*⟧|tensor\([^()]*\)", "", left)
            if not ENGLISH.search(cell.source) and re.search("[A-Za-z]{3,}", left):
                escaped.append(f"{cell.id}: {left[:200]!r}")
    assert not escaped


def test_the_tree_of_a_language_is_what_a_learner_gets(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(
        translation, "run", lambda jobs: (ran.append(job.name) or job.notebook for job in jobs)
    )
    for language in LANGUAGES:
        out = translation.build(language, folder=tmp_path)
        assert {path.relative_to(out) for path in out.rglob("*") if path.is_file()} == {
            *translation.served(translation.ROOT),
            Path("texts.mo"),
        }
        assert ran == [name for name in translation.catalogs(language) if name[:1].isdigit()]
        notebook = nbformat.read(out / "notebooks" / f"{ran[0]}.ipynb", as_version=4)
        assert notebook.metadata.language == language
        glossary = (out / "docs" / "glossary.md").read_text(encoding="utf-8")
        assert glossary == translation.document("glossary", translation.speakers(language))


def test_what_has_been_run_is_not_run_again_until_it_changes(tmp_path, locale, monkeypatch):
    ran, lessons = (
        [],
        [
            translation.sources()[name].relative_to(translation.ROOT)
            for name in ("00_start_here", FIRST, "02_sinusoidal")
        ],
    )  # as many as tell
    monkeypatch.setattr(translation, "served", lambda _course: lessons)
    monkeypatch.setattr(
        translation, "run", lambda jobs: (ran.append(job.name) or job.notebook for job in jobs)
    )
    translation.build("zh", folder=tmp_path)
    first = len(ran)
    translation.build("zh", folder=tmp_path)
    assert first == len(ran) >= 3
    for name, again in ((FIRST, [FIRST]), (translation.EXPLORERS, ran[:first])):  # explorers are everywhere
        before, changed = len(ran), translation.stored(name, "zh")
        text = changed.read_text(encoding="utf-8")
        changed.write_text(text.replace(old := {FIRST: "打乱"}.get(name, "查询"), "虎", 1), encoding="utf-8")
        assert old in text
        translation.load.cache_clear()
        translation.build("zh", folder=tmp_path)
        assert ran[before:] == again


def test_whoever_builds_one_notebook_keeps_what_the_others_gave(tmp_path, locale, monkeypatch):
    """Where a text has changed since, it stands above what the same code gave, until all run again."""
    ran, lessons = (
        [],
        [translation.sources()[name].relative_to(translation.ROOT) for name in ("00_start_here", FIRST)],
    )

    def run(jobs):
        for job in jobs:
            ran.append(job.name)
            for cell in job.notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs = [nbformat.v4.new_output("stream", text=f"运行 {len(ran)}")]
            yield job.notebook

    def given():
        text = (tmp_path / "zh" / lessons[0]).read_text(encoding="utf-8")
        return {*re.findall(r"运行 \d", text)}, text.count("运行"), "虎" in text

    monkeypatch.setattr(translation, "served", lambda _course: lessons)
    monkeypatch.setattr(translation, "run", run)
    translation.build("zh", folder=tmp_path)
    (first, count, _more), changed = given(), translation.stored("00_start_here", "zh")
    translation.build("zh", ("01",), tmp_path)
    assert given() == (first, count, False) == ({"运行 1"}, count, False) and count > 10 and len(ran) == 2
    changed.write_text(changed.read_text(encoding="utf-8").replace("猫", "虎"), encoding="utf-8")
    translation.load.cache_clear()
    translation.build("zh", ("01",), tmp_path)
    assert given() == (first, count, True) and len(ran) == 2
    translation.build("zh", folder=tmp_path)
    assert ran[2:] == ["00_start_here"] and given() == ({"运行 3"}, count, True)
    (tmp_path / "zh" / lessons[0]).unlink()  # nothing is left to keep: English, until its turn comes
    translation.build("zh", ("01",), tmp_path)
    assert not given()[0] and len(ran) == 3
    translation.build("zh", folder=tmp_path)
    assert ran[3:] == ["00_start_here"] and given()[0] == {"运行 4"}


def test_the_desk_opens_what_was_built_in_a_working_copy_of_its_own(tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(desk, "ROOT", tmp_path)
    monkeypatch.setattr(desk.working_copy, "renew", lambda *folders: opened.append(folders) or {})
    for name in ("sign", "lay"):
        monkeypatch.setattr(desk.server, name, lambda _mine: None)
    monkeypatch.setattr(desk, "start", lambda *_command: 0)
    with pytest.raises(SystemExit):
        desk.main(["--language", "xx"])
    assert "build/xx is missing" in capsys.readouterr().err
    (tmp_path / "build" / "xx" / "notebooks").mkdir(parents=True)
    assert desk.main(["--language", "xx"]) == desk.main([]) == 0
    assert opened == [(tmp_path / "build" / "xx", tmp_path / "mine-xx"), (tmp_path, tmp_path / "mine")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_model_is_is_told_in_the_readers_language(catalogs, monkeypatch, language):
    monkeypatch.setenv("TUTORIAL_LOCALE", str(catalogs))
    source = SOURCES["smollm2"]
    with speaking(language):
        told = source.history
    assert told != source.made == source.history and "2,048" in told
