"""One model on several processes, each with its share of every batch: data parallelism.

``torchrun --nproc-per-node N -m course.experiments run NAME`` starts N of them. All draw the same
batches and hold the same weights. Each computes the gradient of its own sequences; the sum over the
processes is the gradient of the batch, so all take the same step. Without torchrun there is one process,
and nothing here costs anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .workers import end_with_parent


@contextmanager
def process_group(device: torch.device) -> Iterator[torch.device]:
    """Join the processes that torchrun started, if it did; gives the device of this one.

    They talk by NCCL where the device is CUDA (each process has its own GPU), else by gloo. When torchrun
    is gone, even by SIGKILL, they end.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or dist.is_initialized():
        yield device
        return
    end_with_parent(os.getppid())
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield device
        dist.barrier()  # nobody leaves while another still talks
    finally:
        dist.destroy_process_group()


def rank() -> int:
    """Which of the processes this is; 0 shows and writes."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def agreed(value):
    """``value`` of process 0, in all of them."""
    if size() == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box)
    return box[0]


def mine(batch: Tensor) -> Tensor:
    """This process's share of a batch: rows in turn, one more for some if they do not divide evenly.

    Raises ValueError for a batch with fewer rows than processes.
    """
    if len(batch) < size():
        raise ValueError(f"a batch of {len(batch)} cannot be shared by {size()} processes: start fewer")
    return batch[rank() :: size()]


def same_weights(model: nn.Module) -> None:
    """Give all processes the parameters and buffers of process 0."""
    if size() > 1:
        for weight in (*model.parameters(), *model.buffers()):
            dist.broadcast(weight.detach(), 0)


@torch.no_grad()
def add_up(tensors: list[Tensor]) -> None:
    """Each tensor becomes its sum over the processes, in place; all travel together."""
    if size() == 1 or not tensors:
        return
    flat = torch.cat([x.flatten() for x in tensors])
    dist.all_reduce(flat)
    for x, total in zip(tensors, flat.split([x.numel() for x in tensors]), strict=True):
        x.copy_(total.view_as(x))
