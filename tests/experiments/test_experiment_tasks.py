"""Word order, moved sentences, tasks at unseen lengths, hybrids, fusion, clipping, decay, images."""

import dataclasses
import json
import shutil

import pytest
import torch

from course.experiments import (
    EXPERIMENTS,
    RESULTS,
    Record,
    clipping,
    decay,
    fusion,
    hybrid,
    images,
    playground,
    shift,
    sweep,
    tasks,
    word_order,
)
from course.experiments.record import Run
from course.verdicts import FAILS, HOLDS, IDENTITY, OPEN
from tutorial_lib import plots
from tutorial_lib.encodings import Frequencies, Rotary
from workshop import front

CPU = torch.device("cpu")
TINY = {
    "shift": {"encodings": ["learned", "sinusoidal", "alibi"], "steps": 2, "batch": 4, "test": 4},
    "tasks": {"encodings": ["none", "rotary", "t5"], "steps": 2, "batch": 4, "test": 4},
    "hybrid": {"encodings": list(hybrid.ENCODINGS), "steps": 2, "batch": 4, "test": 4},
    "fusion": {"steps": 12, "batch": 4, "test": 4},
    "clipping": {"layers": [1, 2], "steps": 2, "batch": 4, "test": 8},
    "decay": {"pairs": 8},
    "images": {"encodings": list(images.ENCODINGS), "steps": 2, "batch": 4},
}


def synthetic(module, values):
    """A record with ``values(cell, seed)`` in every cell, at one rate for all."""
    settings = {name: x for name, x in module.EXPERIMENT.presets["full"].items() if name != "protocol"}
    record = Record(module.EXPERIMENT.name, "full", "", settings, [0, 1, 2], "cpu", 1, {})
    record.runs = [
        Run(cell, seed, values(cell, seed), 1.0) for seed in record.seeds for cell in module.cells(settings)
    ]
    return record


def found(module, values):
    """What is said of such a record."""
    return module.findings(synthetic(module, values))


def told(module, values):
    return [finding.verdict for finding in found(module, values)]


def either(values, others):
    """Now these values, now the others, by the seed: the intervals reach from the ones to the others."""
    return lambda cell, seed: (values, others)[seed % 2](cell, seed)


# ---- all of them ----


@pytest.mark.parametrize("name", TINY)
def test_a_tiny_record_can_be_made_drawn_and_told(name):
    experiment = dataclasses.replace(EXPERIMENTS[name], presets={"live": TINY[name]})
    record = sweep.run(experiment, seeds=(0, 1), device="cpu", progress=False)
    assert len(record.runs) == 2 * len(experiment.cells(TINY[name]))
    json.dumps([dataclasses.asdict(run) for run in record.runs], allow_nan=False)
    assert plots.png(experiment.figure(record)).startswith(b"\x89PNG")
    assert len(experiment.alt(record).split()) > 10
    if name != "shift":  # its findings speak of all encodings
        assert all(finding.ours for finding in experiment.findings(record))


@pytest.mark.parametrize("name", TINY)
def test_the_same_seed_gives_the_same_numbers_another_seed_others(name):
    experiment = EXPERIMENTS[name]
    cell = experiment.cells(TINY[name])[1]
    first, again, other = (experiment.measure(TINY[name], cell, seed, CPU) for seed in (3, 3, 4))
    assert first == again != other


@pytest.mark.parametrize("name", TINY)
def test_presets_name_cells_that_can_be_measured(name):
    experiment = EXPERIMENTS[name]
    for preset in ("live", "full"):
        assert len(experiment.seeds[preset]) >= (2 if preset == "live" else 3)
        for cell in experiment.cells(experiment.presets[preset]):
            assert json.loads(json.dumps(cell)) == cell


def test_what_an_exercise_trains_can_be_shown_and_claims_nothing_of_five_tasks():
    record = Record.load(RESULTS / "tasks-exercise.json")
    assert [ax.get_title() for ax in tasks.figure(record).axes] == [*record.settings["tasks"], "", ""]
    assert "copy" in tasks.alt(record) and "reverse" not in tasks.alt(record)
    assert tasks.findings(record) == []


