"""No position: what is hidden, the probe against known answers, and what the record says."""

import math

import pytest
import torch

from course.experiments import nope
from course.experiments.record import Record, Run
from course.experiments.sweep import run
from course.verdicts import FAILS, HOLDS, IDENTITY, OPEN
from tutorial_lib.data import Corpus, kjv
from tutorial_lib.encodings import Sinusoidal
from tutorial_lib.model import Config, Transformer
from tutorial_lib.plots import png

TINY = {
    "d_model": 16,
    "layers": 2,
    "heads": 2,
    "length": 16,
    "batch": 4,
    "lr": 3e-3,
    "steps": 2,
    "windows": 40,
    "encodings": list(nope.ENCODINGS),
}


def test_what_is_hidden_is_asked_and_nothing_else():
    tokens = torch.arange(4000).view(40, 100) % 7
    shown, asked = nope.hide(tokens, 7, torch.Generator().manual_seed(0))
    hidden = shown == 7
    assert 0.13 < hidden.float().mean() < 0.17
    assert torch.equal(asked[hidden], tokens[hidden]) and (asked[~hidden] == -100).all()
    assert torch.equal(shown[~hidden], tokens[~hidden])


def test_the_probe_reads_what_is_there():
    torch.manual_seed(0)
    p = torch.arange(32.0).expand(40, 32)
    noise = torch.randn(40, 32, 5)
    assert nope.probe(noise) == pytest.approx(8, abs=0.3)  # L/4: always the middle
    assert nope.probe(torch.cat([noise, p[..., None] * 0.3 - 2], -1)) < 0.01
    # 1/(i + 1) is a straight line to nobody
    assert 1 < nope.probe(torch.cat([noise, 1 / (p[..., None] + 1)], -1)) < 7


def test_the_probe_is_scored_on_texts_that_it_was_not_fitted_to():
    torch.manual_seed(0)
    x = torch.randn(2, 8, 20)  # as many channels as needed to learn 8 positions by heart
    assert nope.probe(x) > 1.5


def test_hidden_states_are_those_between_the_layers():
    torch.manual_seed(0)
    model = Transformer(Config(9, d_model=16, n_layers=2, n_heads=2), Sinusoidal(16))
    tokens = torch.randint(9, (2, 6))
    states = nope.hidden_states(model, tokens)
    assert len(states) == 3 and all(x.shape == (2, 6, 16) for x in states)
    torch.testing.assert_close(states[0], model.encoding.embed(model.tokens(tokens), torch.arange(6)))
    torch.testing.assert_close(model.head(model.norm(states[-1])), model(tokens))
    assert not model.blocks[0]._forward_pre_hooks and not model.blocks[-1]._forward_hooks


def test_letters_is_the_loss_of_frequencies():
    text = torch.tensor([0, 0, 0, 1])  # with one more of each: 4/6 and 2/6
    found = nope.letters(torch.tensor([[0, -100], [1, 1]]), text, 2)
    assert found == pytest.approx((math.log(6 / 4) + 2 * math.log(6 / 2)) / 3)


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as mp:
        short = Corpus.of(kjv().text[:20000])
        mp.setattr(nope, "kjv", lambda: short)
        mp.setitem(nope.EXPERIMENT.presets, "live", TINY)
        yield run(nope.EXPERIMENT, "live", seeds=(0, 1), device="cpu", progress=False)


def test_a_sweep(record):
    assert len(record.runs) == 2 * 2 * 3
    for one in record:
        assert len(one.values["probe"]) == len(one.values["untrained"]) == 3
        assert 2.5 < one.values["loss"] < 6 and 2.5 < one.values["letters"] < 3.5
    embedding = record.values("probe", encoding="sinusoidal", objective="causal")[0][0]
    assert embedding < 2.2 < 3 < record.values("probe", encoding="none", objective="causal")[0][0]
    assert len(png(nope.figure(record))) > 20_000 and len(nope.findings(record)) == 8


def test_masked_models_see_the_mask_and_both_sides(record, monkeypatch):
    seen = []
    monkeypatch.setattr(
        nope,
        "train",
        lambda model, batch, *args, **kwargs: seen.append(
            (model.config.causal, *batch(torch.Generator().manual_seed(0)))
        ),
    )
    for objective in ("causal", "masked"):
        nope.measure(TINY, {"objective": objective, "encoding": "none"}, 0, torch.device("cpu"))
    (causal, tokens, targets), (masked, shown, asked) = seen
    symbol = len(nope.kjv().symbols)
    assert causal and torch.equal(tokens[:, 1:], targets[:, :-1]) and symbol not in tokens
    assert not masked and symbol in shown and -100 in asked


def made(worlds: dict, spread=0.0) -> Record:
    """A record with these losses and errors; ``spread`` sets seeds apart."""
    record = Record("nope", "live", "", TINY, [0, 1, 2], "cpu", 1, {})
    for row, ((objective, name), (loss, probe)) in enumerate(worlds.items()):
        for seed in record.seeds:
            apart = spread * (seed - 1)
            values = {
                "loss": loss + 0.001 * seed + apart * (row + 1),
                "letters": 3.0,
                "probe": [p + 0.01 * seed + apart * (n + 1) for n, p in enumerate(probe)],
                "untrained": [4.0, 4.0, 4.0],
            }
            record.runs.append(Run({"objective": objective, "encoding": name}, seed, values, 0.0))
    return record


def verdicts(record):
    return [finding.verdict for finding in nope.findings(record)]


def test_findings_follow_the_numbers():
    paper = {
        ("causal", "none"): (2.00, [4, 3, 1]),
        ("causal", "sinusoidal"): (1.99, [0, 0, 0]),
        ("causal", "rotary"): (1.98, [4, 4, 4]),
        ("masked", "none"): (2.98, [4, 4, 4]),
        ("masked", "sinusoidal"): (1.5, [0, 0, 0]),
        ("masked", "rotary"): (1.4, [4, 4, 4]),
    }
    assert verdicts(made(paper)) == [HOLDS] * 6 + [IDENTITY, HOLDS]
    assert verdicts(made(paper, spread=1.0)) == [OPEN] * 6 + [FAILS, OPEN]
    turned = made(
        {
            ("causal", "none"): (2.30, [4, 5, 5]),
            ("causal", "sinusoidal"): (2.0, [0, 0, 0]),
            ("causal", "rotary"): (1.9, [4, 4, 4]),
            ("masked", "none"): (1.4, [4, 3, 3]),
            ("masked", "sinusoidal"): (1.5, [0, 0, 0]),
            ("masked", "rotary"): (1.6, [4, 4, 4]),
        }
    )
    assert verdicts(turned) == [FAILS] * 8
    assert "2.30 in the decoder and 1.40 in the encoder" in nope.alt(turned)


def test_a_small_gain_makes_no_difference_and_the_reason_has_its_number():
    """0.05 nats are 5 %: too little to count among the hidden, and just too much to be almost as good."""
    none = {("causal", "none"): (2.05, [4, 3, 2.6]), ("masked", "none"): (2.95, [4, 4, 4])}
    other = {
        (x, name): (loss, [4, 4, 4])
        for x, loss in (("causal", 2.0), ("masked", 2.9))
        for name in ("sinusoidal", "rotary")
    }
    findings = nope.findings(made(none | other))
    assert [f.verdict for f in findings[1:5]] == [FAILS] * 4
    assert "a place among 16 to within 2.6" in findings[3].why
    assert "not tried" in findings[4].theirs and "not tried" not in findings[3].theirs
