"""Train and evaluate, with seeds and a progress bar; a learner who stops early keeps what was trained."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import parallel
from .encodings import PositionalEncoding
from .language import _
from .optional import needs

__all__ = [
    "History",
    "Spread",
    "accuracy",
    "all_or_nothing",
    "cross_entropy",
    "evaluate",
    "position_parameters",
    "seeded",
    "train",
]

with needs("experiments"):
    from tqdm.auto import tqdm

Batch = tuple[Tensor, Tensor]
Made = TypeVar("Made")
_all_or_nothing = ContextVar("_all_or_nothing", default=False)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """In this block, an interrupt passes through :func:`train`: half a run must not count as a whole one."""
    token = _all_or_nothing.set(True)
    try:
        yield
    finally:
        _all_or_nothing.reset(token)


@dataclass
class History:
    """What a training run leaves behind.

    Attributes:
        losses: training loss in nats after each finished step.
        interrupted: the run was stopped early; the model keeps what it had learned.
    """

    losses: list[float] = field(default_factory=list)
    interrupted: bool = False

    @property
    def final(self) -> float:
        """Mean loss of the last tenth of the steps."""
        tail = self.losses[-max(1, len(self.losses) // 10) :]
        return statistics.fmean(tail) if tail else math.nan


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean loss in nats of logits ``[..., n]`` against ids ``[...]``; −100 marks "not asked"."""
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(), ignore_index=-100)


DECAY = 0.01
"""Weight decay of all parameters, tables of positions too, unless :func:`train` is told otherwise."""


