"""Training: repeatable, interruptible, and honest when it fails."""

import math

import pytest
import torch
from torch import nn

from tutorial_lib import training
from tutorial_lib.data import order_task
from tutorial_lib.encodings import Compose, Learned, Sinusoidal, T5Bias
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import (
    History,
    Spread,
    accuracy,
    cross_entropy,
    evaluate,
    seeded,
    train,
)

CONFIG = Config(10, d_model=16, n_layers=1, n_heads=2, n_out=6, causal=False, pool="mean")


def model(seed=0):
    return seeded(lambda: Transformer(CONFIG, Sinusoidal(16)), seed)


def batch(generator):
    return order_task(32, generator)


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_same_seed_same_numbers():
    one, other, third = model(), model(), model()
    a, b = train(one, batch, 6, seed=3), train(other, batch, 6, seed=3)
    assert a.losses == b.losses and torch.equal(weights(one), weights(other))
    assert train(third, batch, 6, seed=4).losses != a.losses
    assert not torch.equal(weights(model(1)), weights(model(0)))


def test_the_readers_random_numbers_are_untouched():
    before = torch.get_rng_state()
    train(model(5), batch, 2)
    assert torch.equal(torch.get_rng_state(), before)


def test_loss_falls_and_the_task_is_learned():
    learner = model()
    history = train(learner, batch, 150, lr=1e-2)
    assert len(history.losses) == 150 and not history.interrupted
    assert history.losses[0] > 1.5 and history.final < 0.1
    assert accuracy(learner, *order_task(200, torch.Generator().manual_seed(9))) > 0.95
    assert not learner.training


def test_each_batch_is_trained_on_in_training_mode():
    modes = []

    class Watcher(nn.Linear):
        def forward(self, x):
            modes.append(self.training)
            return super().forward(x)

    watcher = Watcher(4, 3)
    watcher.eval()
    train(watcher, lambda g: (torch.randn(8, 4, generator=g), torch.zeros(8, dtype=torch.long)), 3)
    assert modes == [True] * 3 and not watcher.training


def test_learning_rate_rises_then_falls(monkeypatch):
    rates, step = [], torch.optim.AdamW.step

    def spy(self, *args, **kwargs):
        rates.append(self.param_groups[0]["lr"])
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    train(model(), batch, 40, lr=1e-3, warmup=0.25)
    assert rates[:11] == pytest.approx([1e-4 * n for n in range(1, 11)] + [1e-3])
    assert all(a >= b for a, b in zip(rates[10:], rates[11:], strict=False)) and rates[-1] < 2e-5


def test_gradients_are_clipped(monkeypatch):
    norms, step = [], torch.optim.AdamW.step

    def spy(self, *args, **kwargs):
        norms.append(math.sqrt(sum(p.grad.square().sum() for p in self.param_groups[0]["params"])))
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    train(model(), batch, 3, clip=0.01)
    assert norms == pytest.approx([0.01] * 3, rel=1e-3)


def test_each_step_has_its_own_gradient(monkeypatch):
    """With a learning rate of 0 and one batch, every step has the same."""
    layer, seen, step = nn.Linear(2, 3), [], torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW,
        "step",
        lambda self, *args, **kwargs: (seen.append(layer.weight.grad.clone()), step(self, *args, **kwargs)),
    )
    train(layer, lambda generator: (torch.ones(4, 2), torch.zeros(4, dtype=torch.long)), 3, lr=0.0)
    assert torch.equal(seen[0], seen[1]) and torch.equal(seen[0], seen[2])


def stop_at(step, error):
    drawn = []

    def draw(generator):
        drawn.append(1)
        if len(drawn) > step:
            raise error
        return batch(generator)

    return draw


@pytest.mark.parametrize("step", [0, 4])
def test_an_interrupt_keeps_what_was_trained(step, capsys):
    learner, untouched = model(), model()
    history = train(learner, stop_at(step, KeyboardInterrupt), 10)
    assert history.interrupted and not learner.training
    assert history.losses == (train(untouched, batch, 10).losses[:step])
    assert torch.equal(weights(learner), weights(model())) == (step == 0)
    assert f"Stopped after {step} of 10 steps" in capsys.readouterr().out