# ---- the playground ----
@pytest.mark.parametrize(
    ("task", "kind", "seed"), [("back", "rope", 3), ("first", "sin", 19), ("sort", "t5", 0)]
)
def test_the_page_s_engine_gives_what_the_record_says(task, kind, seed):
    """To the last bit."""
    record = Record.load(RESULTS / "playground-full.json")
    config = playground.SIZES | {"task": task, "steps": record.settings["steps"], "seed": seed}
    again = front.answering(playground.script(), "the study")([config, [kind], playground.TIMES])
    assert again == [record.values(kind, task=task)[record.seeds.index(seed)]]


def test_the_playground_is_measured_in_node_or_says_what_is_missing(monkeypatch):
    settings = {"tasks": ["back"], "encodings": ["none", "shaw"], "steps": 2}
    if shutil.which("node"):
        found = playground.measure(settings, {"task": "back"}, 1, CPU)
        assert list(found) == ["none", "shaw"] and all(len(right) == 3 for right in found.values())
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="no `node` was found.*install Node"):
        playground.measure(settings, {"task": "back"}, 1, CPU)


def test_playground_findings_turn_with_the_numbers():
    relative = {*playground.RELATIVE}

    def as_measured(cell, seed):
        task, shares = cell["task"], {}
        for kind in playground.ENCODINGS:
            far = {"back": 1.0 if kind in relative else 0.3, "first": 1.0, "before": 1.0}.get(task, 0.5)
            near = 0.3 if kind in ("none", "alibi") else 1.0
            shares[kind] = [near, near, far]
        if task in playground.ORDER or task == "back":
            shares["rope"] = [1.0, 1.0, (0.7, 0.5, 0.9)[seed]]
        return shares

    def turned(cell, seed):
        far = {"sin": 0.9, "shaw": 0.2, "none": 0.7}
        return {kind: [0.9, 0.9, far.get(kind, 0.8)] for kind in playground.ENCODINGS}

    assert told(playground, as_measured) == [FAILS, HOLDS, FAILS, FAILS, HOLDS, OPEN, FAILS]
    assert told(playground, turned) == [HOLDS, FAILS, HOLDS, HOLDS, FAILS, FAILS, HOLDS]
    record = synthetic(playground, as_measured)
    assert plots.png(playground.figure(record)).startswith(b"\x89PNG")
    assert "the token three back: a bias for each offset (1.00)" in playground.alt(record)
    assert "| RoPE | 0.70 ± 0.20 (0.50 to 0.90) |" in playground.table(record)


# ---- order ----


def test_order_findings_turn_with_the_numbers():
    def as_proved(cell, seed):
        blind = not cell["causal"] and cell["encoding"] in ("none", "alibi-symmetric")
        return {"accuracy": 0.5 if blind else 1.0}

    def turned(cell, seed):
        of_encoder = {"none": 0.9, "alibi-symmetric": 1.0}.get(cell["encoding"], 0.5)
        return {"accuracy": float(cell["encoding"] != "none") / 2 + 0.5 if cell["causal"] else of_encoder}

    assert told(word_order, as_proved) == [IDENTITY, HOLDS, HOLDS, HOLDS, FAILS]
    assert told(word_order, turned) == [FAILS, FAILS, FAILS, FAILS, HOLDS]
    assert told(word_order, either(as_proved, turned)) == [FAILS] + [OPEN] * 4
    # a ceiling is a bound: a model may be worse
    assert told(word_order, lambda cell, seed: {"accuracy": 0.1 * seed})[0] == IDENTITY


# ---- hybrid ----


def test_all_hybrids_begin_with_the_same_relative_bias():
    from tutorial_lib.encodings import T5Bias
    from tutorial_lib.training import seeded

    tables = []
    for name in ("t5", "sum", "concat", "concat, non-linear", "key side", "tupe", "learned + t5"):
        modules = seeded(lambda name=name: hybrid.encoding(name, hybrid.SIZES), 0).modules()
        tables += [module.b for module in modules if isinstance(module, T5Bias)]
    assert len(tables) == 7
    assert all(torch.equal(table, tables[0]) for table in tables)


def test_the_sum_is_trained_like_the_relative_bias_alone():
    settings = {**TINY["hybrid"], "steps": 30, "batch": 8, "test": 32}
    alone, total, working = (
        hybrid.measure(settings, {"encoding": name}, 0, CPU)["loss"] for name in ("t5", "sum", "learned + t5")
    )
    assert abs(total - alone) < 1e-4 < abs(working - alone)


