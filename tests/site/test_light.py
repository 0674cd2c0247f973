"""Pages made light, and weighed: on a site of two pages."""

import base64
import io
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workshop" / "site"))
import light  # noqa: E402
import weigh  # noqa: E402

from tutorial_lib import plots  # noqa: E402

_out = io.BytesIO()
Image.new("RGB", (60, 40)).save(_out, "PNG", dpi=(200, 200))
PNG = _out.getvalue()  # sharp: shown half as wide
DATA = base64.b64encode(PNG).decode()
INLINE = f'<div data-live="x"><img alt="a" src="data:image/png;base64,{DATA}"></div>'
SCRIPTS = """<script src="../_static/doctools.js"></script>
  <script defer src="../_static/scripts/fontawesome.js?digest=1"></script>
  <script src="../_static/copybutton.js?v=1"></script>
  <script src="../_static/searchtools.js?v=1"></script>
  <script src="../searchindex.js?v=1"></script>"""


@pytest.fixture
def site(tmp_path):
    for name, text in {
        "notebooks/a.html": f'<html lang="en"><div id="pst-secondary-sidebar"></div>{SCRIPTS}{INLINE}'
        '<img src="../_images/b.png" alt="b"><img src="../_images/b.png" alt="again">'
        '<img src="../_static/c.svg" alt="c">'
        '<img src="https://example.org/d.png" alt="d">',
        "search.html": f'<html lang="en">{SCRIPTS.replace("../", "")}',
        "_static/scripts/fontawesome.js": "icons",
        "_static/doctools.js": "12345",
        "searchindex.js": "index",
        "_static/scripts/theme.js.map": "map",
        "_static/searchtools.js": "search",
        "_static/c.svg": "<svg/>",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images/b.png").write_bytes(PNG + b"b")
    light.lighten(tmp_path)
    return tmp_path


def test_pictures_stand_in_files_with_their_size(site):
    text = (site / "notebooks/a.html").read_text(encoding="utf-8")
    (file,) = [path for path in (site / "_images").iterdir() if path.name != "b.png"]
    assert file.read_bytes() == PNG and "base64" not in text
    assert f'<img width="30" height="20" loading="lazy" alt="a" src="../_images/{file.name}">' in text
    assert text.count('loading="lazy"') == 3 and text.count('width="30" height="20"') == 3
    assert '<img src="../_static/c.svg" alt="c"><img src="https://example.org/d.png" alt="d">' in text


def test_the_first_picture_of_a_page_does_not_wait(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    text = light.pictures('<img src="a.png" alt="1"><img src="a.png" alt="2">', tmp_path / "a.html", tmp_path)
    assert text == (
        '<img width="30" height="20" src="a.png" alt="1">'
        '<img width="30" height="20" loading="lazy" src="a.png" alt="2">'
    )


def test_a_figure_is_shown_a_little_smaller_than_it_was_drawn(tmp_path):
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images/a.png").write_bytes(plots.png(plots.lines([0, 1], {"": [0, 1]}, size=(6, 4))))
    text = light.pictures('<img src="_images/a.png" alt="1">', tmp_path / "a.html", tmp_path)
    assert 'width="540" height="360"' in text


def test_a_picture_of_the_site_around_it_is_taken_from_there(tmp_path):
    own = tmp_path / "zz"
    for folder in (tmp_path, own):
        (folder / "_images").mkdir(parents=True)
        (folder / "_images/same.png").write_bytes(PNG)
        (folder / "_images/other.png").write_bytes(PNG + folder.name.encode())
    (own / "notebooks").mkdir()
    images = [f'<img src="../_images/{name}.png" alt="a">' for name in ("same", "other", "same")]
    text = light.pictures("".join([*images, INLINE]), own / "notebooks/a.html", own)
    size = '<img width="30" height="20"'
    assert text.startswith(f'{size} src="../../_images/same.png" alt="a">{size} loading="lazy" src="../_im')
    assert text.count("../../_images/same.png") == 2 and text.count("base64") == 0
    assert {path.name for path in (own / "_images").iterdir()} == {
        "other.png",
        *re.findall(r"[0-9a-f]{40}\.png", text),
    }


@pytest.mark.parametrize(
    ("panels", "options", "width", "cuts"),
    [
        (2, {}, 10, [0.5]),
        (3, {}, 12, [1 / 3, 2 / 3]),
        (1, {}, 10, []),
        (2, {}, 18, []),  # a phone would make its letters too small
    ],
)
def test_panels_stand_below_each_other_where_each_can_be_read_alone(tmp_path, panels, options, width, cuts):
    figure, axes = plt.subplots(
        1, panels, figsize=(width, width / 3), squeeze=False, layout="constrained", **options
    )
    for ax in axes[0]:
        ax.plot([0, 1], [2, 3])
        ax.set_yticks([2, 3], ["a name of a row", "another"])
    figure.savefig(tmp_path / "a.png", dpi=100)
    plt.close(figure)
    assert light.panels((tmp_path / "a.png").read_bytes())[0] == pytest.approx(cuts, abs=0.06)
    (tmp_path / "_images").mkdir()
    (tmp_path / "a.png").rename(tmp_path / "_images/a.png")
    text = light.pictures('<img alt="lines" src="_images/a.png">', tmp_path / "a.html", tmp_path)
    assert text.count("<img") == text.count('alt="lines"') == 1 + len(cuts)
    assert text.count('aria-hidden="true"') == len(cuts)
    shapes = [float(shape) for shape in re.findall(r"--panel:([\d.]+)", text)]
    assert sum(shapes) == pytest.approx(3 if cuts else 0, abs=0.01)


def test_panels_that_share_names_of_rows_have_them_both_on_a_phone(tmp_path):
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for ax in axes:
        ax.barh(["a name of a row", "another"], [2, 3])
    (tmp_path / "_images").mkdir()
    figure.savefig(tmp_path / "_images/a.png", dpi=100)
    plt.close(figure)
    text = light.pictures('<img alt="bars" src="_images/a.png">', tmp_path / "a.html", tmp_path)
    assert text.count("<img") == 3 and text.count("--at:0.0%") == 2, "the first, the names again, the second"
    parts = [float(part) for part in re.findall(r"--part:([\d.]+)%", text)]
    assert len(parts) == 2 and sum(parts) == pytest.approx(100) and parts[0] < 30


def test_maps_with_and_without_a_colour_bar_are_of_one_size_on_a_phone(tmp_path):
    fig, axes = plots.panels(1, 2, size=(12, 5))
    for ax, bar in zip(axes, (None, "cosine"), strict=True):
        plots.heat([[-1.0, 1.0], [0.5, -0.5]], ax=ax, colorbar=bar)
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images/a.png").write_bytes(plots.png(fig))
    text = light.pictures('<img alt="lines" src="_images/a.png">', tmp_path / "a.html", tmp_path)
    owns, shares = (
        [float(each) for each in re.findall(rf"--{name}:([\d.]+)", text)] for name in ("own", "of")
    )
    assert owns[1] > 1.1 * owns[0] and max(shares) == 100
    assert owns[0] / shares[0] == pytest.approx(owns[1] / shares[1], rel=0.01)
    sheet = Path(light.__file__).with_name("static") / "course.css"
    assert re.search(r"--panel[^}]* width: var\(--of", sheet.read_text(encoding="utf-8"))


def test_the_name_of_an_axis_goes_with_its_panel(tmp_path):
    figure, (bars, lines) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    bars.barh(["a name of a row", "another"], [2, 3])
    lines.plot([0, 1], [2, 3])
    label = lines.set_ylabel("mean error (characters)", fontsize=14, labelpad=14)
    figure.savefig(tmp_path / "a.png", dpi=100)
    left = label.get_window_extent().x0 / 1200
    plt.close(figure)
    (cut,), shared = light.panels((tmp_path / "a.png").read_bytes())
    assert left - 0.03 < cut < left and not shared


def test_the_ground_beyond_training_is_dark_in_the_dark():
    data = plots.png(plots.lines([0, 8], {"a": [1, 2]}, border=4))
    for made, least, most in ((data, 230, 250), (light.in_the_dark(data), 10, 60)):
        picture = np.asarray(Image.open(io.BytesIO(made)).convert("RGB"))
        beyond = np.median(picture[200:600, int(0.75 * picture.shape[1])], 0)
        assert (least < beyond).all() and (beyond < most).all(), beyond


def test_only_the_search_has_the_index_and_nothing_has_the_icons_script(site):
    page, search = ((site / name).read_text(encoding="utf-8") for name in ("notebooks/a.html", "search.html"))
    assert "doctools" in page and "search" not in page and "fontawesome" not in page + search
    assert "searchtools" in search and "searchindex" in search
    assert "copybutton" in page and "copybutton" not in search  # nothing there is code
    assert not (site / "_static/scripts").exists() or not list((site / "_static/scripts").iterdir())


def test_a_page_with_a_list_of_headings_says_so(site):
    assert "<html data-aside lang" in (site / "notebooks/a.html").read_text(encoding="utf-8")
    assert "data-aside" not in (site / "search.html").read_text(encoding="utf-8")


def test_long_lines_that_were_printed_go_on_below_their_beginning(tmp_path):
    head = '<html><div class="output stream highlight"><div class="highlight"><pre><span></span>'
    long = "raw    tuned, at 4 times the length: loss 2.01, keys found 1.00\n"
    for name, said in {"long": long * 2, "short": "none   36 ms\nALiBi  43 ms\n"}.items():
        (tmp_path / f"{name}.html").write_text(f"{head}{said}</pre></div></div>")
    light.lighten(tmp_path)
    for name, lines in (("long", 2), ("short", 0)):
        assert (tmp_path / f"{name}.html").read_text().count('<span style="--in:0ch">') == lines


def test_a_page_weighs_what_it_fetches_at_once(site):
    found = weigh.weights(site)
    own = (site / "notebooks/a.html").stat().st_size
    assert found["notebooks/a.html"] == own + 5 + 6, "itself, a script and a drawing: pictures come later"
    assert found["search.html"] > found["notebooks/a.html"] - own
    lines = weigh.report(site).splitlines()
    assert lines[0].startswith(f"{site}: ") and [line.split()[-1] for line in lines[2:]] == sorted(
        found, key=lambda name: -found[name]
    )


def test_a_map_has_a_picture_for_the_dark_in_which_its_colours_stay(tmp_path):
    picture = np.full((60, 80, 3), 255, np.uint8)
    picture[10:50, 20:60] = 68, 1, 84  # a map, and a line
    picture[:, 5] = 0
    picture[28:33, 30:32] = 255  # written on the map
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "PNG")
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "m.png").write_bytes(out.getvalue())
    page = tmp_path / "a.html"
    for alt, places in (("A heat map of weights.", 2), ("Two lines of loss.", 1)):
        text = light.pictures(f'<img alt="{alt}" src="_images/m.png">', page, tmp_path)
        assert text.count("<img") == places == 1 + text.count('class="only-dark"')
    dark = np.asarray(Image.open(tmp_path / "_images" / "m-dark.png").convert("RGB")).astype(int)
    assert abs(dark[30, 40] - [68, 1, 84]).max() < 3, "the map"
    assert dark[30, 31].min() > 250, "what is written on it"
    assert dark[30, 75].max() < 30 and dark[30, 5].min() > 220, "ground and line"
    toy = '<div data-live="heat" data-params="{}"><img alt="A heat map." src="_images/m.png"></div>'
    assert light.pictures(toy, page, tmp_path).count("<img") == 1


