"""Each right implementation and each mutant, handed to the tool as an honest user would: what does it say?

``python -m tests.conformance.confusion`` writes ``results/benchmarks/conformance.json`` and the table of
``docs/conformance.md``.
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections import Counter
from pathlib import Path

from tutorial_lib import conformance

from . import mutants

NAMES = {  # a bug, as those say who wrote the mutants: the names that the tool has for it
    "pairs-interleaved-for-half": ("layout", "permuted channels", "mixed layouts"),
    "pairs-half-for-interleaved": ("layout", "permuted channels", "mixed layouts"),
    "tables-of-the-other-layout": ("mixed layouts",),
    "pairs-after-permuted-weights": ("layout",),
    "sign-of-rotation": ("sign",),
    "sign-of-bias": ("bias sign",),
    "k-turned-and-q-not": ("only keys turned",),
    "turned-twice": ("turned twice",),
    "positions-doubled": ("positions doubled",),
    "values-turned": ("values turned",),
    "positions-from-1": ("positions from 1",),
    "cache-restart": ("positions restart", "bias restarts"),
    "cache-lag": ("positions lag by one",),
    "last-position-for-chunk": ("one position for the chunk",),
    "left-padding-counted": ("left padding counted",),
    "packing-runs-on": ("packing",),
    "evicted-keys-turned-anew": ("keys turned anew",),
    "evicted-keys-not-turned": ("keys not turned",),
    "angles-in-half": ("angles in half precision",),
    "positions-in-bf16": ("positions in bf16",),
    "inv-freq-never-filled": ("inv_freq never filled",),
    "base-from-wrong-place": ("base",),
    "scaling-in-wrong-layers": ("scaling in the wrong layers",),
    "factor-twice": ("factor twice",),
    "attention-factor-forgotten": ("attention factor forgotten",),
    "attention-factor-squared": ("attention factor squared",),
    "yarn-ramp-truncation": ("ramp truncated", "ramp not truncated"),
    "partial-wrong-part": ("partial part",),
    "head-dim-for-model-dim": ("model's dimension",),
    "bias-before-scale": ("bias before the scale",),
    "bias-absolute-distance": ("bias is a mirror",),
    "bias-unsigned": ("bias is a mirror",),
    "slopes-not-power-of-two": ("slopes",),
    "t5-buckets-one-off": ("buckets",),
    "t5-bidirectional-for-causal": ("bidirectional buckets",),
    "clip-after-shift": ("clipped after the shift",),
    "table-read-i-minus-j": ("table read i − j",),
    "sinusoid-half-d": ("frequencies with d/2",),
    "table-broadcast-over-batch": ("rows share positions",),
    "axes-swapped": ("axes swapped",),
    "align-corners": ("corners aligned",),
    "mrope-sections-order": ("sections",),
    "indexer-other-layout": ("indexer's layout",),
}


def check(name, module):
    """The report on the right module ``name`` or a mutant of it, with what the right one's ``ABOUT`` says."""
    right = mutants.load(name)
    report = HANDED[right.ABOUT["kind"]](module, right.ABOUT)
    if right.ABOUT["kind"] == "decoder" and report.ok:  # then it asks for a reference
        report = decoder(module, right.ABOUT, right)
    return report


def rotation(module, about):
    return conformance.check(module.rotate, kind="rotate", **declared(about))


def declared(about, head_dim=64):
    options = {"head_dim": head_dim, "layout": about["layout"], "base": about["base"]}
    if "fraction" in about:
        options |= {"rotary_dim": int(head_dim * about["fraction"]), "part": about.get("part", "first")}
    if "scaling" in about:
        renamed = {"type": "rope_type", "original": "original_max_position_embeddings"}
        options["scaling"] = {renamed.get(key, key): value for key, value in about["scaling"].items()}
    return options


def image(module, about):
    apart = about["layout"] == "half of each half"
    order = "apart" if apart else "axial"
    options = declared(about) | {"layout": about["layout"].split()[0], "sections": (16, 16), "order": order}
    return conformance.check(module.rotate, kind="rotate", **options)


def of_axes(module, about):
    dealt = isinstance(about["sections"], str)
    sections = [about["sections"].count(axis) for axis in "thw"] if dealt else about["sections"]

    def rotate(x, positions):
        rows = positions if positions.ndim == 3 else positions.expand(len(x), -1, -1)
        return module.rotate(x, rows.movedim(-1, 0))

    order = "interleaved" if dealt else "chunked"
    options = declared(about, about["dim"]) | {"sections": tuple(sections), "order": order}
    return conformance.check(rotate, **options)


def indexer(module, about):
    beside = {"indexer": module.index_rotate, "indexer_layout": about["layout"]}
    return conformance.check(module.rotate, kind="rotate", **declared(about, 16), **beside)


def bias(module, about):
    options = {"bias_kind": about["encoding"], "causal": about["causal"]}
    if "table" in about:
        heads_first = about["encoding"] == "clipped" and len(about["table"]) != 2 * about["clip"] + 1
        options["table"] = about["table"] if heads_first else about["table"].T
    if "buckets" in about:
        options |= {"n_buckets": about["buckets"], "max_distance": about["max_distance"]}
    return conformance.check(module.bias, **options)


def attention(module, about):
    def attend(q, k, v):
        return module.attend(q, k, v, offset=k.shape[2] - q.shape[2])

    options = {key: about[key] for key in ("encoding", "layout", "base", "values") if key in about}
    return conformance.check(attend, **options)