def test_hybrid_findings_turn_with_the_numbers():
    def table_does_it(cell, seed):
        name = cell["encoding"]
        loss = {"learned": 0.05, "concat, non-linear": 0.3}.get(name, 0.0 if name in hybrid.WORKING else 1.0)
        return {"slot": 0.2 if name in hybrid.RELATIVE else 1.0, "back": 1.0, "loss": loss + seed / 1e5}

    def bias_does_it(cell, seed):
        name = cell["encoding"]
        loss = {"learned": 1.0, "sum": 0.05, "concat": 0.5}.get(name, 0.0)
        return {"slot": 0.2 if name in hybrid.ABSOLUTE else 1.0, "back": 1.0, "loss": loss + seed / 1e5}

    assert told(hybrid, table_does_it) == [IDENTITY, HOLDS, HOLDS, OPEN, HOLDS, HOLDS, FAILS]
    assert told(hybrid, bias_does_it) == [FAILS, FAILS, FAILS, HOLDS, FAILS, FAILS, HOLDS]
    assert told(hybrid, either(table_does_it, bias_does_it)) == [FAILS] + [OPEN] * 6

    def nobody_does_it(cell, seed):
        return {"slot": 0.2, "back": 0.2, "loss": 1.0 + seed / 1e5}

    assert found(hybrid, nobody_does_it)[3].verdict == FAILS  # there was something to gain
    assert "a loss of 0.050 nats" in found(hybrid, table_does_it)[3].reason
    absolute = found(hybrid, table_does_it)[-1]
    assert absolute.reason.startswith(
        "sinusoidal and learned and learned, std 0.02 did: with one vector for each of 24 places"
    )


def test_a_hybrid_is_held_against_its_own_relative_part():
    def rotary_alone_is_as_good(cell, seed):
        name = cell["encoding"]
        return {"slot": 1.0, "back": 1.0, "loss": float(name not in (*hybrid.WORKING, "rotary"))}

    third = found(hybrid, rotary_alone_is_as_good)[2]
    assert third.verdict == FAILS and "learned + rotary +0.000" in third.ours and "tupe +1.000" in third.ours


@pytest.mark.parametrize("protocol", [("one",), ("own",), ("one", "own")])
def test_the_sum_is_the_bias_where_both_have_the_same_rates(protocol):
    """At rates of its own each is another training, so the identity is asked of the one rate."""
    settings = hybrid.EXPERIMENT.presets["full"]
    record = Record("hybrid", "full", "", settings, [0, 1], "cpu", 1, {})
    record.runs = [
        Run(
            {"encoding": name} | ({"rates": [n, n]} if which == "own" else {}),
            seed,
            {"slot": 1.0, "back": 1.0, "loss": 1.0 + 0.1 * n * (which == "own")},
            1.0,
        )
        for which in protocol
        for n, name in enumerate(hybrid.ENCODINGS)
        for seed in (0, 1)
    ]
    first = hybrid.findings(record)[0]
    assert first.verdict == (IDENTITY if "one" in protocol else FAILS)
    assert first.ours.endswith("at one rate for all") == ("one" in protocol)
    if record.tuned:
        assert first == hybrid.findings(record.at_one_rate())[0]


# ---- shift ----


def test_a_moved_sentence_is_the_same_to_alibi_and_another_to_a_table():
    settings = TINY["shift"]
    alibi, learned = (shift.measure(settings, {"encoding": name}, 0, CPU) for name in ("alibi", "learned"))
    assert alibi["change"] == [0.0] * 5 and len(set(alibi["accuracy"])) == 1
    assert learned["change"][0] == 0 and min(learned["change"][1:]) > 0.1


def test_shift_findings_turn_with_the_numbers():
    def moved(learned, sinusoidal, change):
        def values(cell, seed):
            accuracy = {"learned": learned, "sinusoidal": sinusoidal}.get(cell["encoding"], 1.0)
            return {"accuracy": [1.0] + [accuracy] * 4, "change": [0.0] + [change] * 4}

        return values

    absolute_suffer, relative_suffer = moved(0.2, 0.4, 1e-6), moved(0.98, 1.0, 0.1)
    assert told(shift, absolute_suffer) == [HOLDS, HOLDS, FAILS, HOLDS, IDENTITY]
    assert told(shift, relative_suffer) == [FAILS, FAILS, HOLDS, FAILS, FAILS]
    assert told(shift, either(absolute_suffer, relative_suffer)) == [OPEN] * 4 + [FAILS]
    # a table and sinusoids are judged apart
    assert told(shift, moved(0.2, 0.8, 1e-6)) == [HOLDS, FAILS, FAILS, HOLDS, IDENTITY]