def train(
    model: nn.Module,
    batch: Callable[[torch.Generator], Batch],
    steps: int,
    *,
    lr: float = 3e-3,
    position_lr: float | None = None,
    position_decay: float | None = None,
    seed: int = 0,
    warmup: float = 0.1,
    clip: float = 1.0,
    device: torch.device | str | None = None,
    label: str = "training",
    progress: bool = True,
) -> History:
    """Train ``model`` in place with AdamW, a linear warm-up and a cosine decay to zero.

    Args:
        model: maps ids to logits.
        batch: draws ``(tokens, targets)`` with the generator that it is given.
        steps: number of updates.
        lr: peak learning rate.
        position_lr: the rate for the parameters of every :class:`PositionalEncoding`, by default lr. A
            table of biases starts near 0 and has to grow to the size of a score: at the ordinary rate a
            short training hardly moves it.
        position_decay: the weight decay of these parameters, by default ``DECAY`` like all others. A step
            takes away a share of rate × decay, so a table at 20 times the rate decays 20 times as fast.
        seed: seeds the batches. The initial weights are the caller's; see :func:`seeded`.
        warmup: share of the steps until the peak.
        clip: largest norm of the gradient.
        device: where to train; by default where the model is.
        label: text of the progress bar.
        progress: show the bar.

    Interrupting the kernel (or Ctrl-C) ends the run and keeps what was trained so far. Under
    ``torchrun`` the processes share each batch (:mod:`tutorial_lib.parallel`); losses are those of
    the whole batch.

    Raises:
        ValueError: no steps, or a batch too small to be shared.
        FloatingPointError: the loss became NaN or infinite; says at which step and what to try.
    """
    if steps < 1:
        raise ValueError(f"steps={steps}: train for at least one step")
    device = torch.device(device) if device is not None else next(model.parameters()).device
    model.to(device).train()
    parallel.same_weights(model)
    optimizer = torch.optim.AdamW(
        _groups(model, position_lr, position_decay),
        lr=lr,
        betas=(0.9, 0.98),
        weight_decay=DECAY,
        fused=device.type != "mps",
    )
    rise = max(1, round(warmup * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda n: min((n + 1) / rise, 0.5 + 0.5 * math.cos(math.pi * max(0, n - rise) / (steps - rise + 1))),
    )
    generator, history = torch.Generator().manual_seed(seed), History()
    quiet = not progress or bool(os.environ.get("TQDM_DISABLE"))  # in a notebook tqdm ignores it
    # a live bar costs time with each redraw: two a second are enough
    bar = tqdm(range(steps), desc=label, leave=False, mininterval=0.5, disable=quiet or parallel.rank() > 0)
    try:
        for step in bar:
            loss, value = _loss(model, *batch(generator), device)
            if not math.isfinite(value):  # before the step, which would spoil the weights
                raise FloatingPointError(f"the loss is {value} at step {step}: try a smaller lr than {lr:g}")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            parallel.add_up([p.grad for p in model.parameters() if p.grad is not None])
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            schedule.step()
            history.losses.append(value)
            if step % 10 == 0:
                bar.set_postfix(loss=f"{history.losses[-1]:.3f}", refresh=False)
    except KeyboardInterrupt:
        if _all_or_nothing.get():
            raise
        history.interrupted = True
        print(f"Stopped after {len(history.losses)} of {steps} steps; what was trained is kept.")
    finally:
        bar.close()
        model.eval()
    return history


def _loss(model, tokens, targets, device) -> tuple[Tensor, float]:
    """This process's part of the batch's loss, to be differentiated, and the whole as a number."""
    if parallel.size() == 1:
        loss = cross_entropy(model(tokens.to(device)), targets.to(device))
        return loss, loss.item()
    asked = (targets != -100).sum()  # in all shares, which may hold different numbers of targets
    tokens, targets = (parallel.mine(x).to(device) for x in (tokens, targets))
    loss = (
        F.cross_entropy(
            model(tokens).flatten(0, -2).float(), targets.flatten(), ignore_index=-100, reduction="sum"
        )
        / asked
    )
    whole = loss.detach().clone()
    parallel.add_up([whole])
    return loss, whole.item()


def _groups(model, position_lr, position_decay):
    """The parameters for the optimizer; those of position are separate if they have anything of their own."""
    of_position = position_parameters(model)
    own = {"lr": position_lr, "weight_decay": position_decay}
    own = {name: value for name, value in own.items() if value is not None}
    if not own or not of_position:
        return list(model.parameters())
    rest = [p for p in model.parameters() if p not in of_position]
    return [{"params": rest}, {"params": [*of_position], **own}]


def position_parameters(model: nn.Module) -> dict[nn.Parameter, None]:
    """The parameters of all positional encodings in ``model``, each once, in order."""
    encodings = [module for module in model.modules() if isinstance(module, PositionalEncoding)]
    return dict.fromkeys(p for encoding in encodings for p in encoding.parameters())


@torch.no_grad()
def evaluate(model: nn.Module, tokens: Tensor, targets: Tensor, *, batch_size: int = 64) -> Tensor:
    """Loss in nats of every target, in the shape of ``targets``, on the CPU."""
    device = next(model.parameters()).device
    model.eval()
    losses = []
    for x, y in zip(tokens.split(batch_size), targets.split(batch_size), strict=True):
        logits = model(x.to(device)).float()
        loss = F.cross_entropy(logits.flatten(0, -2), y.to(device).flatten(), reduction="none")
        losses.append(loss.view(y.shape).cpu())
    return torch.cat(losses)


@torch.no_grad()
def accuracy(model: nn.Module, tokens: Tensor, targets: Tensor, *, batch_size: int = 64) -> float:
    """Share of targets whose most likely id is right; targets of −100 are not asked."""
    device = next(model.parameters()).device
    model.eval()
    best = [model(x.to(device)).argmax(-1).cpu() for x in tokens.split(batch_size)]
    return (torch.cat(best) == targets)[targets != -100].float().mean().item()


def seeded(build: Callable[[], Made], seed: int) -> Made:
    """``build()`` with its initial weights drawn from ``seed``; the global generator is untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


@dataclass(frozen=True)
class Spread:
    """A number measured once per seed.

    >>> print(Spread((0.5, 0.25, 0.75)))
    0.50 (0.25 to 0.75)
    """

    values: tuple[float, ...]

    @classmethod
    def of(cls, measure: Callable[[int], float], seeds: Iterable[int]) -> Spread:
        """Measure once for each seed."""
        return cls(tuple(measure(seed) for seed in seeds))

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def __str__(self) -> str:
        return _("{mean} ({low} to {high})").format(
            mean=f"{self.mean:.2f}", low=f"{self.low:.2f}", high=f"{self.high:.2f}"
        )
