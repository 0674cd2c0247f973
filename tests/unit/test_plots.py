"""Every drawing function gives a Figure, says what it shows, and leaves the reader's settings alone."""

import base64
import io
import itertools
import re
import shutil
import subprocess
import sys
import unicodedata
import warnings

import IPython.display
import matplotlib
import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from PIL import Image

from tutorial_lib import colours, plots, readability
from workshop import font, translation

Z = torch.linspace(-1, 1, 6).view(2, 3)
DRAWN = {
    "heat": lambda: plots.heat(Z),
    "heat with everything": lambda: plots.heat(
        Z,
        title="t",
        xlabel="x",
        ylabel="y",
        limits=None,
        cmap="weights",
        colorbar="c",
        values=".1f",
        xticks=["a", "b", "c"],
        yticks=["d", "e"],
        mark_row=1,
        size=(4, 3),
    ),
    "heat of a constant": lambda: plots.heat(torch.zeros(2, 2), limits=None, values=".0f", colorbar=None),
    "lines": lambda: plots.lines([1, 2, 4], {"one": [1, 2, 3], "": Z[0]}),
    "lines with everything": lambda: plots.lines(
        torch.tensor([1, 2, 4]),
        {"one": [1, 2, 3], "two": [3, 2, 1]},
        title="t",
        xlabel="x",
        ylabel="y",
        logx=2,
        logy=True,
        spread={"one": ([0.5, 1, 2], [2, 3, 4])},
        levels={"chance": 1.5},
        mark_x=2,
        border=3,
        markers=True,
        ylim=(0.1, 5),
        size=(4, 3),
    ),
    "forest": lambda: plots.forest({"one": 1.0}, spread={"one": (0.5, 2)}),
    "forest with everything": lambda: plots.forest(
        {"RoPE": 1.0, "ALiBi": 0.5},
        spread={"RoPE": (0.5, 2), "ALiBi": (0.4, 0.5)},
        title="t",
        xlabel="x",
        level=("chance", 0.2),
        better="left",
        values=".1f",
        size=(7, 3),
    ),
    "dials": lambda: plots.dials({"one": [0.5, -2], "two": [3]}, columns=["a", "b"], values=".2f"),
    "vectors": lambda: plots.vectors({"": [0.5, -2]}),
    "vectors with everything": lambda: plots.vectors(
        {"one": Z[0, :2], "none at all": [0, 0]},
        title="t",
        xlabel="x",
        ylabel="y",
        reach=2,
        mark=1,
        size=(4, 3),
    ),
    "bars": lambda: plots.bars({"one": 1.0, "two": -0.5}),
    "bars with everything": lambda: plots.bars(
        {"one": 1.0, "two": 0.5},
        title="t",
        xlabel="x",
        spread={"one": (0.5, 2), "two": (0.4, 0.5)},
        levels={"chance": 0.2},
        values=".1f",
        xlim=(0, 3),
        size=(4, 3),
    ),
}


@pytest.fixture(params=DRAWN)
def draw(request):
    return DRAWN[request.param]


def test_each_gives_a_figure_and_the_same_bytes_twice(draw):
    fig = draw()
    assert isinstance(fig, Figure)
    first = plots.png(fig)
    assert first == plots.png(draw())
    pixels = matplotlib.image.imread(io.BytesIO(first))
    assert pixels.std() > 0.01  # not an empty page


@pytest.mark.filterwarnings("ignore:Hard to read")
def test_a_picture_is_sharp_where_it_is_shown_and_light(draw):
    """Two pixels for each in which it is shown, in few shades: paper stays white."""
    fig = draw()
    shown, about = plots.Picture(fig, "A bar chart of nothing much, to be looked at.")._repr_mimebundle_()
    size = {"width": round(100 * fig.get_figwidth()), "height": round(100 * fig.get_figheight())}
    with Image.open(io.BytesIO(base64.b64decode(shown["image/png"]))) as image:
        assert image.size == (2 * size["width"], 2 * size["height"])
        assert [round(dpi) for dpi in image.info["dpi"]] == [200, 200]
        assert image.mode == "P" and image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    assert about == {"image/png": size} and f'width="{size["width"]}"' in shown["text/html"]


