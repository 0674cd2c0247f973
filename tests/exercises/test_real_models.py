"""The endings of the exercises: the learner's functions in a real model, or a sentence on what is missing."""

import re
import warnings

import nbformat
import pytest
import torch

from classroom import stub_modules
from course import real_models
from course.checks import suspects
from course.real_models import minilm
from course.real_models.board import clocks
from tutorial_lib import plots
from workshop import exercises


def has_ending(name):
    cells = nbformat.read(exercises.path(name), as_version=4).cells
    return any("ending" in cell.metadata.get("tags", []) for cell in cells)


WITH_ENDING = [name for name in exercises.names() if has_ending(name)]


def code(name, folder, tag=""):
    """The sources of code cells, those with a tag or (for "") those that define answers, and imports."""
    for cell in nbformat.read(exercises.path(name, folder), as_version=4).cells:
        tags = cell.metadata.get("tags", [])
        plain = not tags and cell.source.startswith(("import", "from"))
        if cell.cell_type == "code" and (tag in tags if tag else plain or any("answer:" in t for t in tags)):
            yield cell.source


def answers(number):
    """The model answers of an exercise, by name."""
    (name,) = (each for each in exercises.names() if exercises.number(each) == number)
    space = {"__name__": "__main__"}
    for source in code(name, "solutions"):
        exec(source, space)
    return space


# ---- with unfinished functions ----
def test_every_exercise_has_one():
    assert WITH_ENDING == exercises.names()


@pytest.mark.parametrize("name", WITH_ENDING)
def test_with_nothing_written_an_ending_says_what_is_missing_and_raises_nothing(name, capsys):
    space = {"__name__": "__main__"}
    for source in code(name, "exercises"):
        exec(source, space)
    for source in code(name, "exercises", "ending"):
        exec(source, space)
    said = capsys.readouterr().out
    assert said.count("This ending waits for your `") >= 1 and "Traceback" not in said


@pytest.mark.parametrize("name", WITH_ENDING)
def test_an_ending_hides_no_error(name):
    for cell in nbformat.read(exercises.path(name), as_version=4).cells:
        if "ending" in cell.metadata.get("tags", []):
            assert "raises-exception" not in cell.metadata.tags
            assert cell.outputs or "import" not in cell.source, cell.source


def test_a_function_that_fails_is_named():
    def rope_angles(positions, dim, base):
        return positions / 0

    def yarn_theta(*args):
        raise ValueError

    assert real_models.missing(rope_angles) == ""
    assert "`yarn_theta`" in real_models.missing(rope_angles, yarn_theta)
    assert real_models.missing(lambda: 1) == ""


def test_marking_runs_no_ending():
    """The stand-in of the sandbox is false: what stands below ``if real_models.ready(…)`` is left out."""
    assert not stub_modules.Nothing("course.real_models.ready")()
    assert "real_models" in stub_modules.FREE


# ---- with the model answers ----
@pytest.fixture(scope="module")
def rope():
    space = answers("06")
    return real_models.RopeInSmolLM2(space["rope_angles"], space["rope_rotate"], space["cached_scores"])


def said_losses(capsys):
    return [float(number) for number in re.findall(r"\d+\.\d+", capsys.readouterr().out)]


TEXT = "The cat chases the dog. The dog chases the cat. Then the cat"


def test_smollm2_reads_with_the_learners_functions_as_with_ours(rope, capsys):
    rope.read(TEXT, at_once=5)
    at_once, in_pieces = said_losses(capsys)
    ours = rope.smollm2.losses(rope.smollm2.encode(TEXT)).mean().item()
    assert at_once == pytest.approx(ours, abs=2e-3) and in_pieces == pytest.approx(ours, abs=2e-3)


def test_planted_bugs_are_heard(rope, capsys):
    rope.read(TEXT, at_once=5)
    at_once, right = said_losses(capsys)
    for bug in real_models.BUGS:
        rope.read(TEXT, at_once=5, bug=bug)
        also_at_once, wrong = said_losses(capsys)
        assert wrong > right + 0.3
        assert (also_at_once == at_once) == (bug != "the other layout")


def test_it_talks_on_with_the_learners_functions(rope, capsys):
    rope.talk(TEXT, steps=3)
    assert capsys.readouterr().out.strip().endswith(rope.smollm2.continue_text(TEXT, 3).strip())


def test_what_stops_the_model_is_said(rope, capsys):
    broken = real_models.RopeInSmolLM2(rope.angles, lambda x, angles, layout: x[..., :1], rope.scores)
    broken.talk(TEXT)
    assert "Your functions stop the model: " in capsys.readouterr().out


def test_a_copy_after_a_gap_is_found_with_yarn_alone(capsys):
    theta = 1e5 ** (-torch.arange(0, 64, 2) / 64)
    new = answers("08")["yarn_theta"](64, 1e5, 4, 8192, 1, 32)
    real_models.after_a_gap({"raw": theta, "yarn": new}, length=60)
    _head, *lines, shared = capsys.readouterr().out.splitlines()
    raw, yarn = (line.split()[-3:] for line in lines if not line.startswith("<"))
    assert f"raw {raw[2]} | yarn {yarn[2]}" in shared
    assert float(raw[1]) < 1 < 2 < float(raw[2]) and float(yarn[2]) < 1.5


