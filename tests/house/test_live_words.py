"""The live explorers in other languages: nothing stays English, and numbers stay what they are."""

import functools
import json
import re

import pytest

from tutorial_lib.explorers import RotaryExplorer, live, positions, scoreboard
from tutorial_lib.language import speaking
from workshop import front, translation

ALL = live.everyone()
every_explorer = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.front)
MADE, BARE = "xx", "yy"
"""Made-up languages: in one every text stands in ⟦ ⟧, in the other nothing is left of it but its values."""
WORD = re.compile(r"[A-Za-z]{2,}")
NAMES = {  # words of data and signs of formulas, which are the same in every language
    "attention": "the cat sleeps",
    "permutation": "cat chases dog",
    "hybrid": "cat chases dog r_ij PE relu tanh",
    "positions": json.dumps(positions.record()),
    "relative": "clip bucket",
    "scaling": "LongRoPE Phi mini",
    "scoreboard": f"MiB KiB {' '.join(scoreboard.rows())}",
    "sinusoidal": "PE sin cos",
}


@functools.cache
def said_in(language, kind):
    """What the explorer shows and says at all of its settings."""
    with speaking(language):
        return front.ask(kind, *front.settings(kind))


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory):
    """The library finds the texts of the made-up language, and all translations as they are kept."""
    folder, texts = tmp_path_factory.mktemp("locale"), [*translation.messages(translation.EXPLORERS)]
    translation.compile_texts({text: f"⟦{text}⟧" for text, *_more in texts}, folder / MADE)
    bare = {text: " ".join(["⟦", *re.findall(r"\{\d+\}", text), "⟧"]) for text, *_more in texts}
    translation.compile_texts(bare, folder / BARE)
    for language in translation.languages():
        translation.compile_texts(translation.known(translation.EXPLORERS, language), folder / language)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUTORIAL_LOCALE", str(folder))
        yield folder


NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?")


@every_explorer
def test_no_word_stays_english_in_another_language(kind, catalogs):
    """Where a translation leaves nothing of a message but its values, only names and signs are words."""
    names = WORD.findall(NAMES.get(kind.front, ""))
    for said in said_in(BARE, kind):
        for text in (said.alt, said.description, said.reached, *said.readouts.values()):
            assert not set(WORD.findall(text)).difference(names), text


@pytest.mark.parametrize("language", translation.languages())
@every_explorer
def test_a_translated_sentence_has_the_numbers_of_the_english_one(kind, language, catalogs):
    for one, other in zip(said_in("en", kind), said_in(language, kind), strict=True):
        assert sorted(NUMBER.findall(one.alt)) == sorted(NUMBER.findall(other.alt)), other.alt
        assert sorted(NUMBER.findall(one.reached)) == sorted(NUMBER.findall(other.reached)), other.reached
        assert one.description != other.description


@every_explorer
def test_a_widget_and_a_page_speak_the_readers_language(kind, catalogs):
    assert "kit.learn({" not in live.module(kind) and "texts: {" not in live.part(kind)
    with speaking(MADE):
        explorer = kind()
        assert f'"challenge":"⟦{kind.challenge}⟧"' in explorer._esm and "kit.learn({" in explorer._esm
        for name, label in explorer.parameters.items():
            assert f'"label":"⟦{label.label or name}⟧"' in live.part(kind)
    assert explorer.params == kind.settings(), "values are names, and stay as they are"


def test_a_stored_output_speaks_the_readers_language(catalogs):
    with speaking(MADE):
        assert ">⟦A browser draws this explorer" in RotaryExplorer().stored()[0]["text/html"]