@pytest.mark.parametrize(
    ("titles", "known"), [(["a title"], True), (["two\nlines"], False), (["one", "each"], False)]
)
def test_a_picture_says_where_its_only_title_stands(titles, known):
    fig, axes = plots.panels(1, len(titles), size=(8, 3), squeeze=False)
    for ax, title in zip(axes[0], titles, strict=True):
        plots.lines([0, 1], {"": [0, 1]}, ax=ax, title=title)
    with Image.open(io.BytesIO(plots.png(fig))) as image:
        assert ("Title" in image.info) == known
        if known:
            left, top, right, bottom = (2 * int(side) for side in image.info["Title"].split())
            ink = np.asarray(image.convert("L")) < 128
            assert ink[top:bottom, left:right].any() and not ink[: top - 2].any()
            assert not ink[top:bottom, : left - 2].any() and not ink[top:bottom, right + 2 :].any()


def test_the_readers_settings_are_untouched(draw):
    with matplotlib.rc_context({"font.size": 33.0, "figure.figsize": (1, 1), "axes.grid": False}):
        before = dict(matplotlib.rcParams)
        fig = draw()
        plots.png(fig)
        assert dict(matplotlib.rcParams) == before
        assert fig.axes[0].title.get_fontsize() == 16 and fig.get_figwidth() >= 4


def test_the_readers_settings_change_no_figure(draw):
    """None of those that the course has its own of: some count as late as when the picture is written."""
    ours = plots.png(draw())
    with matplotlib.rc_context({"savefig.dpi": 50, "savefig.facecolor": "red", "xtick.color": "red"}):
        assert plots.png(draw()) == ours


def test_each_draws_on_given_axes():
    fig, axes = plots.panels(1, 4, size=(9, 3))
    for ax, call in zip(
        axes,
        [
            lambda ax: plots.heat(Z, ax=ax, colorbar=None),
            lambda ax: plots.lines([0, 1], {"": [0, 1]}, ax=ax),
            lambda ax: plots.vectors({"": [0, 1]}, ax=ax),
            lambda ax: plots.bars({"one": 1.0}, ax=ax),
        ],
        strict=True,
    ):
        assert call(ax) is fig and ax.has_data()
    assert len(fig.axes) == 4 and fig.get_figwidth() == 9


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: t.requires_grad_(),
        lambda t: t.bfloat16().requires_grad_(),
        lambda t: t.numpy(),
        lambda t: t.tolist(),
    ],
    ids=["grad", "bfloat16", "numpy", "list"],
)
def test_numbers_of_any_kind(wrap):
    z = wrap(torch.tensor([[0.0, 0.5], [1.0, 0.25]]))
    x = wrap(torch.tensor([1.0, 2.0]))
    image = plots.heat(z).axes[0].images[0].get_array()
    assert image.tolist() == [[0, 0.5], [1, 0.25]]
    line = plots.lines(x, {"a": x}, spread={"a": (x, x)}).axes[0].lines[0]
    assert line.get_xydata().tolist() == [[1, 1], [2, 2]]
    assert plots.bars({"a": x[0], "b": x[1]}).axes[0].patches[1].get_width() == 2


def test_heat_says_what_it_is_told():
    z = [[-1.0, -0.5, 0.0], [0.5, 0.7, 1.0]]
    ax = plots.heat(z, title="T", xlabel="X", ylabel="Y", values=".1f", yticks=["first", "second"]).axes[0]
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("T", "X", "Y")
    assert [t.get_text() for t in ax.texts] == ["−1.0", "−0.5", "0.0", "0.5", "0.7", "1.0"]
    clims = [plots.heat(Z / 2, **k).axes[0].images[0].get_clim() for k in ({}, {"limits": None})]
    assert clims == [(-1, 1), (-0.5, 0.5)]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["first", "second"]
    assert ax.yaxis_inverted()  # row 0 is at the top
    assert [t.get_color() for t in ax.texts] == ["white", "white", "black", "black", "black", "black"]
    with pytest.raises(ValueError, match=r"\[rows, columns\], not one of shape \(3,\)"):
        plots.heat(Z[0])


def test_a_title_begins_where_its_plot_does_or_farther_left_if_it_is_long():
    def drawn(title, own):
        fig, axes = plots.panels(1, 2, size=(9, 3))
        for ax, said in zip(axes, ("", title), strict=True):
            plots.lines([0, 1], {"": [1, 2]}, ax=ax, title="" if own else said)
        if own:  # a lesson's
            ax.set(title=title)
        return fig, ax

    for title, own, begins in (
        ("short", False, True),
        ("short", True, True),
        ("one that is too long for the room on its right", False, False),
    ):
        fig, ax = drawn(title, own)
        assert plots.png(fig) == plots.png(drawn(title, own)[0]) and not readability.faults(fig)
        renderer = fig.canvas.get_renderer()
        assert (abs(ax.title.get_window_extent(renderer).x0 - ax.get_window_extent().x0) < 3) == begins


