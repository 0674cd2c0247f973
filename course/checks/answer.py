"""Call an answer and record the outcome. It judges nothing and knows no right answer.

This file and :mod:`.messaging` are all that a sandbox needs; it imports nothing else of the package.
"""

from __future__ import annotations

import contextlib
import ctypes
import dis
import itertools
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

LIBRARY = ("tutorial_lib.", "course.")
#: What an answer may call: the checks themselves, and what runs them.
OPEN = ("course.checks", "course.lesson.turns")
MOST_NUMBERS = 1_000_000  # in one value; every right answer is far smaller
#: What a message can carry.
DTYPES = {
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.complex128,
    torch.complex64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint64,
    torch.uint32,
    torch.uint16,
    torch.uint8,
    torch.bool,
}


class TooSlow(BaseException):
    """A call has run out of time. Not an Exception, so that ``except Exception`` does not swallow it."""


def collect(
    function: Callable, inputs: Sequence[tuple], seconds: float = 10.0, cpu: bool = False, ours: bool = False
) -> list[dict]:
    """Call ``function`` once for each tuple of arguments; returns one outcome for each.

    An outcome is a dict: ``kind`` is "value" (with ``value`` and ``device``), "none", "foreign" (a value
    that is not a tensor, number, text or sequence of them: ``type`` says what it is), "raised" (``error``,
    ``message``, ``line``), "stub" (NotImplementedError), "slow"; ``modified`` lists the numbers of
    the arguments that were changed, ``borrowed`` the functions of the library that were called.
    After a call that was too slow, the rest are not made; they count as "slow", too. ``cpu``: the seconds are
    processor time, so that nobody loses out on a busy machine (POSIX only). ``ours``: the function
    comes from a catalogue, so neither its time nor its calls are watched.
    """
    outcomes: list[dict] = []
    for args in inputs:
        if outcomes and outcomes[-1]["kind"] == "slow":
            outcomes.append({"kind": "slow", "seconds": seconds, "modified": [], "borrowed": []})
        else:
            outcomes.append(_call(function, args, seconds, cpu, ours))
    return outcomes


def _call(function: Callable, args: tuple, seconds: float, cpu: bool, ours: bool) -> dict:
    given = _copy(args)
    borrowed: list[str] = []
    clock = time.process_time if cpu else time.perf_counter
    started = clock()
    try:
        if ours:
            outcome = _plain(function(*given))
        else:
            with _watch(borrowed), at_most(seconds, cpu):
                outcome = _plain(function(*given))
    except TooSlow:
        outcome = {"kind": "slow", "seconds": seconds}
    except BaseException as error:  # SystemExit, too: an answer must not end the kernel
        if isinstance(error, KeyboardInterrupt) and clock() - started < seconds:
            raise  # the learner's own
        outcome = (
            {"kind": "stub", "message": _said(error)}
            if _is_stub(error)
            else {
                "kind": "raised",
                "error": type(error).__name__,
                "message": _said(error),
                "line": _line(error),
            }
        )
    if outcome["kind"] == "value" and clock() - started > 2 * seconds:
        outcome = {"kind": "slow", "seconds": seconds}  # where there is no alarm
    outcome["modified"] = [
        n for n, (old, new) in enumerate(zip(args, given, strict=True)) if not _equal(old, new)
    ]
    outcome["borrowed"] = sorted(set(borrowed))[:20]
    return outcome


def _copy(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (tuple, list)):
        return type(value)(_copy(one) for one in value)
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    return value


def _equal(old, new) -> bool:
    if isinstance(old, torch.Tensor):
        return (
            isinstance(new, torch.Tensor)
            and old.shape == new.shape
            and old.dtype == new.dtype
            and bool(torch.equal(old.nan_to_num(), new.detach().nan_to_num()))
        )
    if isinstance(old, (tuple, list)):
        return len(old) == len(new) and all(_equal(a, b) for a, b in zip(old, new, strict=True))
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(_equal(old[key], new[key]) for key in old)
    return type(old) is type(new) and (old == new or old != old)  # NaN is as it was


def _plain(value) -> dict:
    """A value as tensors and plain Python, or why it can't be that."""
    if value is None:
        return {"kind": "none"}
    try:
        devices: set[str] = set()
        value = _simple(value, devices, [MOST_NUMBERS], 6)
        return {"kind": "value", "value": value, "device": ", ".join(sorted(devices))}
    except TypeError as problem:
        return {"kind": "foreign", "type": str(problem)[:100]}