def decoder(module, about, original=None):
    options = {"vocab": about["vocabulary"], "cache": dict}
    if about["encoding"] in ("rope", "alibi"):
        options["relative"] = True
    if about["encoding"] == "rope" and "layers" not in about:
        head_dim = getattr(module, "HEAD_DIM", None) or module.HEAD
        options |= {key: value for key, value in declared(about, head_dim).items() if key != "layout"}
    if original is not None:
        options["reference"] = original.Decoder(1).logits
    return conformance.check(module.Decoder(1).logits, kind="logits", **options)


def streaming(module, about):
    window = about["window"] if "window" in about else about["sinks"] + about["recent"]
    options = {"vocab": about["vocabulary"], "cache": dict, "relative": True, "window": window}
    return conformance.check(module.Decoder(1).logits, kind="logits", **options)


def sinusoids(module, about):
    table = functools.cache(lambda: module.table(8192, 64))
    options = {"layout": about["layout"], "base": about["base"]}
    return conformance.check(lambda positions: table()[positions], kind="table", **options)


def resized(module, about):
    return conformance.check(module.resize, mode=about["mode"])


HANDED = {
    "rotate": rotation,
    "rotate_2d": image,
    "mrope": of_axes,
    "indexer": indexer,
    "bias": bias,
    "attend": attention,
    "decoder": decoder,
    "streaming": streaming,
    "sinusoid": sinusoids,
    "resize": resized,
}


def verdict(name, slug, report):
    """One of ``VERDICTS``; of what no attention shows, ``hidden``, or ``alarm`` if something failed."""
    if (name, slug) in HIDDEN:
        return "hidden" if report.ok else "alarm"
    failed = set(names(report))
    sinusoid = slug == "tables-of-the-other-layout" and name.startswith("sinusoid")
    if failed & {"layout"} if sinusoid else failed & set(NAMES[slug]):
        return "named"
    if not report.ok:
        return "misnamed" if failed else "not named"
    return "not decided" if report["golden values"].status == "not decided" else "passed"


def names(report):
    return sorted({each for finding in report.failed for each in (*finding.bugs, *finding.also)})


HIDDEN = mutants.EQUIVALENT | mutants.HARMLESS  # what no attention shows
GIVEN = {  # the kinds of modules, as the page names them
    "`rotate(x, positions)`": ("rotate", "rotate_2d", "mrope", "indexer"),
    "`table(positions)`": ("sinusoid",),
    "`bias(Lq, Lk)`": ("bias",),
    "`attend(q, k, v)`": ("attend",),
    "`logits(tokens, …)`, then with a `reference`": ("decoder", "streaming"),
    "`resize(table, size)`": ("resize",),
}


PAIRS = [(name, slug) for name, its in mutants.MUTATIONS.items() for slug, _, _ in its]
KINDS = {name: kind for name, kind, _ in mutants.right()}


def said(name, slug):
    """The verdict on a mutant, and the names that it got."""
    report = check(name, mutants.load(name, slug))
    return [verdict(name, slug, report), *names(report)]


def part(seed=1):
    """Some of the mutants: each bug in each kind of code, and each implementation."""
    shuffled, met = random.Random(seed).sample(PAIRS, len(PAIRS)), set()
    for name, slug in shuffled:
        new = {(slug, KINDS[name]), name} - met
        if new:
            met |= new
            yield name, slug


def measure():
    """The record: what was said of each right implementation, and of each mutant."""
    reports = {name: check(name, module) for name, _, module in mutants.right()}
    alarms = {name: names(report) for name, report in reports.items() if not report.ok}
    record = {"command": "python -m tests.conformance.confusion", "alarms": alarms, "mutants": {}}
    for name, slug in PAIRS:
        record["mutants"].setdefault(name, {})[slug] = said(name, slug)
    return record


VERDICTS = ("named", "not named", "not decided", "misnamed", "passed")


def page(record):
    """What ``docs/conformance.md`` says of a record."""
    table = {
        given: Counter(
            verdict
            for name, its in record["mutants"].items()
            if KINDS[name] in kinds
            for verdict, *_ in its.values()
        )
        for given, kinds in GIVEN.items()
    }
    table["**all**"] = sum(table.values(), Counter())
    hidden, alarms = table["**all**"]["hidden"], table["**all**"]["alarm"] + len(record["alarms"])
    lines = [
        f"Somebody who had not seen the tool wrote {len(KINDS)} right implementations in different styles, "
        f"and {len(PAIRS)} broken ones, each with one of {len(mutants.BUGS)} bugs in a single line. "
        f"{hidden} of these change nothing that an attention could see. "
        f"{alarms or 'None'} of the right ones raised an alarm, and of the other broken ones it said:",
        "",
        "| given | right | broken | named | failed, no name | not decided, and why | another name | passed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for given, row in table.items():
        right = sum(given == "**all**" or kind in GIVEN[given] for kind in KINDS.values())
        its = [row[key] for key in VERDICTS]
        lines.append(f"| {given} | {right} | " + " | ".join(map(str, [sum(its), *its])) + " |")
    return "\n".join(lines)


ROOT = Path(__file__).parents[2]
RECORD, PAGE = ROOT / "results" / "benchmarks" / "conformance.json", ROOT / "docs" / "conformance.md"
BEGIN, END = "<!-- measured: python -m tests.conformance.confusion -->\n", "<!-- end -->"


def main():
    record = measure()
    lines = json.dumps(record, indent=1, ensure_ascii=False)
    lines = re.sub(
        r"\[[^][]*\]", lambda one: json.dumps(json.loads(one[0]), ensure_ascii=False), lines
    )  # a verdict, a line
    RECORD.write_text(lines + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + page(record) + "\n" + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