# ---- one picture, one line ----
def _heard(given):
    model = real_models.RopeInSmolLM2(given["rope_angles"], given["rope_rotate"], given["cached_scores"])
    model.talk("The cat", steps=1)
    model.read("The cat chases the dog.", at_once=4)
    model.keep()


def _after_a_gap(given):
    real_models.after_a_gap({"yours": given["yarn_theta"](64, 1e5, 4, 8192, 1, 32)}, length=12)


DESIGN = {"num_hidden_layers": 1, "head_dim": 8, "layer_types": ["full_attention"], "sliding_window": 4}
DESIGN |= {
    "sliding_window_pattern": 2,
    "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 16.0}},
}
ENDINGS = {  # what runs it, and another answer: its name, and how it differs from the model answer
    "01": (
        lambda given: real_models.who_chases(
            ["dog", "cat"], *(given[name] for name in ("pool_tokens", "causal_attention", "bag_ceiling"))
        ),
        "pool_tokens",
        lambda right: lambda h, is_token: right(h, is_token) * 0,
    ),
    "02": (
        lambda given: real_models.clocks(2017, 4, given["sinusoid_table"], given["shift_matrix"]),
        "shift_matrix",
        lambda right: lambda *args: right(*args).T,
    ),
    "03": (
        lambda given: real_models.ruler(given["sum_similarity"], given["longer_table"]),
        "longer_table",
        lambda right: lambda P, rows, way: right(P, rows, "copy"),
    ),
    "04": (
        lambda given: real_models.trained_buckets((3, 20), given["t5_bucket"], given["offset_mass"]),
        "t5_bucket",
        lambda right: lambda r, n, *others: (-r).clamp(0, n - 1),
    ),
    "05": (
        lambda given: real_models.term_by_term("The cat.", (3,), given["moved_mass"]),
        "moved_mass",
        lambda right: lambda *args: 2 * right(*args),
    ),
    "06": (_heard, "rope_angles", lambda right: lambda *args: -2 * right(*args)),
    "07": (
        lambda given: real_models.short_and_long(given["alibi_slopes"], given["alibi_bias"], (64, 128)),
        "alibi_slopes",
        lambda right: torch.zeros,
    ),
    "08": (_after_a_gap, "yarn_theta", lambda right: lambda *args: right(*args) / 40),
    "09": (
        lambda given: real_models.Lineup(7).look(given["offset_error"], A=given.get("verdict", "")),
        "verdict",
        lambda right: "right",
    ),
    "10": (
        lambda given: real_models.two_clocks(DESIGN, given["layer_dials"]),
        "layer_dials",
        lambda right: lambda design: torch.tensor([[2.0, 1, 9]]),
    ),
}


@pytest.mark.parametrize("number", ENDINGS)
def test_an_ending_leaves_a_picture_and_a_line_of_ones_own(number, monkeypatch, capsys):
    """Both are the same for the same answers, and the line is another one for another answer."""
    for module, steps in (("alibi", 6), ("board", 10), ("buckets", 10)):
        monkeypatch.setattr(f"course.real_models.{module}.STEPS", steps)
    shown = []
    monkeypatch.setattr(plots, "show", lambda fig, alt: shown.append((fig, alt)))
    run, name, differs = ENDINGS[number]
    given = answers(number)
    for each in (given, given, given | {name: differs(given.get(name))}):
        run(each)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing in it is hard to read
        assert plots.Picture(*shown[0]).png.startswith(b"\x89PNG")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("To share: ")]
    assert len(shown) == len(lines) == 3
    assert shown[0][1] == shown[1][1] and lines[0] == lines[1] != lines[2]


def test_clocks_are_read_by_the_table_that_told_them(capsys):
    space = answers("02")
    real_models.clocks(1842, 100, space["sinusoid_table"], space["shift_matrix"])
    line = capsys.readouterr().out.split("To share: ")[1].strip()
    real_models.read_clocks(f"look: {line}", space["sinusoid_table"])
    real_models.read_clocks(line, lambda *args: -space["sinusoid_table"](*args))
    real_models.read_clocks(line[1:], space["sinusoid_table"])
    read, other, short = capsys.readouterr().out.splitlines()
    real_models.clocks(0, 0, space["sinusoid_table"], space["shift_matrix"])
    assert "To share: " + 8 * "🕛" in capsys.readouterr().out, "at 0 all hands point up"
    assert read == "1942" and other != "1942" and "8 clocks; this one has 7" in short


