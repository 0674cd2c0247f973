"""What an explorer shows and says, asked of the front end's own code: node runs it, or else Chromium.

ask(RotaryExplorer, {"m": 30}, {"m": 30, "n": 22})[1].reached
"""

from __future__ import annotations

import functools
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tutorial_lib.explorers import live
from tutorial_lib.language import language

from . import browser

ANSWER = """(() => {{
{script}const data = {data}, explorer = explorers.{front};
return asked => asked.map(p => ({{ ...explorer.scene(p, data), reached: explorer.reached(p, data),
    alt: kit.alt(explorer, p, data) }}));
}})()"""
# The first line from Python is the script, the others are settings.
LISTEN = """let answer;
require("readline").createInterface({ input: process.stdin }).on("line", line => {
    if (answer) process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\\n");
    else answer = eval(JSON.parse(line));
});"""


class Seen(NamedTuple):
    """One setting: the views' numbers, what stands at a mark, the sentences, the evidence, the alt text."""

    views: dict[str, np.ndarray]
    readouts: dict[str, str]
    description: str
    reached: str
    alt: str
    result: str


def ask(kind, *some: dict) -> list[Seen]:
    """What it shows at these settings, each completed, in the reader's language.

    Raises RuntimeError where neither node nor Chromium is found.
    """
    said = _running(kind, language())([kind.settings(**each) for each in some])
    return [
        Seen(
            {name: np.array(view, dtype=float) for name, view in each["views"].items()},
            each.get("readouts", {}),
            each["description"],
            each["reached"],
            each["alt"],
            each.get("result", ""),
        )
        for each in said
    ]


def seen(kind, **some) -> Seen:
    """What it shows at one setting."""
    return ask(kind, some)[0]


@functools.cache
def _running(kind, _language: str) -> Callable[[list], list]:
    name, data = kind.front, json.dumps(live.table(kind))
    return answering(ANSWER.format(script=live.joined(name), data=data, front=name), f"{name}.js")


def answering(script: str, name: str, *flags: str) -> Callable[[list], list]:
    """A function of JavaScript as one of Python: ``script`` is an expression that gives it.

    It takes and returns what JSON can say. ``flags`` are node's. Raises RuntimeError where neither node nor
    Chromium is found, ValueError where the script fails.
    """
    if not (node := shutil.which("node")):
        page = browser.launch().new_page()
        return lambda asked: page.evaluate(
            "([script, asked]) => (window.answer ??= eval(script))(asked)", [script, asked]
        )
    process = subprocess.Popen(
        [node, *flags, "-e", LISTEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )

    def answer(asked: list) -> list:
        tell(asked)
        if not (line := process.stdout.readline()):
            raise ValueError(f"{name} fails at {asked}; node has said why")
        return json.loads(line)

    def tell(what) -> None:
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()

    tell(script)
    return answer


# ---- what to ask ----
MANY = 150  # settings of each explorer: half of them from its grid, half any
EDGES = {  # and what chance may miss
    "rotary": [{"m": 30, "n": 22}, {"pairs": 16, "pair": 8, "turning": "partial"}],
    "sinusoidal": [{"layout": "concatenated", "dimension": 8}],
    "crowd": [{"keys": 131072, "lead": lead} for lead in (11.75, 12, 12.25)]
    + [{"query": "Llama 4", "keys": 16384, "lead": 8.75}, {"query": "Scalable-Softmax", "lead": 3}],
    "relative": [
        {"tokens": 128, "method": "clipped", "size": 16},
        {"tokens": 128, "size": 16, "far": 16, "sign": "i − j"},
    ],
    "hybrid": [{"score": score, "guess": "off"} for score in ("w·p_j", "w·p_i", "relu(w·[p_i; r_ij])")],
    "scaling": [
        {"model": model, "method": "LongRoPE", "times": times, "pair": 30}
        for model in ("Phi-3.5-mini", "SmolLM2-135M")
        for times in (1, 1.5)
    ],
    "recurrence": [{"segment": 8, "memory": 1, "layers": 3, "query": query} for query in (22, 23)],
}


def settings(kind) -> list[dict]:
    """Many settings, the same ones in each run: the first, edges, corners of the grid, and any values."""
    dice = random.Random(19)
    found = [kind.settings(), *(kind.settings(**some) for some in EDGES.get(kind.front, []))]
    found += dice.sample(grid := list(kind.grid()), min(MANY // 2, len(grid)))
    while len(found) < MANY:
        params = {}
        for name, parameter in kind.parameters.items():
            params[name] = dice.choice(parameter.allowed(params))
        found.append(params)
    return found