def test_the_colour_bar_can_be_left_away():
    assert len(plots.heat(Z).axes) == 2 and len(plots.heat(Z, colorbar=None).axes) == 1


@pytest.mark.parametrize("limits", [(-1, 1), (0, 1), None])
def test_the_colour_bar_of_signed_numbers_names_its_ends_and_the_middle(limits):
    fig = plots.heat(Z + 0.1, limits=limits)
    plots.png(fig)
    named = [label.get_text() for label in fig.axes[1].get_yticklabels()]
    assert (named == ["−1", "0", "1"]) == (limits == (-1, 1))


def test_a_share_ends_at_1_and_its_number_stands_beyond():
    fig = plots.bars({"all": 1.0}, xlim=(0, 1))
    plots.png(fig)
    (ax,) = fig.axes
    number = ax.texts[0].get_window_extent()
    assert ax.get_window_extent().x1 < number.x0 and number.x1 <= fig.bbox.width


def ends(fig, ax=0):
    """The names at the ends of lines, by their places in pixels."""
    plots.png(fig)
    shown = [text for text in fig.axes[ax].texts if text.get_gid() == "end"]
    return {text.get_text(): text.get_window_extent() for text in shown}


def test_lines_have_their_names_at_their_ends():
    assert not ends(plots.lines([0, 1], {"one": [0, 1]}))
    ys = {"one": [0, 1], "two": [1, 1.01], "three": [1, 1.02], "": [2, 3], "short": [1, float("nan")]}
    fig = plots.lines([0, 1], ys)
    at, again = ends(fig), ends(fig)
    high = ends(plots.lines([0, 1], {"a": [0, 1], "b": [0, 1], "c": [0, 1]}))  # all at the upper edge
    assert high["a"].y1 < high["b"].y0 and high["b"].y1 < high["c"].y0
    assert list(at) == ["one", "two", "three", "short"] and str(at) == str(again)
    assert not fig.axes[0].get_legend()
    edge = fig.axes[0].bbox.x1
    for a, b in itertools.combinations(at.values(), 2):
        assert not a.overlaps(b) and min(a.x0, b.x0) > edge
    assert at["one"].y0 < at["two"].y0 < at["three"].y0  # in the order of the lines
    assert not plots.styled(readability.faults)(fig)
    assert not ends(plots.lines([0, 1], ys, legend=False))
    styles = [line.get_linestyle() for line in plots.lines([0, 1], ys).axes[0].lines]
    assert len(set(styles[:3])) == 3  # colour is not the only difference


def test_an_encoding_has_its_colour_in_every_figure():
    fig = plots.lines([0, 1], {"RoPE": [0, 1], "xPos": [1, 2], "ALiBi": [2, 3]}, border=0.5)
    rope, xpos, alibi = fig.axes[0].lines[:3]
    assert matplotlib.colors.to_hex(rope.get_color()) == colours.ENCODINGS["rope"].light
    assert matplotlib.colors.to_hex(alibi.get_color()) == colours.ENCODINGS["alibi"].light
    assert readability.luminance(xpos.get_color()) > readability.luminance(rope.get_color())
    words = [text.get_text() for text in fig.axes[0].texts]
    assert {"trained", "longer"} <= set(words) and fig.axes[0].patches, "what is beyond is shaded"
    fig = plots.forest({"ALiBi": 1, "loss": 2}, spread={"ALiBi": (0, 3), "loss": (2, 2)}, level=("none", 1))
    marks = [matplotlib.colors.to_hex(line.get_color()) for line in fig.axes[0].lines]
    assert marks[0] == colours.ENCODINGS["alibi"].light and marks[2] == colours.OTHER.light
    fig = plots.forest({"a": -1, "b": 1}, spread={"a": (-2, 0), "b": (0, 2)}, level=("none", 0))
    assert [text.xy[0] for text in fig.axes[0].texts[:2]] == [-2, 2], "away from the line at 0"


