"""pick_device: the fastest by itself, the named one if it is there, a clear error if not."""

import pytest
import torch

from tutorial_lib.device import available_devices, pick_device


def machine(monkeypatch, cuda=0, mps=False):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "names"),
    [(0, False, ["cpu"]), (0, True, ["mps", "cpu"]), (2, True, ["cuda:0", "cuda:1", "mps", "cpu"])],
)
def test_auto_takes_the_fastest(monkeypatch, cuda, mps, names):
    machine(monkeypatch, cuda, mps)
    assert available_devices() == names
    assert pick_device() == pick_device("auto") == torch.device(names[0])
    for name in names:
        assert pick_device(name) == torch.device(name)


def test_cuda_without_a_number(monkeypatch):
    machine(monkeypatch, cuda=1)
    assert pick_device("cuda") == torch.device("cuda")


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "gpu", "", "CPU", "cpu:0", None])
def test_what_is_not_there_is_told(monkeypatch, name):
    machine(monkeypatch)
    with pytest.raises(ValueError, match=r"use 'auto' or one of \['cpu'\]") as error:
        pick_device(name)
    assert repr(name) in str(error.value) and "course.doctor" in str(error.value)


@pytest.mark.gpu
def test_a_real_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    assert torch.ones(1, device=pick_device()).is_cuda