# ---- tasks ----


class Says(torch.nn.Module):
    """Answers with what ``answer`` makes of the ids."""

    def __init__(self, answer):
        super().__init__()
        self.answer, self.anything = answer, torch.nn.Parameter(torch.zeros(()))

    def forward(self, tokens):
        return torch.nn.functional.one_hot(self.answer(tokens), 99).float()


def test_accuracy_is_that_of_the_last_eight_places():
    tokens = torch.arange(30).repeat(70, 1)
    targets = tokens.clone()
    targets[:, :24] = 98  # wrong, but for two of the last eight not asked
    assert tasks.last_accuracy(Says(lambda x: x), tokens, targets) == 0.75
    targets[:, 22:24] = -100
    assert tasks.last_accuracy(Says(lambda x: x), tokens, targets) == 1.0


@pytest.mark.parametrize("task", tasks.TASKS)
@pytest.mark.parametrize("times", [1, 4])
def test_every_length_has_eight_answers(task, times):
    ids, labels = tasks.draw(task, 5, torch.Generator().manual_seed(0), length=16 * times)
    assert ids.shape == labels.shape == (5, 16 * times)
    assert ids.max() <= tasks.VALUES and labels.max() < tasks.VALUES
    if task != "induction":
        assert (labels[:, -8:] >= 0).all()