def test_the_terms_of_a_head_add_up_to_what_minilm_does():
    """Against the scores of its first layer, worked out from the inputs as a whole."""
    tokens, terms = minilm.score_terms("The cat chased the dog.")
    assert tokens == ["[CLS]", "the", "cat", "chased", "the", "dog", ".", "[SEP]"]
    weight = minilm.weight
    ids = torch.tensor([101, 1996, 4937, 13303, 1996, 3899, 1012, 102])
    x = weight("embeddings.word_embeddings.weight")[ids] + weight("embeddings.position_embeddings.weight")[:8]
    x = x + weight("embeddings.token_type_embeddings.weight")[0]
    norm = "embeddings.LayerNorm."
    x = torch.nn.functional.layer_norm(x, (384,), weight(f"{norm}weight"), weight(f"{norm}bias"), 1e-12)
    q, k = (
        torch.nn.functional.linear(x, weight(f"{name}.weight"), weight(f"{name}.bias")).view(8, 12, 32)
        for name in ("encoder.layer.0.attention.self.query", "encoder.layer.0.attention.self.key")
    )
    assert torch.allclose(sum(terms.values()), torch.einsum("ihd,jhd->hij", q, k) / 32**0.5, atol=1e-3)


def test_the_share_of_attention_that_moves_without_a_term():
    """By hand for two keys, and in MiniLM: its third head lives by places, and moves as nothing else does."""
    log = torch.tensor([3.0, 1.0]).log().expand(12, 2, 2)  # weights 3/4 and 1/4, without it one half each
    terms = {"a": log, "the query's": torch.ones(12, 2, 2)}
    assert torch.allclose(minilm.share_moved(terms, "a"), torch.full((12,), 0.25))
    assert torch.allclose(minilm.share_moved(terms, "the query's"), torch.zeros(12), atol=1e-6)
    _tokens, terms = minilm.score_terms("The cat chased the dog.")
    moved = {name: minilm.share_moved(terms, name) for name in terms}
    assert moved["place · place"].argmax() == 2 and moved["place · place"][2] > 0.7
    assert max(each[2] for name, each in moved.items() if name != "place · place") < 0.3


def test_without_the_bonus_the_animals_run_and_say_what_is_missing(capsys):
    def bag_ceiling(sentences, answers):
        raise NotImplementedError

    space = answers("01")
    real_models.who_chases(["dog", "cat"], space["pool_tokens"], space["causal_attention"], bag_ceiling)
    said = capsys.readouterr().out
    assert "waits for your `bag_ceiling`" in said and "To share: dog > cat: without order 0.90 | " in said


# ---- five suspects ----
def offset_error(scores):
    return answers("09")["offset_error"](scores)


def test_a_lineup_shows_the_learners_measure_and_what_was_said_of_whom(monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(plots, "show", lambda fig, alt: shown.append(alt))
    truth = dict(zip("ABCDE", suspects.verdicts(7), strict=True))
    assert list(truth.values()) == [
        "positions restart",
        "",
        "only queries turned",
        "positions in bf16",
        "minus lost",
    ]
    lineup = real_models.Lineup(7)
    lineup.look(offset_error)
    lineup.look(offset_error, A="positions restart", B="right", C="sign", D="", E="right")
    assert (
        "D: 0.83, ?." in shown[0]
        and "A: 0.00, yes: positions restart. B: 0.00, yes: right. C: 0.00, not sign." in shown[1]
    )
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("To share")]
    assert lines == ["To share: five of 7: ⬜⬜⬜⬜⬜", "To share: five of 7: 🟩🟩🟥⬜🟥"]
    assert not any(name and name in shown[0] for name in truth.values())
    for letter, name in truth.items():
        assert lineup.question(letter).named == {name} - {""}


def test_every_suspect_can_be_looked_at(monkeypatch, capsys):
    monkeypatch.setattr(plots, "show", lambda fig, alt: None)
    for kind, _name, old, new in [*suspects.BUGS, *((kind, "", "", "") for kind in suspects.RIGHT)]:
        made = suspects.made(kind, old, new, D=32, H=6, BASE=5e5)
        monkeypatch.setattr(suspects, "draw", lambda number, made=made: [made] * 5)
        real_models.Lineup(1).look(offset_error)
        assert "To share" in capsys.readouterr().out


# ---- two clocks ----
def test_the_dials_are_what_the_layers_do():
    near, far = clocks(torch.tensor([[4, 3, 50.0], [0, 0, 0]]), 8)
    turn, window = near.parts
    assert turn.frequencies.theta().tolist() == pytest.approx(
        [1, (2 * torch.pi / 50) ** 0.5, 2 * torch.pi / 50, 0]
    )
    assert not far.frequencies.theta().any()
    here = torch.arange(6)
    assert torch.equal(window.bias(here, here)[0].isfinite(), here - here[:, None] > -4)


def test_a_design_is_trained_and_stands_on_the_board(monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(plots, "show", lambda fig, alt: shown.append((fig, alt)))
    monkeypatch.setattr("course.real_models.board.STEPS", 3)
    space = answers("10")
    for source in code("ex10_frontier", "solutions", "ending"):
        exec(source, space)
    (fig, alt), said = shown[0], capsys.readouterr().out
    assert all("yours" in [tick.get_text() for tick in ax.get_yticklabels()] for ax in fig.axes)
    assert "To share: two clocks 8/4/50 0/0/0: 5 back 0." in said and "induction 0." in alt


def test_a_design_that_cannot_be_read_is_said(capsys):
    real_models.two_clocks({"head_dim": 8}, lambda design: torch.zeros(2))
    assert "Your functions stop the model: " in capsys.readouterr().out