def _simple(value, devices: set[str], room: list[int], deep: int):
    """``room`` holds how many more numbers are allowed. TypeError says what cannot be read."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        try:
            value = torch.from_numpy(np.array(value, order="C"))
        except TypeError:
            raise TypeError(f"NumPy array of {value.dtype}") from None
    if isinstance(value, torch.Tensor):
        room[0] -= value.numel()
        if room[0] < 0:
            raise TypeError(f"tensor of {value.numel()} numbers")
        if value.layout is not torch.strided or value.dtype not in DTYPES:
            raise TypeError(f"{value.layout} tensor of {value.dtype}")
        devices.add(value.device.type)
        if value.device.type == "meta":
            return torch.empty(0)
        return value.detach().cpu().as_subclass(torch.Tensor)
    if isinstance(value, (bool, int, float, str)):
        kind = next(kind for kind in (bool, int, float, str) if isinstance(value, kind))
        plain: Any = kind(value)
        if kind is str and len(plain) > 10_000 or kind is int and plain.bit_length() > 128:
            raise TypeError(f"{kind.__name__} of that size")
        return plain
    if isinstance(value, (tuple, list)) and deep and len(value) <= 10_000:
        return [_simple(one, devices, room, deep - 1) for one in value]
    if isinstance(value, dict) and deep and len(value) <= 1000 and all(type(k) is str for k in value):
        return {key: _simple(one, devices, room, deep - 1) for key, one in value.items()}
    raise TypeError(type(value).__name__)


def _said(error: BaseException) -> str:
    """The words of an error on one line, and not a table of them."""
    try:
        text = " ".join(str(error).split())
        return text if len(text) <= 300 else text[:299] + "…"
    except Exception:  # the learner's own exception class, itself broken
        return "(no text)"


def _is_stub(error: BaseException) -> bool:
    """Is it a ``raise NotImplementedError`` of the answer's own? PyTorch raises them, too: "not
    implemented for 'Long'"."""
    if not isinstance(error, NotImplementedError):
        return False
    last: Any = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    return (
        code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"] and "site-packages" not in code.co_filename
    )


def _line(error: BaseException) -> str:
    """The line of the answer where an error arose: the last one outside any library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and frame.filename != __file__]
    return (own[-1].line or "").strip()[:200] if own else ""


@contextlib.contextmanager
def _watch(borrowed: list[str]):
    """Note the library's own functions that the answer calls."""

    def note(frame, event, _arg):
        if event == "call":
            module = frame.f_globals.get("__name__") or ""
            if module.startswith(LIBRARY) and not module.startswith(OPEN):
                borrowed.append(f"{module}.{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def _get_out(frame, rung: int) -> bool:
    """See to it that an ``except:`` which catches TooSlow does not keep it; returns whether to raise it now.

    First, TooSlow is raised again in the first line of the handler, which is outside of its try. If that is
    caught further out, it is raised at some line of the outermost function: at another one each time.
    """
    stack = []
    while frame is not None and frame.f_code.co_filename != __file__:
        stack.append(frame)
        frame = frame.f_back
    caught: set[int] = set()
    left = rung // 2

    def again(frame, event, arg):
        if event == "exception" and issubclass(arg[0], TooSlow):
            caught.add(id(frame))
        elif event == "line" and id(frame) in caught:
            raise TooSlow
        return again

    def at_a_line(frame, event, _arg):
        nonlocal left
        if event == "line" and frame is stack[-1]:
            left -= 1
            if left < 0:
                raise TooSlow
        return at_a_line

    trace = at_a_line if rung % 2 else again
    sys.settrace(lambda *_: None)  # of these frames only: what cleans up after them runs undisturbed
    for one in stack:
        one.f_trace = trace
    return not rung % 2


@contextlib.contextmanager
def at_most(seconds: float, cpu: bool = False):
    """Raise :class:`TooSlow` in the body after that long, and again each second if it is caught."""
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        rings = itertools.count()

        def ring(_signal, frame):
            if _get_out(frame, next(rings)):
                raise TooSlow

        which, bell = (signal.ITIMER_PROF, signal.SIGPROF) if cpu else (signal.ITIMER_REAL, signal.SIGALRM)
        before, traced = signal.signal(bell, ring), sys.gettrace()
        signal.setitimer(which, seconds, 1.0)
        try:
            yield
        finally:
            signal.setitimer(which, 0)
            signal.signal(bell, before)
            sys.settrace(traced)
        return
    # On Windows, or outside the main thread, another thread raises the exception in this one.
    thread, over = threading.get_ident(), threading.Event()

    def shout():
        if not over.wait(seconds):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooSlow))

    clock = threading.Thread(target=shout, daemon=True)
    clock.start()
    try:
        yield
    finally:
        over.set()
        clock.join()