def test_in_training_lists_are_of_all_lengths_and_never_longer():
    generator = torch.Generator().manual_seed(0)
    lengths = {tasks.draw("reverse", 1, generator, training=True)[0].shape[1] // 2 for _ in range(100)}
    assert lengths == set(range(1, 9))


def _scored(order):
    """Accuracy by rank: ``order(task)`` lists encodings, best first."""

    def values(cell, seed):
        return {"accuracy": [1 - 0.1 * order(cell["task"]).index(cell["encoding"]) + seed / 1e4] * 4}

    return values


def test_winners_and_ranks():
    names = list(tasks.ENCODINGS)
    record = synthetic(tasks, _scored(lambda task: names))
    assert tasks.winners(record, "copy") == ["none"]
    ranks = tasks.reciprocal_ranks(record)
    assert {name: values[0] for name, values in ranks.items()} == pytest.approx(
        {name: 1 / (n + 1) for n, name in enumerate(names)}
    )

    tied = synthetic(tasks, lambda cell, seed: {"accuracy": [0.5] * 4})
    assert tasks.winners(tied, "copy") == names
    assert tasks.reciprocal_ranks(tied)["t5"][0] == pytest.approx(1 / 4)  # the mean of the ranks 1 … 7


def test_task_findings_turn_with_the_numbers():
    names = list(tasks.ENCODINGS)
    turning = _scored(lambda task: names[tasks.TASKS.index(task) :] + names[: tasks.TASKS.index(task)])

    def by_seed(cell, seed):
        """None is first and then last; in all tasks but one a sinusoid has the best mean."""
        high = 1.0 if cell["task"] == "copy" else 0.6
        lower = 0.5 - names.index(cell["encoding"]) / 100
        return {"accuracy": [high * (seed != 1) if cell["encoding"] == "none" else lower] * 4}

    assert told(tasks, _scored(lambda task: names)) == [FAILS, HOLDS, HOLDS, HOLDS]
    assert told(tasks, turning) == [HOLDS, FAILS, FAILS, FAILS]
    assert told(tasks, by_seed) == [OPEN] * 4
    # as good as the best is not worse; who is behind by a little, but surely, has not won
    assert told(tasks, lambda cell, seed: {"accuracy": [0.5] * 4}) == [FAILS] * 4
    nearly = found(tasks, lambda cell, seed: {"accuracy": [0.5 + 0.001 * names.index(cell["encoding"])] * 4})
    assert nearly[0].verdict == FAILS and nearly[0].why == "alibi: nowhere behind"


def test_without_positions_it_is_said_which_tasks_were_not_learned():
    def values(cell, seed):
        bad = cell["encoding"] == "none" and cell["task"] == "copy"
        return {"accuracy": [0.25 if bad else 1.0] * 4}

    assert found(tasks, values)[1].why.endswith("(accuracy: copy 0.25)")
    assert "accuracy" not in found(tasks, lambda cell, seed: {"accuracy": [1.0] * 4})[1].why


# ---- fusion ----


def test_steps_to_a_loss():
    assert fusion.steps_to([1.0] * 20 + [0.0] * 20) == 26  # 4 ones and 6 zeros
    assert fusion.steps_to([1.0] * 30) == 30
    assert fusion.steps_to([0.0] * 30) == 10


def test_half_of_the_sinusoid_of_position_0_is_zero():
    assert fusion.zeros(64) == 32


def test_fusion_findings_turn_with_the_numbers():
    small = "learned, std 0.02"

    def apart(cell, seed):
        if cell["vectors"] == small:
            steps = {"add": 250, "concat": 250, "multiply": 60, "matrix": 60}[cell["fusion"]]
        else:
            steps = {"add": 60, "concat": 60, "multiply": 120, "matrix": 10}[cell["fusion"]]
        return {"steps": steps + seed, "loss": 1.0, "by_place": [2.0 + seed / 1e3, 1.0]}

    def alike(cell, seed):
        return {"steps": 200 if cell["fusion"] == "concat" else 100, "loss": 1.0, "by_place": [1.0, 1.0]}

    assert told(fusion, apart) == [HOLDS, HOLDS, IDENTITY] + [HOLDS] * 5
    assert told(fusion, alike) == [FAILS, FAILS, IDENTITY] + [FAILS] * 5
    assert told(fusion, either(apart, alike)) == [OPEN, OPEN, IDENTITY] + [OPEN] * 5
    slowest = found(fusion, apart)[-1].ours
    assert "at least" not in slowest

    def ended(cell, seed):
        steps = {"steps": fusion.EXPERIMENT.presets["full"]["steps"]}
        return apart(cell, seed) | (steps if cell == {"fusion": "add", "vectors": small} and seed else {})

    operator, scale = found(fusion, ended)[-1].ours.split(";")
    assert "at least" in scale and "2 of 3 runs did not get there in 300" in scale
    assert "at least" not in operator


def test_a_sinusoid_without_zeros_would_be_noticed(monkeypatch):
    monkeypatch.setattr(fusion, "zeros", lambda dim: dim // 2 - 1)
    values = {"steps": 1, "by_place": [1.0, 1.0]}
    assert told(fusion, lambda cell, seed: values)[2] == FAILS


# ---- clipping ----


def test_without_distances_only_words_that_stay_can_be_told():
    settings = {"steps": 100, "batch": 32, "test": 64}
    blind, sees = (clipping.measure(settings, {"layers": 1, "k": k}, 0, CPU) for k in (0, 2))
    assert blind["moved"] < 0.3 and sees["moved"] > 0.8


def test_clipping_findings_turn_with_the_numbers():
    def moved(of_k, otherwise):
        return lambda cell, seed: {"moved": of_k.get(cell["k"], otherwise) + seed / 1e4}

    def one_layer_needs_two(cell, seed):
        return {"moved": float(cell["k"] >= 3 - cell["layers"])}

    as_there, turned = moved({0: 0.1, 1: 0.95}, 1.0), moved({0: 0.9, 2: 1.0}, 0.5)
    assert told(clipping, as_there) == [HOLDS, HOLDS, OPEN, HOLDS, HOLDS]
    assert told(clipping, turned) == [FAILS, FAILS, OPEN, FAILS, FAILS]
    assert told(clipping, either(as_there, turned)) == [OPEN] * 5
    assert told(clipping, one_layer_needs_two) == [HOLDS, HOLDS, OPEN, HOLDS, FAILS]


# ---- decay ----


@pytest.mark.parametrize("p", [1.0, 0.5])
def test_scores_are_those_of_rope(p):
    frequencies = Frequencies(64, p=p)
    q, k = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rope = Rotary(64, frequencies=frequencies)
    got = decay.scores(q, k, torch.arange(0, 50, 7), frequencies)
    for column, distance in enumerate(range(0, 50, 7)):
        at = torch.tensor([distance], dtype=torch.float64)
        a, b = rope.rotate(q[None, :, None], k[None, :, None], at, torch.zeros_like(at))
        expected = (a * b).sum(-1).flatten() / (q.norm(dim=-1) * k.norm(dim=-1))
        torch.testing.assert_close(got[:, column], expected)


def test_a_constructed_key_is_largest_at_its_distance():
    got = decay.measure({"pairs": 4}, {"vectors": "constructed"}, 0, CPU)
    assert got["at_peak"] == 1.0 and got["mean"][decay.DISTANCES.index(decay.PEAK)] == pytest.approx(1.0)
    assert decay.measure({"pairs": 4}, {"vectors": "aligned"}, 0, CPU)["at_peak"] == 0.0


def test_fast_and_slow_halves():
    for kind, half in (("high", slice(32, None)), ("low", slice(32)), ("low, p = 0.5", slice(32))):
        q, k, frequencies = decay.vectors(kind, 5, torch.Generator().manual_seed(0))
        assert q[:, half].abs().max() == 0 and q.abs().max() > 0 and torch.equal(q, k)
    assert (frequencies.theta()[16:] == 0).all()
    assert decay.measure({"pairs": 4}, {"vectors": "low, p = 0.5"}, 0, CPU)["far"] == pytest.approx(1.0)


def test_decay_findings_turn_with_the_numbers():
    def as_found(cell, seed):
        kind = cell["vectors"]
        return {
            "far": {"aligned": 0.1, "low, p = 0.5": 1.0}.get(kind, 0.0) + seed / 1e9,
            "far_spread": 1.0,
            "at_peak": 1.0,
            "reach": 400 if kind == "low" else 4,
        }

    def turned(cell, seed):
        return {"far": 0.8, "far_spread": 0.4, "at_peak": 0.9, "reach": 40}

    assert told(decay, as_found) == [HOLDS, FAILS, HOLDS, IDENTITY, HOLDS, HOLDS, IDENTITY]
    assert told(decay, turned) == [FAILS, HOLDS, FAILS, FAILS, FAILS, FAILS, FAILS]
    assert told(decay, either(as_found, turned)) == [OPEN, OPEN, OPEN, FAILS, OPEN, OPEN, FAILS]


# ---- images ----


def test_views_are_the_same_images_otherwise():
    picture = torch.randint(17, (2, 8, 8), generator=torch.Generator().manual_seed(0))
    got = images.views(picture)
    ids = got["test"]
    assert not torch.equal(got["shuffled"], ids)
    assert torch.equal(got["shuffled"].sort(1).values, ids.sort(1).values)
    wide = got["wider"].view(2, 4, 6)
    assert torch.equal(wide[:, :, :4], ids.view(2, 4, 4)) and (wide[:, :, 4:] == 0).all()
    assert torch.equal(got["rolled"].view(2, 4, 4), ids.view(2, 4, 4).roll(1, 2))


def test_patches_are_embedded_by_their_pixels():
    model = images.Patches(64)
    black, white = model(torch.tensor([17**4 - 1, 0]))
    torch.testing.assert_close(black - white, 2 * model.linear.weight.sum(1))
    torch.testing.assert_close((black + white) / 2, model.linear.bias)


def test_the_canvas_decides_how_wide_a_raster_is():
    classifier = images.Classifier("sinusoidal 1-D", d_model=64, layers=2, heads=4)
    ids = torch.randint(17**4, (2, 24), generator=torch.Generator().manual_seed(0))
    assert classifier(ids).shape == (2, 10) and classifier.model.encoding.width == 6
    classifier(ids[:, :16])
    assert classifier.model.encoding.width == 4


def test_image_findings_turn_with_the_numbers():
    def two_axes_win(cell, seed):
        name, two = cell["encoding"], cell["encoding"] in images.PAIRS
        if name == "none":
            return {"test": 0.7, "shuffled": 0.7}
        return {
            "test": 0.95 if two else 0.9,
            "wider": 0.95 if two else 0.3,
            "rolled": 0.5 if name == "sinusoidal 2-D" else 0.9,
        }

    def nothing_helps(cell, seed):
        return {"test": 0.95, "shuffled": 0.5, "wider": 0.3, "rolled": 0.5}

    def sinusoids_win(cell, seed):
        return (two_axes_win if "sinusoidal" in cell["encoding"] else nothing_helps)(cell, seed)

    assert told(images, two_axes_win) == [IDENTITY] + [HOLDS] * 12
    assert told(images, nothing_helps) == [FAILS] * 13
    assert told(images, either(two_axes_win, nothing_helps)) == [FAILS] + [OPEN] * 12
    assert told(images, sinusoids_win)[2:] == [HOLDS, FAILS, FAILS] * 3 + [FAILS, FAILS]
