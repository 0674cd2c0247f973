"""The table of docs/atlas.md, from the record. It is whole without a script; atlas.js searches and sorts."""

import html
import tomllib
from collections.abc import Iterable

from course import atlas
from tutorial_lib.language import _
from workshop import documents

LESSONS = documents.ROOT / "notebooks"
CHECKPOINTS = documents.ROOT / "workshop" / "atlas" / "checkpoints.toml"


WIDE = 320  # pixels that a strip has in the table


def strip(name: str) -> str:
    """The layers as one picture made of boxes, one for each run of layers that are alike."""
    boxes, runs = [], atlas.row(name)["runs"]
    each = (WIDE - 2 * len(runs)) / sum(n for n, *_rest in runs)
    for n, kind, _share, reach, *_rest in runs:
        letter, window = atlas.KINDS[kind][0], " at-window" if reach is not None else ""
        text = f"{letter}{n}" if n > 2 else letter
        thin = " at-thin" if n * each < 8 * len(text) + 6 else ""
        boxes.append(f'<i class="at-{kind}{window}{thin}" style="flex-grow:{n}">{text}</i>')
    label = html.escape(atlas.in_words(name), quote=True)
    return f'<span class="at-strip" role="img" aria-label="{label}">{"".join(boxes)}</span>'


def has(its: dict) -> list[str]:
    """What some layer of a model does, as the buttons above the table ask for it."""
    kinds = {kind for _n, kind, *_rest in its["runs"]}
    found = {
        "rope": {"full", "part", "both"} & kinds,
        "bias": {"bias"} & kinds,
        "added": {"added"} & kinds,
        "none": {"none", "sharp"} & kinds,
        "window": [run for run in its["runs"] if run[3] is not None],
        "state": {"state", "both"} & kinds,
    }
    return [what for what, there in found.items() if there]


def chips(rows: list[dict]) -> str:
    """Buttons that leave only some models in the table; atlas.js shows them."""
    names = {
        "rope": "RoPE",
        "bias": _("bias"),
        "added": _("added positions"),
        "none": _("no order in some layers"),
        "window": _("windows"),
        "state": _("recurrent"),
    }
    counts = {what: sum(what in has(its) for its in rows) for what in names}
    buttons = "".join(
        f'<button type="button" aria-pressed="false" data-has="{what}">{name} '
        f"<small>{counts[what]}</small></button>"
        for what, name in names.items()
    )
    return f'<div class="at-chips" role="group" aria-label="{_("Only models with")}" hidden>{buttons}</div>'


def numbers(values: list) -> str:
    return ", ".join(f"{value:,.10g}" if isinstance(value, int | float) else str(value) for value in values)


def inside(name: str, its: dict) -> str:
    """What opens below a name."""
    largest = {key: "–" if value is None else f"{value:.1e}" for key, value in its["largest"].items()}
    share = numbers(sorted({share for _n, _kind, share, *_rest in its["runs"] if share is not None}))
    lines = [
        atlas.in_words(name) + ".",
        _(
            "Largest change in any layer: {shift} when all positions move, {stretch} when distances triple, "
            "{swap} when two neighbours change places, {state} between equal tokens."
        ).format(**largest),
    ]
    if share:
        lines.append(_("Channels that turn in the small model: {share}.").format(share=share))
    if its["embedding"]:
        lines.append(_("Positions are added to the tokens before the first layer."))
    if its["differs"]:
        lines.append(_("Declared, and not what was measured: {what}.").format(what="; ".join(its["differs"])))
    lessons = dict.fromkeys(atlas.KINDS[kind][3] for _n, kind, *_rest in its["runs"])
    links = " ".join(
        f'<a href="../notebooks/{each}.html">{each.rpartition("/")[2][:2]}</a>' for each in lessons
    )
    lines.append(_("Lessons: {links}").format(links=links))
    return "".join(f"<p>{line}</p>" for line in lines)


def line(its: dict) -> str:
    name, says = its["type"], its["declared"]
    n = sum(run[0] for run in its["runs"])
    cells = {
        _("layers"): (n, str(n)),
        _("base"): (max(says["base"], default=0), numbers(says["base"])),
        _("share"): (max(says["share"], default=0), numbers(says["share"])),
        _("window"): (says["window"] or 0, numbers([says["window"]] if says["window"] else [])),
        _("scaling"): ("", numbers(says["scaling"])),
    }
    rest = "".join(
        f'<td data-is="{value}" data-name="{title}">{text}</td>' for title, (value, text) in cells.items()
    )
    return (
        f'<tr data-has="{" ".join(has(its))}"><th scope="row"><details><summary>{name}</summary>'
        f"{inside(name, its)}</details></th><td>{strip(name)}</td>{rest}</tr>"
    )


def alike(its: dict) -> str:
    """The kind of all layers of a type, or ``""`` where some differ, if only by a window.

    >>> alike(atlas.row("bloom")), alike(atlas.row("smollm3"))
    ('bias', '')
    """
    runs = {(kind, reach is None) for _n, kind, _share, reach, *_rest in its["runs"]}
    return next(iter(runs))[0] if len(runs) == 1 else ""


def group(kind: str, rows: list[dict]) -> str:
    """The rows of one kind of layer below a head that says how many they are; atlas.js folds them."""
    letter = atlas.KINDS[kind][0]
    head = (
        '<tr class="at-group"><th colspan="7" scope="rowgroup">'
        f'<i class="at-{kind}">{letter}</i> '
        f"<span>{atlas.says(kind)}</span> <small>{len(rows)}</small></th></tr>"
    )
    return f"<tbody>{head}{''.join(map(line, rows))}</tbody>"