def test_weights_grow_from_the_ground_in_the_dark_and_their_scale_says_the_same():
    """On paper the lightest green is the smallest weight; signed scores keep their colours."""
    fig, axes = plots.panels(1, 2, size=(7, 3))
    plots.heat([[0.0, 0.05], [0.5, 1.0]], ax=axes[0], limits=(0, 1), cmap="weights", colorbar="weight")
    plots.heat([[-1.0, 1.0], [0.5, -0.5]], ax=axes[1])
    day = plots.png(fig)
    light_, dark = (
        np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        for data in (day, light.in_the_dark(day))
    )

    def cell(image, ax, row, column):
        x, y = ax.transData.transform((column, row))
        return image[round(fig.bbox.height - y), round(x)]

    shades = [cell(dark, axes[0], *at).sum() for at in ((0, 0), (0, 1), (1, 0), (1, 1))]
    assert shades == sorted(set(shades)), "no weight at all is the ground"
    bar = fig.axes[2].bbox
    column = dark[round(fig.bbox.height - bar.y1) + 6 : -round(bar.y0) - 6, round((bar.x0 + bar.x1) / 2)]
    assert column[0].sum() > column[len(column) // 2].sum() > column[-1].sum(), "its scale"
    for at in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert abs(cell(dark, axes[1], *at) - cell(light_, axes[1], *at)).max() < 12, at


def test_the_line_that_says_where_a_lesson_stands_is_told_from_its_text(site):
    link = '<a href="../docs/glossary.html"><span>glossary</span></a>'
    page = site / "notebooks" / "a.html"
    page.write_text(f"<html><p>See the <strong>bold</strong> {link} first.</p><p>02 of 10 · {link}</p>")
    light.lighten(site)
    assert (
        page.read_text().count('<p class="course-way">02 of 10') == 1 == page.read_text().count("course-way")
    )


def test_a_chinese_sign_has_no_space_behind_it_but_in_code(site):
    page = site / "notebooks" / "a.html"
    (site / "_static" / "fonts").mkdir()
    page.write_text("<html><p>一句。 <b>二句。</b> 三句。 A</p><pre>一句。 二句</pre>", encoding="utf-8")
    light.lighten(site)
    assert "<p>一句。<b>二句。</b>三句。 A</p><pre>一句。 二句</pre>" in page.read_text(encoding="utf-8")