def test_a_dial_turns_the_short_way_and_has_a_name():
    fig = plots.dials({"pair": [-0.5, 2 * np.pi + 0.5], "other": [1]}, columns=["fast", "slow"])
    assert [ax.get_xlabel() for ax in fig.axes] == ["fast", "slow", "", ""]
    arcs = [(ax.patches[0].theta1, ax.patches[0].theta2) for ax in fig.axes[:2]]
    assert np.allclose(arcs, [(-28.65, 0), (0, 28.65)], atol=0.01)


def test_vectors_start_at_the_origin_of_a_plane_with_one_scale():
    ax = plots.vectors({"q": [3, 4], "k": [1, -2]}, mark=1, title="T", xlabel="X", ylabel="Y").axes[0]
    *shafts, ring = [line.get_xydata().tolist() for line in ax.lines]
    assert shafts == [[[0, 0], [3, 4]], [[0, 0], [1, -2]]] and ring == [[1, -2]]
    assert [(t.xy, t.arrow_patch.get_facecolor()[:3]) for t in ax.texts] == [
        (tuple(line.get_xydata()[1]), matplotlib.colors.to_rgb(line.get_color())) for line in ax.lines[:2]
    ]
    assert ax.get_aspect() == 1 and ax.get_ylim() == (-5.5, 5.5) and ax.get_xlim()[0] == -5.5
    assert ax.patches[0].get_radius() == 1 and ax.patches[0].get_center() == (0, 0)
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("T", "X", "Y")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["q", "k"]
    assert plots.vectors({"": [0.1, 0]}).axes[0].get_xlim() == (-1.1, 1.1)  # the circle always fits


def test_lines_on_a_logarithmic_axis():
    ax = plots.lines([64, 128, 512], {"": [1, 2, 3]}, logx=2).axes[0]
    assert ax.get_xscale() == "log"
    assert [t.get_text() for t in ax.get_xticklabels()] == ["64", "128", "512"]


def test_bars_start_at_the_top():
    ax = plots.bars({"one": 1.0, "two": 0.5}, spread={"one": (0.5, 2), "two": (0.5, 0.5)}).axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["one", "two"]
    assert ax.yaxis_inverted() and [p.get_width() for p in ax.patches] == [1.0, 0.5]
    assert [t.get_text() for t in ax.texts] == ["1.00", "0.50"]
    assert ax.texts[0].xy == (2, 0)  # the number stands clear of the whisker


def test_a_bar_has_the_colour_of_its_encoding():
    """Its own, or that of all rows; what is none is grey beside encodings, and blue where there are none."""

    def drawn(*names, **options):
        ends = plots.bars(dict.fromkeys(names, -0.001), **options).axes[0]
        assert {text.get_text() for text in ends.texts} == {"0.00"}  # and not −0.00
        return [bar.get_facecolor()[:3] for bar in ends.patches]

    alibi, learned, blue, grey = (
        matplotlib.colors.to_rgb(colour.light)
        for colour in (
            colours.ENCODINGS["alibi"],
            colours.ENCODINGS["learned"],
            colours.ROLES["query"],
            colours.OTHER,
        )
    )
    assert drawn("ALiBi", "loss") == [alibi, grey] and drawn("add", "loss") == [blue, blue]
    assert drawn("add", "matrix", colour="learned") == [learned, learned]


# ---- other languages ----
def test_the_font_of_other_languages_changes_no_english_figure(draw, monkeypatch):
    assert plots.FAMILIES == ["Open Sans", "DejaVu Sans", font.FAMILY]
    ours = plots.png(draw())
    monkeypatch.setattr(plots, "FAMILIES", plots.FAMILIES[:2])
    assert plots.png(draw()) == ours
    monkeypatch.setattr(plots, "FAMILIES", plots.FAMILIES[1:])
    assert plots.png(draw()) != ours


def test_the_library_alone_draws_without_a_word(tmp_path):
    """It has no font for Chinese: matplotlib would say so 178 times in one figure."""
    shutil.copytree(plots.STYLE.parent, tmp_path / "tutorial_lib")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from tutorial_lib import plots; "
        "print(plots.png(plots.bars({'a': 1})) and plots.FAMILIES)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("['Open Sans', 'DejaVu Sans']\n", "")


def test_the_name_of_a_level_can_stand_where_no_line_crosses_it():
    for end in (False, True):
        fig = plots.lines([0, 1], {"": [0, 1]}, levels={"chance": 0.5}, levels_end=end)
        plots.png(fig)
        (ax,) = fig.axes
        (name,) = ax.texts
        assert (name.get_window_extent().x0 > ax.get_window_extent().x1) == end


