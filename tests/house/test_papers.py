"""docs/papers.md and docs/summary.pdf: every method is there, and the stored page is what is generated."""

import itertools
import re
import zlib
from dataclasses import replace
from pathlib import Path

import matplotlib
import nbformat
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tutorial_lib import encodings
from tutorial_lib.encodings import DOORS, REGISTRY
from tutorial_lib.encodings.registry import METHODS, doors
from workshop import summary

ROOT = Path(__file__).parents[2]
PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [method for methods in summary.table().values() for method in methods]
ARXIV = re.compile(r"\d{4}\.\d{5}")
# Music Transformer; bounds on RoPE's base; Scalable-Softmax, Forgetting Transformer, PaTH
MENTIONED_HERE_ONLY = {"1809.04281", "2305.16843", "2405.14591", "2405.17399"}


# ---- the list ----
def entries():
    """``{heading: text}`` of the methods in the list."""
    parts = re.split(r"^### +(.+)$", PAPERS, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], (part.split("\n## ")[0] for part in parts[1::2]), strict=True))


def test_every_method_of_the_registry_is_in_the_list_once_or_left_out():
    fields = re.findall(r"^- \*\*Library\*\*: (.+)$", PAPERS, re.MULTILINE)
    named = re.findall(r"`([\w-]+)`", "\n".join(fields))
    left_out = re.findall(r"^- `([\w-]+)`: ", PAPERS.split("## Left out")[1], re.MULTILINE)
    alone = [name for each in METHODS if each.title and not each.papers for name in each.names if each.arxiv]
    assert sorted(name for name in named + left_out + alone if name in REGISTRY) == sorted(REGISTRY)
    assert all(name in REGISTRY or hasattr(encodings, name) for name in named + left_out)


@pytest.mark.parametrize("name", entries())
def test_an_entry_says_what_to_read_where_to_look_what_came_later_and_where_it_is_tested(name):
    fields = re.findall(r"^- \*\*(\w+)\*\*: \S", entries()[name], re.MULTILINE)
    assert fields == ["Read", "Look", "Later", "Tested", "Library"]
    tested = re.search(r"\*\*Tested\*\*: (.+)", entries()[name])[1]
    assert re.findall(r"\]\(\.\./notebooks/[\w/]+\.ipynb#[^)\s]+\)", tested), "a link to a section"


