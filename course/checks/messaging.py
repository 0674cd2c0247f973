"""Messages between a process that runs an answer and one that judges it.

A message is a tree of dict, list, tuple, str, int, float, bool, None and tensors. On the wire it is
one frame: eight bytes of length (little-endian), then a safetensors blob that holds the tensors,
and the rest as JSON in its metadata. Reading a frame runs no code, whoever wrote it.
"""

from __future__ import annotations

import json
import math
import struct
from typing import IO

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

MOST = 256 * 2**20  # bytes of a frame
DEEP = 40  # levels of a tree


class BadMessage(ValueError):
    """The bytes are not a message, or the tree can't become one."""


def pack(message) -> bytes:
    """The frame of a message. Raises BadMessage for what a message can't hold."""
    tensors: dict[str, torch.Tensor] = {}
    tree = _as_tree(message, tensors, DEEP)
    try:
        blob = save(tensors, metadata={"message": json.dumps(tree, allow_nan=False)})
    except (KeyError, SafetensorError) as problem:
        raise BadMessage(f"a message can't hold a tensor of this kind: {problem}") from None
    return struct.pack("<Q", len(blob)) + blob


def unpack(frame: bytes):
    """The message of a frame. Raises BadMessage."""
    if len(frame) < 8 or struct.unpack("<Q", frame[:8])[0] != len(frame) - 8:
        raise BadMessage("not a frame")
    return _open(frame[8:])


def send(file: IO[bytes], message) -> None:
    """Write a frame."""
    file.write(pack(message))
    file.flush()


def receive(file: IO[bytes], most: int = MOST):
    """Read one message. EOFError when the other side has gone; BadMessage for anything else."""
    head = _exactly(file, 8)
    (length,) = struct.unpack("<Q", head)
    if length > most:
        raise BadMessage(f"a frame of {length} bytes; at most {most} are read")
    return _open(_exactly(file, length))


def _exactly(file: IO[bytes], count: int) -> bytes:
    pieces = []
    while count:
        piece = file.read(count)
        if not piece:
            raise EOFError("the other side has gone")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _open(blob: bytes):
    try:
        (length,) = struct.unpack("<Q", blob[:8])
        header = json.loads(blob[8 : 8 + length])
        tree = json.loads(header["__metadata__"]["message"])
        return _from_tree(tree, load(blob), DEEP)
    except BadMessage:
        raise
    except (
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OverflowError,
        struct.error,
        RuntimeError,
    ) as problem:
        raise BadMessage(f"not a message: {type(problem).__name__}") from None


def _as_tree(value, tensors: dict, deep: int):
    """A message as JSON; its tensors go into ``tensors``, and their names into the tree."""
    if deep == 0:
        raise BadMessage(f"more than {DEEP} levels")
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        if value.bit_length() > 128:
            raise BadMessage("a whole number of more than 128 bits")
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, torch.Tensor):
        name = str(len(tensors))
        # A copy, so that no two tensors share memory (safetensors refuses that).
        plain = value.detach().resolve_conj().resolve_neg().to("cpu", copy=True).contiguous()
        double = plain.dtype == torch.complex128  # safetensors knows complex64 only
        tensors[name] = torch.view_as_real(plain) if double else plain
        return {"complex" if double else "tensor": name}
    if kind in (list, tuple):
        return {kind.__name__: [_as_tree(one, tensors, deep - 1) for one in value]}
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise BadMessage("keys must be strings")
        return {"dict": {key: _as_tree(one, tensors, deep - 1) for key, one in value.items()}}
    raise BadMessage(f"a message can't hold a {kind.__name__}")


def _from_tree(tree, tensors: dict, deep: int):
    """The message that a tree stands for: the inverse of :func:`_as_tree`."""
    if deep == 0:
        raise BadMessage(f"more than {DEEP} levels")
    if not isinstance(tree, dict):
        if isinstance(tree, list):
            raise BadMessage("a bare list")
        return tree
    ((kind, value),) = tree.items()
    if kind == "float":
        return float(value)
    if kind == "tensor":
        return tensors[value]
    if kind == "complex":
        return torch.view_as_complex(tensors[value])
    if kind in ("list", "tuple"):
        items = [_from_tree(one, tensors, deep - 1) for one in value]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: _from_tree(one, tensors, deep - 1) for key, one in value.items()}
    raise BadMessage(f"unknown kind {kind!r}")