def test_other_errors_are_not_swallowed():
    learner = model()
    with pytest.raises(RuntimeError, match="disk"):
        train(learner, stop_at(2, RuntimeError("disk")), 10)
    assert not learner.training


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_the_run(bad):
    """At the step where it happens, with the weights of the step before."""
    layer, seen = nn.Linear(2, 3), []

    def draw(generator):
        seen.append(weights(layer).clone())
        x = torch.full((4, 2), bad) if len(seen) == 4 else torch.randn(4, 2, generator=generator)
        return x, torch.zeros(4, dtype=torch.long)

    with pytest.raises(FloatingPointError, match=r"loss is nan at step 3: try a smaller lr than 0.003"):
        train(layer, draw, 10)
    assert torch.equal(weights(layer), seen[-1]) and weights(layer).isfinite().all()


def test_zero_steps_are_an_error():
    with pytest.raises(ValueError, match="steps=0"):
        train(model(), batch, 0)


@pytest.mark.parametrize(
    "progress, variable, shown", [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_the_bar_can_be_switched_off(progress, variable, shown, monkeypatch, capsys):
    monkeypatch.setenv("TQDM_DISABLE", variable)
    train(model(), batch, 2, progress=progress, label="tiny run")
    assert ("tiny run" in capsys.readouterr().err) == shown


def test_the_variable_works_in_a_notebook_too(monkeypatch):
    """tqdm's notebook bar overrules TQDM_DISABLE by itself."""
    given, bar = {}, training.tqdm
    monkeypatch.setattr(training, "tqdm", lambda *a, **k: given.update(k) or bar(*a, **k))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    train(model(), batch, 1)
    assert given["disable"] is True


# ---- evaluation, by hand ----


class Table(nn.Module):
    """Logits looked up: what the answers are is known."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, tokens):
        return self.logits[tokens]


LOGITS = [[0.0, math.log(3)], [math.log(9), 0.0]]  # token 0: 1/4, 3/4; token 1: 9/10, 1/10
TOKENS, TARGETS = torch.tensor([[0, 0], [1, 1], [0, 1]]), torch.tensor([[1, 0], [0, 1], [1, -100]])


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_evaluate(batch_size):
    losses = evaluate(Table(LOGITS), TOKENS, TARGETS, batch_size=batch_size)
    expected = -torch.tensor([[0.75, 0.25], [0.9, 0.1], [0.75, 1.0]]).log()
    torch.testing.assert_close(losses, expected)
    assert not losses.requires_grad


def test_accuracy():
    assert accuracy(Table(LOGITS), TOKENS, TARGETS) == pytest.approx(3 / 5)


def test_cross_entropy_skips_what_is_not_asked():
    expected = -torch.tensor([0.75, 0.25, 0.9, 0.1, 0.75]).log().mean()
    torch.testing.assert_close(cross_entropy(Table(LOGITS)(TOKENS), TARGETS), expected)
    half = cross_entropy(Table(LOGITS)(TOKENS).bfloat16(), TARGETS)
    assert half.dtype == torch.float32


def test_evaluation_switches_to_evaluation():
    dropout = nn.Sequential(Table(LOGITS), nn.Dropout(0.5))
    for call in (evaluate, accuracy):
        dropout.train()
        call(dropout, TOKENS, TARGETS)
        assert not dropout.training


def test_history():
    assert History([9.0] * 18 + [2.0, 1.0]).final == 1.5
    assert History([9.0, 3.0]).final == 3.0
    assert math.isnan(History().final)


def test_spread():
    spread = Spread.of(lambda seed: seed / 4, [2, 1, 3])
    assert spread.values == (0.5, 0.25, 0.75)
    assert (spread.mean, spread.low, spread.high) == (0.5, 0.25, 0.75)
    assert str(spread) == "0.50 (0.25 to 0.75)"


@pytest.mark.parametrize("position_lr", [None, 2e-2])
def test_positions_may_have_a_rate_of_their_own(position_lr, monkeypatch):
    rates, step = [], torch.optim.AdamW.step
    learner = seeded(lambda: Transformer(CONFIG, Compose(Sinusoidal(16), T5Bias(2), Learned(3, 16))), 0)
    tables, everything = set(learner.encoding.parameters()), set(learner.parameters())
    assert len(tables) == 2

    def spy(self, *args, **kwargs):
        rates.append({p: group["lr"] for group in self.param_groups for p in group["params"]})
        return step(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    train(learner, batch, 4, lr=1e-3, position_lr=position_lr, warmup=0.5)
    assert all(set(rate) == everything for rate in rates)
    for n, share in enumerate((0.5, 1.0)):  # both rise and fall together
        for p, rate in rates[n].items():
            assert rate == pytest.approx(share * (position_lr or 1e-3 if p in tables else 1e-3))