def test_a_figure_is_drawn_in_the_readers_language(tmp_path, monkeypatch):
    said = {"one": "一", "two": "二", "T": "题", "X": "横", "Y": "纵", "level": "线", "C": "值"}
    translation.compile_texts(said, tmp_path / "xx")
    monkeypatch.setenv("TUTORIAL_LOCALE", str(tmp_path))
    monkeypatch.setenv("TUTORIAL_LANG", "xx")
    labels, names = {"title": "T", "xlabel": "X"}, {"one": 1.0, "two": 2.0}
    figures = [
        plots.heat(Z, **labels, ylabel="Y", colorbar="C", xticks=["one", "two", "X"], yticks=["Y", "level"]),
        plots.lines([0, 1], {"one": [0, 1], "two": [1, 2]}, **labels, ylabel="Y", levels={"level": 0.5}),
        plots.vectors({"one": [0, 1], "two": [1, 0]}, **labels, ylabel="Y"),
        plots.bars(names, spread={name: (0, 2) for name in names}, **labels, levels={"level": 0.5}),
    ]
    for fig in figures:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # matplotlib warns of a character without a picture
            plots.png(fig)
        shown = {text.get_text() for text in readability.texts(fig)}
        assert {"题", "横", "一"} <= shown and not re.search("[A-Za-z]", "".join(shown))


def test_the_font_has_every_character_of_the_catalogs():
    assert font.OUT.with_name("OFL.txt").read_text().count("SIL OPEN FONT LICENSE") == 1
    there = FT2Font(font.OUT).get_charmap().keys()
    wide = {
        letter
        for letter in font.written()
        if unicodedata.east_asian_width(letter) in "WF" and unicodedata.category(letter)[0] in "LP"
    }
    lacking = "".join(sorted(letter for letter in wide if ord(letter) not in there))
    assert len(wide) > 500 and not lacking, f"make it anew: python -m {font.__name__} NotoSansCJK-Regular.ttc"


# ---- alternative text ----


def test_a_picture_carries_its_alternative_text():
    picture = plots.Picture(plots.heat(Z), 'A heat map of six numbers, "yellow" & <blue>.')
    bundle, _ = picture._repr_mimebundle_()
    assert 'alt="A heat map of six numbers, &quot;yellow&quot; &amp; &lt;blue&gt;."' in bundle["text/html"]
    assert bundle["text/plain"] == 'Figure: A heat map of six numbers, "yellow" & <blue>.'
    assert base64.b64decode(bundle["image/png"]) == picture.png
    assert bundle["image/png"] in bundle["text/html"]
    assert np.array_equal(picture.png[:4], b"\x89PNG")


@pytest.mark.parametrize(
    "alt, fault",
    [
        ("", "0 words, not 8"),
        ("   ", "0 words"),
        ("A heat map of six numbers.", "6 words"),
        ("What was measured for six numbers, low to high.", "name the kind of picture"),
        ("A heat map of six numbers from low to high", "end as a sentence does"),
    ],
)
def test_a_picture_without_a_sentence_is_an_error(alt, fault):
    with pytest.raises(ValueError, match=f"does not say what the figure shows: .*{fault}"):
        plots.show(plots.heat(Z), alt)


def test_show_displays_the_picture(monkeypatch):
    shown = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    alt = "A heat map of six numbers from low to high."
    plots.show(plots.heat(Z), alt)
    assert [picture.alt for picture in shown] == [alt]


def test_what_is_hard_to_read_is_shown_with_a_warning(monkeypatch):
    shown = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    with pytest.warns(UserWarning, match="Hard to read: .*'a very long name' is cut off.* Try another size"):
        plots.show(plots.bars({"a very long name": 1}, size=(1, 1)), "One bar with a name that is too long.")
    assert len(shown) == 1


def test_many_spreads_are_whiskers_and_lines_of_one_encoding_differ_in_shade():
    names = ("raw", "PI", "NTK-aware", "YaRN")
    for shown, bands in ((names[:3], True), (names, False)):
        figure = plots.lines(
            [1, 2], {name: [1, 2] for name in shown}, spread={n: ([0, 1], [2, 3]) for n in shown}
        )
        kinds = {type(each).__name__ for each in figure.axes[0].collections}
        assert kinds == ({"FillBetweenPolyCollection"} if bands else {"LineCollection"})
    drawn = [tuple(line.get_color()) for line in figure.axes[0].lines]
    assert len(drawn) == len(set(drawn)) == len(names)
