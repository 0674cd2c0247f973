"""``python -m workshop.atlas.conformance`` asks the tool that names bugs about every decoder of the atlas.

With names, only these are asked again. It writes a record, and its table into ``docs/conformance.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import warnings
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}

from course import atlas  # noqa: E402
from course.places import RECORDS  # noqa: E402
from tutorial_lib import conformance  # noqa: E402
from workshop import documents  # noqa: E402

from . import record, tiny  # noqa: E402

FILE, PAGE = RECORDS / "benchmarks" / "conformance_atlas.json", documents.ROOT / "docs" / "conformance.md"
BEGIN, END = "<!-- measured: python -m workshop.atlas.conformance -->\n", "<!-- end -->"
SECONDS = 150
PROMISES = ("shift", "causality", "cache", "padding", "packing")
LOOKED = {  # what failed or could not be asked, and what the model's code says of it
    "bart bigbird_pegasus blenderbot-small marian mbart mvp pegasus plbart roformer trocr whisper": (
        "**count padding on the left**: they number tokens by their place in the row and take no positions. "
        "That is their design. Most are made to stand beside an encoder, with the padding on the right."
    ),
    "camembert data2vec-text roberta roberta-prelayernorm xlm-roberta xlm-roberta-xl": (
        "**begin at `pad_token_id` + 1** where no positions are given, as RoBERTa was trained. So positions "
        "0, 1, 2 are others to them: a caller who packs texts has to know it."
    ),
    "beam": "makes queries longer with the position, by design, and the tool's names are wrong here.",
    "deepseek_v4": (
        "counts its compressed entries from the first token that it is given, and makes them without the "
        "mask: tokens of the padding are compressed as well. So a padded text has other logits."
    ),
    "recurrent_gemma": (
        "begins its recurrence anew at position 0, by design, so a text that begins elsewhere is another "
        "one. The recurrence also reads the padding, hidden or not."
    ),
    "rwkv": "reads the padding: it says in a warning that it does not use the mask.",
    "jamba zamba": (
        "**forget their recurrence** when several tokens come at once behind a cache: the scan begins "
        "without the state that the cache keeps. One token at a time, as `generate` asks them, is right."
    ),
    "nemotron_h zamba2": (
        "limit the time step in the scan and not in the single step, so with a cache the logits are a "
        "little different. It is no rounding: Zamba2's are in float64, too."
    ),
    "moshi": (
        "has a cache that keeps a window and a mask that shows all. Beyond the window (3,000 tokens by "
        "default, 8 here), what it says depends on whether there is a cache."
    ),
    "bamba blenderbot xlstm": "could not be asked in this size.",
}


def too_long(*_: Any) -> None:
    raise TimeoutError(f"it takes longer than {SECONDS} s")


def said(name: str) -> dict[str, Any]:
    """How each promise went for a small model of this type, and the names of what failed."""
    for leave in record.LEAVE:
        try:
            net = tiny.model(tiny.small(name, leave))
            break
        except Exception as error:  # as in record.measured
            because = error
    else:
        raise because
    report = conformance.check(net)
    return {f.promise: [f.status, *(f.bugs if f.status == "failed" else [])] for f in report.findings}


def failed(its: dict[str, Any]) -> bool:
    return "error" in its or any(each[0] == "failed" for each in its.values())


def page(rows: dict[str, Any]) -> str:
    """What ``docs/conformance.md`` says of the record."""
    asked = [its for its in rows.values() if "error" not in its]
    lines = ["| promise | passed | failed | not decided |", "|---|---|---|---|"]
    for promise in PROMISES:
        n = [
            sum(its[promise][0] == status for its in asked) for status in ("passed", "failed", "not decided")
        ]
        lines.append(f"| {promise} | {n[0]} | {n[1]} | {n[2]} |")
    fine = sum(not failed(its) for its in rows.values())
    return "\n".join(
        [
            f"We asked it about all {len(rows)} decoders of [the atlas](atlas.md), each as a small random "
            f"model. In {fine} nothing failed. What failed elsewhere was looked up in the model's own code.",
            "",
            *lines,
            "",
            *(
                f"- {', '.join(f'`{name}`' for name in names.split())}: {why}"
                for names, why in LOOKED.items()
            ),
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m workshop.atlas.conformance", description=__doc__)
    parser.add_argument("types", nargs="*", help="model types that are asked again; by default all are")
    names = parser.parse_args(arguments).types
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGALRM, too_long)
    rows = json.loads(FILE.read_text(encoding="utf-8")) if names else {}
    for name in names or [each["type"] for each in atlas.record()["rows"] if "runs" in each]:
        signal.alarm(SECONDS)
        try:
            rows[name] = said(name)
        except Exception as error:
            rows[name] = {"error": record.in_a_line(error)}
        signal.alarm(0)
        print(name, {key: value for key, value in rows[name].items() if value[0] != "passed"}, flush=True)
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(rows[name], ensure_ascii=False)}" for name in sorted(rows)
    )
    FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + page(rows) + "\n" + END + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
