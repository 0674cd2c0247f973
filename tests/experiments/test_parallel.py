"""Two real processes that share each batch train as one does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course.experiments.record import Record
from tutorial_lib import parallel
from tutorial_lib.data import steps_back
from tutorial_lib.encodings import T5Bias
from tutorial_lib.model import Config, Transformer
from tutorial_lib.training import cross_entropy, seeded, train

STEPS = 12


def batch(generator):
    """Seven sequences (2 does not divide them), each with its own number of targets, one with none."""
    tokens, targets = steps_back(7, generator, k=2, length=10, n_values=8)
    for row in range(7):
        targets[row, 10 - row :] = -100
    targets[0] = -100
    return tokens, targets


def trained(seed=0, again=True, **options):
    """Losses and final weights; the second training goes on with the first one's model."""
    model = seeded(lambda: Transformer(Config(8, 16, n_heads=2, n_layers=1), T5Bias(2)), seed)
    model.unused = torch.nn.Parameter(torch.ones(3))
    losses = train(model, batch, STEPS, lr=1e-2, clip=0.5, **options).losses
    losses += train(model, batch, 3, seed=5, **options).losses if again else []
    return losses, {name: weight.tolist() for name, weight in model.state_dict().items()}


SCRIPT = """
import json, sys
from pathlib import Path
import torch
import torch.distributed as dist
sys.path.insert(0, {tests!r})
import test_parallel
from tutorial_lib import parallel

with parallel.process_group(torch.device("cpu")) as device:
    found = dict(size=parallel.size(),
                 trained=test_parallel.trained(label="my bar"),
                 differ=test_parallel.trained(parallel.rank() * 7, again=False, progress=False),
                 refused=test_parallel.refused())
    Path({folder!r}, str(parallel.rank())).write_text(json.dumps(found))
assert not dist.is_initialized()
"""


def torchrun(processes, *command):
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(processes),
            *map(str, command),
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def in_two(tmp_path_factory):
    """What each of two processes found, and what they printed."""
    folder = tmp_path_factory.mktemp("two")
    script = folder / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), folder=str(folder)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TQDM_DISABLE", "")
        done = torchrun(2, script)
    assert done.returncode == 0, done.stderr
    found = [json.loads((folder / str(rank)).read_text()) for rank in range(2)]
    assert [each["size"] for each in found] == [2, 2]
    return found, done.stdout + done.stderr


def test_two_processes_train_as_one(in_two):
    """Losses of the whole batch, to 1e-5 relative, and the same final weights."""
    (first, second), printed = in_two
    first, second = first["trained"], second["trained"]
    losses, weights = trained()
    assert first[0] == pytest.approx(losses, rel=1e-5) and first == second
    for name, weight in weights.items():
        torch.testing.assert_close(torch.tensor(first[1][name]), torch.tensor(weight), atol=2e-5, rtol=1e-4)
    assert losses[0] > losses[STEPS - 1] and "unused" in weights
    assert printed.count("my bar:   0%") == 2  # one for each training, of the first process alone


def test_all_start_with_the_weights_of_the_first(in_two):
    first, second = (each["differ"] for each in in_two[0])
    assert first == second and first[0] == pytest.approx(trained(again=False)[0], rel=1e-5)


def refused():
    """What training says to one sequence for two processes, and to a batch that asks for nothing."""
    said = []
    for targets in (torch.ones(1, 4).long(), torch.full((4, 4), -100)):
        model = seeded(lambda: Transformer(Config(8, 16, n_heads=2, n_layers=1)), 0)
        try:
            train(model, lambda generator, targets=targets: (targets.clamp(0), targets), 2, progress=False)
        except (ValueError, FloatingPointError) as error:
            said.append(str(error))
    return said


def test_what_cannot_be_trained_on_says_so_everywhere(in_two):
    for small, nothing in (each["refused"] for each in in_two[0]):
        assert small == "a batch of 1 cannot be shared by 2 processes: start fewer"
        assert nothing.startswith("the loss is nan at step 0")


def test_alone_nothing_changes():
    x = torch.ones(3)
    assert (parallel.size(), parallel.rank(), parallel.agreed(x)) == (1, 0, x)
    assert parallel.mine(x).tolist() == [1.0] * 3
    parallel.add_up([x])
    parallel.same_weights(torch.nn.Linear(2, 2))
    with parallel.process_group(torch.device("meta")) as device:
        assert device == torch.device("meta") and x.tolist() == [1.0] * 3
    assert cross_entropy(torch.zeros(1, 2), torch.tensor([0])).item() == pytest.approx(0.6931, abs=1e-4)


EXPERIMENT = """
import sys
from dataclasses import replace
sys.path.insert(0, {tests!r})
import torch
from test_experiments import TINY
import test_parallel
from course.experiments import EXPERIMENTS
from course.experiments.__main__ import main

def measure(settings, cell, seed, device):
    losses, weights = test_parallel.trained(seed, again=False, progress=False)
    if {stop} and (cell["length"], seed) == (2, 0):
        raise ArithmeticError("stop")
    return {{"losses": losses}}

cells = [{{"length": 1}}, {{"length": 2}}]
EXPERIMENTS["tiny"] = replace(TINY, measure=measure, cells=lambda settings: cells)
sys.exit(main(sys.argv[1:]))
"""


def test_an_experiment_under_torchrun_writes_once_and_goes_on(tmp_path):
    """It stops in the second run; the second call, of both processes, goes on there."""
    script, path = tmp_path / "script.py", tmp_path / "records" / "tiny-live.json"
    arguments = "run", "tiny", "--preset", "live", "--folder", path.parent
    tests = str(Path(__file__).parent)
    script.write_text(EXPERIMENT.format(tests=tests, stop=True))
    done = torchrun(2, script, *arguments)
    assert done.returncode and "This happened in {'length': 2} with seed 0." in done.stderr
    (partial,) = path.parent.iterdir()
    assert len(partial.read_text().splitlines()) == 2
    script.write_text(EXPERIMENT.format(tests=tests, stop=False))
    done = torchrun(2, script, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("4 runs") == 1 and [*path.parent.iterdir()] == [path]
    record = Record.load(path)
    assert record.device == "cpu, 2 processes"
    assert record.command == ("torchrun --nproc-per-node 2 -m course.experiments run tiny --preset live")
    for seed, losses in enumerate(record.values("losses", length=1)):
        assert losses == pytest.approx(trained(seed, again=False)[0], rel=1e-5)


def test_dask_and_torchrun_do_not_go_together(monkeypatch):
    from course.experiments import run

    monkeypatch.setattr(parallel, "size", lambda: 2)
    with pytest.raises(ValueError, match="scheduler='local': a sweep runs on Dask or under torchrun"):
        run("word_order", scheduler="local")
