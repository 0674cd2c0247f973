"""The atlas of positions: every decoder of Transformers is in it, and a few are measured again."""

import copy
import re
import tomllib
import warnings
from datetime import date
from importlib import metadata
from pathlib import Path

import pytest
from transformers import AutoConfig

from course import atlas
from tutorial_lib import from_config
from tutorial_lib.encodings import Rotary
from tutorial_lib.readability import alt_fault
from workshop.atlas import record, tiny

ROWS = {each["type"]: each for each in atlas.record()["rows"]}
AGAIN = ("gpt2", "bloom", "gemma3_text", "mamba", "smollm3", "lfm2")


def missing(rows):
    """The types of Transformers that have neither a row nor a reason."""
    return [name for name in tiny.types() if not {"runs", "text", "why"} & rows.get(name, {}).keys()]


def test_every_decoder_has_a_row_or_a_reason():
    assert not missing(ROWS), "python -m workshop.atlas NAME … measures them"
    assert not ROWS.keys() - {*tiny.types()}
    assert missing(ROWS | {"llama": {}}) == ["llama"]
    assert atlas.record()["versions"]["transformers"] == metadata.version("transformers")
    for its in ROWS.values():
        if "text" in its:
            assert "runs" in ROWS[its["text"]] or "why" in ROWS[its["text"]]
        if "why" in its:
            assert len(its["why"]) > 15 and "\n" not in its["why"]


@pytest.mark.parametrize("name", AGAIN)
def test_measured_again_it_is_the_same(name):
    with warnings.catch_warnings(action="ignore"):
        new = record.row(name)
    old = copy.deepcopy(ROWS[name])
    for its in (new, old):
        its.pop("largest")  # rounding that another processor may do otherwise
    assert new == old


def kinds(name):
    return [kind for kind, _window in atlas.layers(name)]


def test_what_is_known_of_a_few():
    assert {*kinds("llama")} == {"full"} and {*kinds("bloom")} == {"bias"} and {*kinds("gpt2")} == {"added"}
    assert {*kinds("mamba")} == {"state"}
    assert kinds("smollm3")[:4] == ["full", "full", "full", "none"]
    assert [window for _kind, window in atlas.layers("gemma3_text")][:6] == [True] * 5 + [False]
    assert {*kinds("deepseek_v3")} == {"part"}
    assert "absolute" in kinds("deepseek_v4")
    assert atlas.layers("gemma3") == atlas.layers("gemma3_text")


def test_a_layer_that_minds_its_neighbours_only_is_told_from_one_that_does_not():
    still = {
        "shift": 0.0,
        "stretch": 0.0,
        "swap": 0.0,
        "state": 0.0,
        "far": 0.0,
        "share": 0.0,
        "reach": None,
    }
    assert record.kind(still, False) == "none" and record.kind(still, True) == "added"
    assert record.kind(still | {"reach": 1}, False) == "alone"
    assert record.kind(still | {"swap": 0.1}, False) == "bias"
    assert record.kind(still | {"swap": 0.1, "state": 0.1}, False) == "state"
    turns = still | {"stretch": 0.5, "swap": 0.1, "share": 1.0, "shift": 1e-4}
    assert record.kind(turns, False) == "full" and record.kind(turns | {"share": 0.25}, False) == "part"
    assert record.kind(turns | {"shift": 0.1}, False) == "absolute"
    assert record.kind(turns | {"state": 0.1}, False) == "both"
    assert record.kind(still | {"far": 0.1}, False) == "sharp"


CHECKPOINTS = tomllib.loads(Path(tiny.__file__).with_name("checkpoints.toml").read_text(encoding="utf-8"))[
    "checkpoint"
]


@pytest.mark.parametrize("its", CHECKPOINTS, ids=lambda its: its["name"])
def test_a_checkpoint_has_its_source_and_is_read_by_from_config(its):
    """What the source leaves out is the default of the class here, and stays out of the page."""
    assert its.keys() == {"name", "source", "commit", "date", "config"}
    assert re.fullmatch(r"[\w.-]+/[\w.-]+, .+", its["source"]) and re.fullmatch("[0-9a-f]{7}", its["commit"])
    assert isinstance(its["date"], date) and {"model_type", "rope_theta"} <= its["config"].keys()
    config = AutoConfig.for_model(**its["config"])
    if "Qwen3-VL" in its["name"]:
        with pytest.raises(ValueError, match="mrope_section is missing"):  # the source has none
            from_config(config)
        return
    encodings = from_config(config)
    assert len(encodings) == its["config"].get("num_hidden_layers", len(encodings))
    bases = {each.frequencies.base for each in encodings if isinstance(each, Rotary)}
    assert bases == {
        its["config"][key] for key in ("rope_theta", "rope_local_base_freq") if key in its["config"]
    }


def test_twenty_checkpoints_differ_from_their_classes_where_it_is_known():
    found = {its["name"].rpartition("/")[2]: its["config"] for its in CHECKPOINTS}
    assert len(found) == 20
    assert found["c4ai-command-r7b-12-2024"]["num_hidden_layers"] == 32 < len(atlas.layers("cohere2"))
    assert found["gemma-3-1b-it"]["sliding_window"] < ROWS["gemma3_text"]["declared"]["window"]
    assert ROWS["qwen3_next"]["declared"]["base"] == [10_000]


def test_what_is_declared_is_what_is_measured():
    """Otherwise `from_config` misreads the type, as it once did Beam, or docs/atlas.md has to tell why."""
    found = [row["type"] for row in atlas.record()["rows"] if row.get("differs")]
    assert found == ["minimax"]


def test_a_name_that_is_not_there_is_an_error_that_helps():
    with pytest.raises(ValueError, match="'lama' is not in the atlas: .* It has afmoe"):
        atlas.layers("lama")


def test_strips_are_drawn():
    fig = atlas.strips("smollm3", "bloom")
    assert [text.get_text() for text in fig.axes[0].texts] == ["R", "N"] * 9 + ["b"], "where the kind changes"
    assert len(fig.axes[0].patches) == 4 * 9 + 2, "a box for each layer"
    assert sum("bias" in text.get_text() for text in fig.legends[0].get_texts()) == 1
    assert not alt_fault(f"Table with a row of boxes. SmolLM3: {atlas.in_words('smollm3')}.")
