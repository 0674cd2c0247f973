"""The pages of docs/: links and sections that exist, a glossary without gaps."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def headings(path):
    """The anchors of a page or notebook."""
    if path.suffix == ".ipynb":
        prose = (c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown")
        lines = "\n".join(prose).split("\n")
        return {line.lstrip("# ").strip().replace(" ", "-") for line in lines if line.startswith("#")}
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = (
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").strip().lower())
        for line in text.split("\n")
        if line.startswith("#")
    )
    return {line.replace(" ", "-") for line in plain} | set(re.findall(r'<a id="([^"]+)"></a>', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_pages_and_sections_that_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://|(\.\./)+actions/", target):  # a badge's place is the host's
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in headings(path), f"{page.name}: {target}"


def test_the_glossary_has_every_column_once_and_in_order():
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").split("\n")
        if line.startswith("| ")
    ][1:]
    assert len(rows) >= 60 and all(len(row) == 4 and all(row) for row in rows)
    found = [re.fullmatch(r'<a id="(.+)"></a>(.+)', row[0]).groups() for row in rows]
    anchors, terms = zip(*found, strict=True)
    assert len(set(anchors)) == len(rows)
    for anchor, term in zip(anchors, terms, strict=True):  # the term, without brackets and apostrophes
        plain = term.split(" (")[0].lower().replace("'", "")
        assert anchor == re.sub("[^a-z0-9]+", "-", plain).strip("-"), term
    assert list(map(str.lower, terms)) == sorted({term.lower() for term in terms})
    for term, (_, chinese, sentence, _where) in zip(terms, rows, strict=True):
        assert '"' not in chinese + sentence, f"{term}: the title of a link cannot hold it"
        assert re.search(r"[\u4e00-\u9fff]", chinese) or chinese == term, term
        assert sentence.endswith(".") and sentence.count(". ") == 0, term


PROGRAMS = {"setup"}  # nobody imports them


def test_the_api_has_a_page_for_every_module_or_for_the_package_that_gives_its_names():
    spec = importlib.util.spec_from_file_location("pages", ROOT / "workshop" / "site" / "pages.py")
    spec.loader.exec_module(pages := importlib.util.module_from_spec(spec))
    library = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for room in ("tutorial_lib", "course")
        for path in (ROOT / room).rglob("[!_]*.py")
    }
    library = {name for name in library if name.split(".")[1] not in PROGRAMS}
    assert len(library) > 80 and {"tutorial_lib.attention", "tutorial_lib.encodings.rotary"} <= library
    shown = set(pages.MODULES)
    assert not [
        name
        for name in sorted(library)
        if not shown & {name, name.rpartition(".")[0], ".".join(name.split(".")[:2])}
    ]
