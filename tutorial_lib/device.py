"""Which device to compute on."""


def available_devices():
    """Return the names of the devices of this machine, the fastest first; ``"cpu"`` is the last."""
    import torch

    names = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    return [*names, "cpu"]


def pick_device(name="auto"):
    """Return a `torch.device`.

    Args:
        name: ``"auto"`` (CUDA, else MPS, else CPU), or ``"cuda"``, ``"cuda:1"``, ``"mps"``, ``"cpu"``.

    Raises:
        ValueError: the name is wrong, or this machine (or this build of torch) has no such device.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    import torch

    available = available_devices()
    if name == "auto":
        return torch.device(available[0])
    if name not in available and not (name == "cuda" and "cuda:0" in available):
        raise ValueError(
            f"device {name!r} is not available on this machine: use 'auto' or one of {available}; "
            "`python -m course.doctor` shows what was found"
        )
    return torch.device(name)