def test_each_arxiv_number_is_its_own_link_and_stands_in_a_notebook():
    known = set()
    for path in (ROOT / "notebooks").rglob("[0-9]*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            known |= set(ARXIV.findall(cell.source))
    links = re.findall(r"\[arXiv:([\d.]+)\]\(https://arxiv\.org/abs/([\d.]+)\)", PAPERS)
    assert len(links) > 30 and all(shown == leads_to for shown, leads_to in links)
    assert set(ARXIV.findall(PAPERS)) == {shown for shown, _ in links}
    assert {shown for shown, _ in links} - known == MENTIONED_HERE_ONLY


# ---- the summary ----
def test_each_row_stands_at_its_last_door_in_the_order_of_the_course():
    assert tuple(summary.DOORS) == (*DOORS, "none") == tuple(summary.table())
    assert sorted(ROWS, key=METHODS.index) == [each for each in METHODS if each.row and each.compared]
    for door, methods in summary.table().items():
        assert methods == sorted(methods, key=METHODS.index)
        assert {(doors(each) or ("none",))[-1] for each in methods} == {door}


@pytest.fixture(scope="module")
def figure():
    return summary.draw()


@pytest.fixture(scope="module")
def boxes(figure):
    """``[(name, left, bottom, right, top)]`` of every text and picture, in inches."""
    with summary._settings():
        dpi = 200
        figure.set_dpi(dpi)
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw(renderer)
        found = [(text.get_text(), text.get_window_extent(renderer)) for text in figure.texts]
        found += [(ax.get_label(), ax.get_window_extent(renderer)) for ax in figure.axes]
        return [(name, *(value / dpi for value in box.extents)) for name, box in found]


def overlapping(boxes, by=0.01):
    return [
        (a[0], b[0])
        for a, b in itertools.combinations(boxes, 2)
        if min(a[3], b[3]) - max(a[1], b[1]) > by and min(a[4], b[4]) - max(a[2], b[2]) > by
    ]


def outside(boxes, margin=0.2):
    (width, height) = summary.A4
    return [
        name
        for name, left, bottom, right, top in boxes
        if left < margin or bottom < margin / 4 or right > width - margin or top > height - margin
    ]


def test_nothing_overlaps_and_nothing_leaves_the_page(boxes):
    assert len(boxes) > 8 * len(ROWS)
    assert overlapping(boxes) == [] and outside(boxes) == []


def test_an_overlap_and_a_text_outside_are_found(boxes):
    name, left, bottom, right, top = boxes[0]
    assert ("moved", name) in overlapping([("moved", left + 0.1, bottom, right + 0.1, top), boxes[0]])
    assert outside([("moved", left - 0.2, bottom, right, top)]) == ["moved"]


def test_what_is_written_is_large_enough_to_be_read(figure):
    assert min(text.get_fontsize() for text in figure.texts) >= 5.5


def content(data: bytes) -> list[str]:
    """What a PDF of one page draws: the words of its content stream, decompressed."""
    assert data.startswith(b"%PDF-") and len(re.findall(rb"/Type /Page\b(?!s)", data)) == 1
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    drawn = [text for text in map(_inflated, streams) if b" Tf" in text]
    assert len(drawn) == 1
    return re.findall(r"\((?:\\.|[^\\)])*\)|[^\s()\[\]]+", drawn[0].decode("latin-1"))


def _inflated(stream):
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def _same(one, other):
    """Equal words; numbers may differ by half a point, as those of another machine may."""
    try:
        return abs(float(one) - float(other)) <= 0.5
    except ValueError:
        return one == other


def size(data: bytes) -> list[float]:
    return [float(number) for number in re.search(rb"/MediaBox \[([^\]]+)\]", data)[1].split()]


def test_the_stored_page_is_what_is_generated():
    """Otherwise: `python -m workshop.summary`. Bytes are not compared: compression may differ."""
    stored, generated = summary.PAGE.read_bytes(), summary.pdf()
    assert size(stored) == size(generated)
    one, other = content(stored), content(generated)
    assert len(one) == len(other)
    assert [pair for pair in zip(one, other, strict=True) if not _same(*pair)] == []


def test_the_page_is_one_a4_without_a_date_or_a_program():
    data = summary.PAGE.read_bytes()
    left, bottom, right, top = size(data)
    assert (left, bottom) == (0, 0) and {round(right * 25.4 / 72), round(top * 25.4 / 72)} == {210, 297}
    assert not re.search(rb"/(CreationDate|ModDate|Producer|Creator)\b", data)


def test_a_changed_word_is_noticed(monkeypatch):
    changed = summary.table()
    first = changed["embed"][0]
    changed["embed"][0] = replace(first, row=replace(first.row, used_by="nobody"))
    monkeypatch.setattr(summary, "table", lambda: changed)
    assert content(summary.pdf()) != content(summary.PAGE.read_bytes())


def test_drawing_changes_no_setting_and_draws_no_random_number():
    def settings():  # the backend is chosen when it is first asked for
        return {key: value for key, value in matplotlib.rcParams.items() if key != "backend"}

    before, state = settings(), torch.get_rng_state()
    summary.draw()
    assert settings() == before and torch.equal(torch.get_rng_state(), state)


# ---- one year for a paper ----
REFERENCE = re.compile(
    r"^- (?:\*\*Read\*\*: )?([^\W\d_][\w’'-]+)[^\n]*? ((?:19|20)\d\d), \[?\*", re.MULTILINE
)
OF_NUMBER = re.compile(r"\b((?:19|20)\d\d), \[?\*[^\n]*?(?:arXiv:|arxiv\.org/abs/)(\d{4}\.\d{5})")
CITED = re.compile(r"\b([A-Z][\w’'-]+) et al\.(?: \(|, | )((?:19|20)\d\d)")


def without_a_reference(texts):
    """What is cited with a year that no list of references gives to a paper of this author."""
    lists = [REFERENCE.findall(text) for text in texts]
    known = {}
    for author, year in itertools.chain(*lists):
        known.setdefault(author, set()).add(year)
    cited = {pair for text in texts for pair in CITED.findall(text)}
    return sorted((author, year) for author, year in cited if year not in known.get(author, {year}))


def of_two_years(texts):
    """Papers, by their number, that references give several years."""
    found = {}
    for year, number in OF_NUMBER.findall("\n".join(texts)):
        found.setdefault(number, set()).add(year)
    return {number: years for number, years in found.items() if len(years) > 1}


def test_a_paper_has_one_year_on_all_pages():
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md")]
    for path in [*ROOT.glob("notebooks/**/*.ipynb"), *ROOT.glob("solutions/*/*.ipynb")]:
        texts += [cell.source for cell in nbformat.read(path, as_version=4).cells]
    assert len({pair for text in texts for pair in CITED.findall(text)}) > 40
    assert without_a_reference(texts) == [("He", "2024")]  # PyTorch's blog on FlexAttention
    assert of_two_years(texts) == {}


def test_two_years_of_one_paper_are_found():
    listed, elsewhere = (f"- Zhou et al. {year}, *DNABERT-2*, [arXiv:2306.15006]" for year in (2024, 2023))
    assert of_two_years([listed, elsewhere]) == {"2306.15006": {"2023", "2024"}}
    assert without_a_reference([listed, "Zhou et al. (2023) replaced it; Li et al. 2020 did not."]) == [
        ("Zhou", "2023")
    ]