def key(names: Iterable[str] = (), more: str = "") -> str:
    """What letters and colours mean, of some models only what they need; ``more`` are further items."""
    seen = {kind for name in names for _n, kind, *_rest in atlas.row(name)["runs"]} or atlas.KINDS
    lines = (
        f'<li><i class="at-{kind}">{letter}</i> {atlas.says(kind)}</li>'
        for kind, (letter, *_rest) in atlas.KINDS.items()
        if kind in seen
    )
    return f'<ul class="at-key">{"".join(lines)}{more}</ul>'


def table() -> str:
    """All of it, as HTML."""
    about = atlas.record()
    rows = about["rows"]
    built = [its for its in rows if "runs" in its]
    texts = "".join(f"<li>{its['type']} → {its['text']}</li>" for its in rows if "text" in its)
    whys = "".join(f"<li>{its['type']}: {html.escape(_(its['why']))}</li>" for its in rows if "why" in its)
    heads = [_("model type"), _("its layers"), _("layers"), _("base"), _("share"), _("window"), _("scaling")]
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    counted = _("{built} of {all} types were measured with Transformers {version} on {date}.").format(
        built=len(built), all=len(rows), version=about["versions"]["transformers"], date=about["date"]
    )
    mixed = [its for its in built if not alike(its)]
    kinds = {kind: [its for its in built if alike(its) == kind] for kind in atlas.KINDS}
    groups = sorted((kind for kind in kinds if kinds[kind]), key=lambda kind: -len(kinds[kind]))
    bar = "".join(
        f'<i class="at-{kind}" style="flex-grow:{len(kinds[kind])}">{len(kinds[kind])}</i>' for kind in groups
    )
    summary = _("{mixed} mix layers of several kinds, and come first; in the other {same} all are alike.")
    summary = summary.format(mixed=len(mixed), same=len(built) - len(mixed))
    find, none = _("Find a model, or what its layers do"), _("Nothing found")
    shares = f'<i class="at-mixed" style="flex-grow:{len(mixed)}">{len(mixed)}</i>{bar}'
    folded = [(_("Types that wrap the text model of another row"), texts), (_("Not measured, and why"), whys)]
    more = "".join(
        f"<details><summary>{title} ({inside.count('<li>')})</summary><ul>{inside}</ul></details>"
        for title, inside in folded
    )
    return (
        f'<div data-atlas data-find="{find}" data-none="{none}"><p>{counted} {summary}</p>'
        f'<div class="at-strip at-shares" aria-hidden="true">{shares}</div>{key()}{chips(built)}'
        f'<div class="at-rows"><table class="at-table"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(map(line, mixed))}</tbody>{''.join(group(kind, kinds[kind]) for kind in groups)}"
        f"</table></div>{more}</div>"
    )


def checkpoint(its: dict) -> str:
    """A line: what the maker's file says, and what the class says where that is something else."""
    config = its["config"]
    kind, scaling = config["model_type"], config.get("rope_scaling", {})
    there = any(each["type"] == kind for each in atlas.record()["rows"])  # a text model may have no row
    says = atlas.row(kind)["declared"] if there else {"base": [], "share": [], "window": None, "scaling": []}
    bases = {config[key] for key in ("rope_theta", "rope_local_base_freq") if key in config}
    pairs = {
        _("layers"): ([config.get("num_hidden_layers")], [len(atlas.layers(kind)) if there else None]),
        _("base"): (sorted(bases), says["base"]),
        _("share"): ([config.get("partial_rotary_factor")], says["share"]),
        _("window"): ([config.get("sliding_window")], [says["window"]]),
        _("scaling"): ([scaling.get("rope_type")], says["scaling"]),
    }
    cells = []
    for title, (found, default) in pairs.items():
        value, other = (numbers([one for one in each if one is not None]) for each in (found, default))
        if scaling and found == [scaling["rope_type"]]:
            value += f" × {scaling['factor']:g}"
        elif value and other and value != other:
            value = _("{value} (class: {default})").format(value=value, default=other)
        cells.append(f'<td data-name="{title}">{value}</td>')
    repository, _comma, path = its["source"].partition(", ")
    source = f'<a href="https://github.com/{repository}/tree/{its["commit"]}">{repository}</a><br>'
    return (
        f'<tr><th scope="row"><b>{its["name"]}</b><small>{kind}</small></th>{"".join(cells)}'
        f'<td>{source}<small>{path}, <span class="at-date">{its["date"]}</span></small></td></tr>'
    )


def checkpoints() -> str:
    """The table of what makers' own files say."""
    rows = tomllib.loads(CHECKPOINTS.read_text(encoding="utf-8"))["checkpoint"]
    heads = [_("checkpoint"), _("layers"), _("base"), _("share"), _("window"), _("scaling")]
    head = "".join(f'<th scope="col">{each}</th>' for each in [*heads, _("source, and its date")])
    return (
        f'<div style="overflow-x: auto"><table class="at-table at-checkpoints"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(map(checkpoint, rows))}</tbody></table></div>"
    )


def style() -> str:
    """The colours, for light and dark pages."""
    return "\n".join(
        f".at-{kind} {{ --at: light-dark({light}, {dark}); fill: light-dark({light}, {dark}); }}"
        for kind, (_letter, light, dark, _lesson) in atlas.KINDS.items()
    )
