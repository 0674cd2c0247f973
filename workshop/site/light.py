"""The pages of the site made light, once they are written: what a first visit need not fetch is taken out.

- Stored pictures move from the page into files. They carry their size, so that nothing shifts when they
  arrive, and load when the reader gets to them.
- A figure of two or three panels side by side can be cut: on a phone they stand one below the other, and
  names of rows that they share stand before each.
- Chinese words bring a font with just the characters of the site, 0.1 MB of the English one: a reader's own
  font comes first, so that only a browser without any fetches it, and sees no boxes.
- A figure with maps has a second picture for the dark: its colours are named in the text, and stay, but
  those of weights, which grow from the ground. That of a method has been drawn twice.
- A table of sentences has the names of its columns in each cell: on a phone its rows are cards.
- Each line of code knows how far it is indented: where it is broken, it goes on there. A colour's number has
  a swatch.
- What is still too wide for a phone scrolls in a place of its own, and nothing beside it does.
- What a cell printed in three columns or more is a table. Other long lines of it go on below their own
  beginning, too.
- A name in code breaks behind its signs, and a short one nowhere. The last characters of a Chinese heading or
  paragraph stay together.
- Style sheets go without their comments.
- The search index, 0.3 MB, is loaded on the search page only, and what copies code on all others.
- The theme's icons come from its font: the script that draws the same icons weighs ten times as much.
"""

import base64
import hashlib
import html
import io
import itertools
import re
from pathlib import Path

import editions
import numpy as np
from PIL import Image, ImageFilter, ImageOps

from tutorial_lib.language import ENGLISH
from workshop import documents, font

IMAGE = re.compile(r'<img\b[^>]*?\ssrc="([^"]+)"[^>]*>')
INLINE = "data:image/png;base64,"
UNUSED = ("scripts/fontawesome.js", "scripts/fontawesome.js.LICENSE.txt", "scripts/*.map", "styles/*.map")
UNNAMED = ' aria-label="Toggle hidden content"'
"""MyST-NB calls everything that opens so, in place of the words that are seen."""
MAP = re.compile(r'\salt="[^"]*(?:[Hh]eat map| map|[Dd]igit|热图|数字)')
TOY = re.compile(r'data-(?:live|playground)="[^<]*$')
PHONE = 44
"""Characters of code in a line of a phone."""
SMALLER = 0.9
"""Of its own size, so that titles in a figure are smaller than those above it."""
NARROW = 920
"""Pixels: what is drawn no wider fits a phone, and its words can be read there."""
SOLID, NEAREST = 7, Image.Resampling.NEAREST
"""Pixels: strokes are thinner, and the cells of a map together, or a bar of colours, are not."""
BEYOND = (249, 245, 236)
"""The ground of a figure behind the end of training."""
LETTER = 13
"""Pixels: what is light in a map and no wider is written on it."""
HALF_TURN = np.array([[-0.574, 0.426, 0.426], [1.43, 0.43, 1.43], [0.144, 0.144, -0.856]], np.float32)
"""What ``hue-rotate(180deg)`` does to a pixel (Filter Effects, §"hueRotate"), transposed."""
SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>')
COPY = re.compile(r"\s*<(?:script|link)\b[^>]*(?:clipboard\.min|copybutton)\.(?:js|css)[^>]*>(?:</script>)?")
"""What copies code, of which the search page has none."""
CELLS = re.compile(r"\s*<link\b[^>]*_static/mystnb\.[^>]*>")
"""The style of a notebook's cells, which other pages have none of."""
ICONS = re.compile(
    r"\s*<!-- So that users can add custom icons -->|"
    r'\s*<script defer src="[^"]*fontawesome\.js[^"]*"></script>'
)


def size(data: bytes) -> tuple[int, int] | None:
    """Width and height in which a PNG is shown; None for anything else. A figure says how sharp it is.

    >>> from tutorial_lib import plots
    >>> size(plots.png(plots.lines([0, 1], {"": [0, 1]}, size=(6, 4)))), size(b"GIF")
    ((600, 400), None)
    """
    if not data.startswith(b"\x89PNG"):
        return None
    with Image.open(io.BytesIO(data)) as image:
        sharp = max(1, round(image.info.get("dpi", (100, 100))[0] / 100))
        return image.width // sharp, image.height // sharp


def panels(data: bytes) -> tuple[list[float], float]:
    """Where a PNG falls into two or three panels of like width, and the names of rows that these share.

    All are fractions of its width. A cut goes near a half, or near a third and two thirds, through the widest
    gap without ink behind which a panel has all of its names. If the others have none, those of the first
    are to stand before each. Panels wider than 750 pixels, or NARROW with names, stay together, as a phone
    would make their letters too small.
    """
    width, height = size(data) or (0, 1)
    if width < 700 or width < 1.4 * height and width < 1000:
        return [], 0
    ink = np.asarray(Image.open(io.BytesIO(data)).convert("L").resize((width, height)), dtype=np.int16)
    paper = np.abs(ink - ink[0, 0]) < 3
    edges = np.flatnonzero(np.diff(paper.all(0), prepend=False, append=False)).tolist()
    gaps = [(b - a, (a + b) / 2 / width) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= 6]

    def before_its_axis(cut: float) -> float:
        """The gap before this one, if only the name of an axis stands between: it goes with its panel."""
        at = [place for _, place in gaps].index(cut)
        if not at:
            return cut
        between = ~paper[:, int(gaps[at - 1][1] * width) : int(cut * width)]
        high, wide = (np.ptp(np.flatnonzero(between.any(axis))) for axis in (1, 0))
        return gaps[at - 1][1] if 8 <= wide <= 26 and high > 3 * wide else cut

    def names(left: float, right: float) -> tuple[float, float]:
        """How wide what stands before a panel's frame is, and where that begins; 0 without a frame."""
        part = ~paper[:, int(left * width) : int(right * width)]
        framed = np.flatnonzero(part.mean(0) > 0.5)
        if not len(framed):
            return 0, 0
        return float(framed[0] - np.flatnonzero(part.any(0))[0]), float(framed[0])

    for n, near in ((2, 0.08), (3, 0.06)):
        first, frame = names(0, 1 / n)
        cuts = []
        for k in range(1, n):
            at = k / n, (k + (n - k) * frame / width) / n  # as long as all, or as the others without names
            close = [gap for gap in gaps if min(abs(gap[1] - its) for its in at) < near]
            whole = [gap for gap in close if names(gap[1], min(1, (k + 1) / n + near))[0] > 0.8 * first]
            cuts.append(before_its_axis(max(whole or close)[1]) if close else 0)
        if not all(cuts):
            continue
        least = min(names(*ends)[0] for ends in zip(cuts, [*cuts[1:], 1], strict=True))
        shared = frame - 2 if first >= 20 and least <= first / 3 else 0
        own, *others = np.diff([0, *cuts, 1]) * width
        if max(own, max(others) + shared) <= (NARROW if shared else 750):
            return cuts, shared / width
    return [], 0


def in_the_dark(data: bytes) -> bytes:
    """A figure on a dark ground: what is solid keeps its colours, lines and letters turn as by course.css.

    So do the greens of weights: where white is no weight at all, so is the ground here.
    """
    image = Image.open(io.BytesIO(data)).convert("RGB")
    light = np.asarray(image, dtype=np.float32) / 255
    small = np.asarray(image.resize(size(data), NEAREST), dtype=np.int16)
    ground = (small >= 252).all(2) | (np.abs(small - BEYOND) < 5).all(2)
    drawn = Image.fromarray(~ground)
    solid = drawn.convert("L").filter(ImageFilter.MinFilter(SOLID)).filter(ImageFilter.MaxFilter(SOLID))
    paper = ImageOps.invert(drawn.convert("L")).filter(ImageFilter.MinFilter(SOLID))
    closed = ImageOps.expand(solid, LETTER).filter(ImageFilter.MaxFilter(LETTER))
    closed = ImageOps.crop(closed.filter(ImageFilter.MinFilter(LETTER)), LETTER)
    light_letters = (np.asarray(closed) > 0) & (np.asarray(paper.filter(ImageFilter.MaxFilter(SOLID))) == 0)
    filled = (np.asarray(solid) > 0) | light_letters  # what is written on a map belongs to it
    green = Image.fromarray((small[..., 1] > small[..., ::2].max(2)) & filled).convert("L")
    weights, whole = (np.asarray(each.filter(ImageFilter.BoxBlur(SOLID))) for each in (green, solid))
    kept = Image.fromarray(filled & (weights <= 0.3 * whole)).resize(image.size, NEAREST)
    turned = (0.95 - 0.9 * light) @ HALF_TURN
    dark = np.where(np.asarray(kept)[..., None], light, turned).clip(0, 1)
    out = io.BytesIO()
    colours = Image.fromarray((255 * dark + 0.5).astype(np.uint8)).quantize(256, dither=Image.Dither.NONE)
    colours.save(out, "PNG", optimize=True)
    return out.getvalue()


def pictures(text: str, page: Path, site: Path) -> str:
    """A page with its pictures in files; those behind the first wait until the reader comes near."""
    count = 0

    def mended(image):
        tag, source = image[0], image[1]
        if source.startswith(INLINE):
            data = base64.b64decode(source.removeprefix(INLINE))
            file = site / "_images" / f"{hashlib.sha1(data, usedforsecurity=False).hexdigest()}.png"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
            to_root = "../" * (len(page.relative_to(site).parts) - 1)
            tag = tag.replace(source, f"{to_root}_images/{file.name}")
        elif re.match(r"\w+:", source):
            return tag
        else:
            file = page.parent / source.partition("?")[0]
        if "_images/" in tag and there_already(file.name, site):
            tag = tag.replace("_images/", "../_images/", 1)
            file = site.parent / "_images" / file.name
        data = file.read_bytes() if file.is_file() else b""
        if size(data) is None:
            return tag
        later = count > 0 or source.startswith(INLINE)
        toy = TOY.search(text, 0, image.start())
        night = file.with_stem(f"{file.stem}-dark")
        if toy or not (MAP.search(tag) if "_images/" in tag else night.exists()):
            made = shown(tag, data, later)
        else:
            if not night.exists():
                night.write_bytes(in_the_dark(data))
            dark = tag.replace(file.name, night.name).replace(' fetchpriority="high"', "")
            made = shown(tag, data, later, "only-light") + shown(dark, data, True, "only-dark")
        wide = re.search("--wide:[1-9]|--panel", made) and not toy
        return f'<span class="course-wide">{made}</span>' if wide else made

    def shown(tag, data, later, kind=""):
        nonlocal count
        count += 1
        known = size(data)
        share = SMALLER if "_images/" in tag and known[0] > 300 else 1
        wide, high = (round(share * each) for each in known)
        more = "" if "width=" in tag else f' width="{wide}" height="{high}"'
        more += ' loading="lazy"' if later else ""
        tag = f"{more} {tag.removeprefix('<img').lstrip()}"
        taken = re.search("_images/|/methods/", tag) and "style=" not in tag
        cuts, shared = panels(data) if taken else ([], 0)
        if not cuts:  # on a phone a wide one is half its size: its words can be read, and little is cut off
            least = known[0] // 2 if known[0] > NARROW else 0
            wide = f' style="--wide:{least}px"' if known[0] > 300 and "style=" not in tag else ""
            own = f' class="{kind}"' if kind else ""
            return f"<img{own}{wide}{tag}"
        made, widest = [], np.diff([0, *cuts, 1]).max()
        for k, ends in enumerate(zip([0, *cuts], [*cuts, 1], strict=True)):
            parts = [(0, shared), ends] if k and shared else [ends]
            whole = sum(right - left for left, right in parts)
            for left, right in parts:
                own, at = (right - left) * known[0], 100 * left / (1 - right + left)
                again = f'class="{kind} course-panel" aria-hidden="true" ' if k else f'class="{kind}" '
                again += 'loading="lazy" ' if k and "loading=" not in tag else ""
                beside = f";--part:{100 * (right - left) / whole:.2f}%" if len(parts) > 1 else ""
                if not shared:  # all on one scale: that with a colour bar is wider, not smaller
                    beside = f";--of:{100 * whole / widest:.2f}%"
                cut = f"--panel:{own / known[1]:.3f};--own:{own:.0f}px;--at:{at:.1f}%{beside}"
                made.append(f'<img {again}style="{cut}"{tag}')
        return "".join(made)

    return IMAGE.sub(mended, text)


def there_already(name: str, site: Path) -> bool:
    """Does the site around this one, in another language, have the same picture? Then this copy goes."""
    own, other = site / "_images" / name, site.parent / "_images" / name
    if not other.is_file() or own.is_file() and own.read_bytes() != other.read_bytes():
        return False
    own.unlink(missing_ok=True)
    return True


CHINESE = re.compile("[\u2e80-\u9fff\uff00-\uffef]")
"""The ``unicode-range`` of the font in course.css."""


SPACE = re.compile(
    r"(?s)<pre.*?</pre>|<script.*?</script>|"
    r"([。；：？！，、](?:</(?:strong|em|a|b|i)>)*)\s+(?=(?:<(?:strong|em|b|i|a|span)\b[^>]*>)*[\u4e00-\u9fff“（])"
)
"""A space behind a Chinese sign: in Markdown sentences stand side by side. Code keeps its own."""


PRINTED = re.compile(
    r'(<div class="output (?:stream|text_plain)\b[^>]*>\s*<div class="highlight[^>]*>)'
    r"<pre>(?:<span></span>)?([^<]*)</pre>(</div>\s*</div>)"
)
HEAD = r"(?:.{1,40}?[:：] ?|[^\d\s]\D{,38} (?=[-+−]?\d))(?=\S)"  # what ends with a colon, or at a number
LISTS = re.compile(r"tensor\(|array\(|^ *\[", re.M)
NUMBER = re.compile(r"(?:&lt; )?[-+–−±~]?(?:\d|\.\d|–$|-$|nan|inf)")


def printed(found: re.Match) -> str:
    r"""Lines of three columns or more as a table: what all cells of a column begin with is its head.

    >>> lines = "".join(f"{name}   at 64: 2.0   at 128: 2.1\n" for name in ("rope", "alibi", "none"))
    >>> box = '<div class="output stream"><div class="highlight">{}</div></div>'
    >>> table = printed(PRINTED.search(box.format(f"<pre>the loss\n{lines}</pre>")))
    >>> re.findall("<pre>.*?</pre>|<th[ >].*?</th>", table)
    ['<pre>the loss</pre>', '<th></th>', '<th class="n">at 64</th>', '<th class="n">at 128</th>']
    >>> words = lines.replace("at 64:", "near").replace("at 128:", "far away")
    >>> re.findall("<th[ >].*?</th>", printed(PRINTED.search(box.format(f"<pre>{words}</pre>"))))
    ['<th></th>', '<th class="n">near</th>', '<th class="n">far away</th>']
    >>> uneven = "name  one two\n" + lines + "shaw  at 64: 2.0  at 128:  2\n"
    >>> said = "".join(f"place  {n} to  {n}: saved\n" for n in range(3))
    >>> for text in ("a  1\nb  2\n", uneven, said):
    ...     print("<table" in printed(PRINTED.search(box.format(f"<pre>{text}</pre>"))))
    False
    False
    False
    """
    if LISTS.search(found[2]):
        return found[0]
    lines = [(line, re.split(" {2,}", line.strip())) for line in found[2].rstrip().splitlines()]
    blocks = []
    for line, cells in lines:
        if blocks and len(blocks[-1][-1][1]) == len(cells) > 2:
            blocks[-1].append((line, cells))
        elif blocks and blocks[-1][0][0][:1] == " " and len(cells) == len(blocks[-1][-1][1]) + 1 > 2:
            first = blocks.pop()[0]  # heads, and none above the names
            blocks.append([(first[0], ["", *first[1]]), (line, cells)])
        else:
            blocks.append([(line, cells)])
    if any(len(block) < 3 and len(cells) > 2 for block in blocks for _line, cells in block):
        return found[0]  # its columns stand too near to each other to be told apart
    made, text = [], []
    for block in blocks:
        if len(block[0][1]) < 3:
            text += [line for line, _cells in block]
            continue
        columns = [list(column) for column in zip(*(cells for _line, cells in block), strict=True)]
        said = [re.match(HEAD, column[0]) for column in columns]
        told = [
            its and its[0] if its and all(cell.startswith(its[0]) for cell in column) else ""
            for its, column in zip(said, columns, strict=True)
        ]
        if any(told):
            heads = [its.rstrip(":： ") for its in told]
            columns = [
                [cell[len(its) :] for cell in column] for its, column in zip(told, columns, strict=True)
            ]
        elif any(map(NUMBER.match, block[0][1])):
            heads = [""] * len(columns)
        else:
            heads = [column.pop(0) for column in columns]
        if any(len(cell) > 28 or re.search("[:：]", cell) for column in columns[1:] for cell in column):
            return found[0]  # sentences, with room around their numbers
        kinds = [' class="n"' * all(map(NUMBER.match, column)) for column in columns]

        def row(tag, cells, kinds=kinds):
            inside = (f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
            return f"<tr>{''.join(inside)}</tr>"

        if text:
            made.append("<pre>" + "\n".join(text) + "</pre>")
            text = []
        body = "".join(row("td", cells) for cells in zip(*columns, strict=True))
        head = f"<thead>{row('th', heads)}</thead>" if any(heads) else ""
        made.append(
            '<div class="pst-scrollable-table-container course-printed">'
            f"<table>{head}<tbody>{body}</tbody></table></div>"
        )
    if not made:
        return found[0]
    text = "<pre>" + "\n".join(text) + "</pre>" if text else ""
    return found[1] + "".join(made) + text + found[3]


CODE = re.compile(
    r'<code class="([^"]*\bliteral\b[^"]*)">((?:<span class="pre">[^<]*</span>|\s)+)</code>([.,;:!?)”]*)'
)
WHOLE = 24
"""Letters: a name in code breaks nowhere if it has no more."""
LAST = re.compile("(?<=[^<>]{8})([\u4e00-\u9fff]{2}[？。！：；”）]*)(?=</p>)")
ENDING = re.compile('([\u4e00-\u9fff]{3}[？！”）]*)(?=</h[1-3]>|<a class="headerlink")')
KEPT = r'<span class="course-whole">\1</span>'
OPTION = re.compile(r"(?<=[ >])(--?[a-z][\w-]*)(?=[\s=<])")


HALF = re.compile(
    r"(?s)<(pre|script|title|svg)\b.*?</\1>|<[^>]*>|"
    r"([，。；：？！、）》」』】](?=[，。；：？！、）》」』】（《「『【])|？(?=</a>))"
)
"""A Chinese sign whose blank half meets another sign, or ends a line below a link."""


def half(found: re.Match) -> str:
    """A Chinese sign without its blank half, for site.css: the fonts do it on few machines.

    >>> HALF.sub(half, '<p title="（一），">（一），二。')
    '<p title="（一），">（一<span class="course-half">）</span>，二。'
    """
    return f'<span class="course-half">{found[2]}</span>' if found[2] else found[0]


def chip(found: re.Match) -> str:
    """A name in code that breaks nowhere, or behind its signs; an option stays whole, a stop stays with it.

    >>> def made(text):
    ...     return chip(CODE.search(f'<code class="literal"><span class="pre">{text}</span></code>'))
    >>> made("make hub")
    '<code class="literal course-whole"><span class="pre">make hub</span></code>'
    >>> re.sub("<.?(?:span|code).*?>", "", made("course/experiments/readability.py"))
    'course/<wbr>experiments/<wbr>readability.<wbr>py'
    >>> re.findall('course-whole">(.*?)<', made("python -m course.lab --no-browser"))
    ['-m', '--no-browser']
    """
    if len(html.unescape(re.sub("<[^>]*>", "", found[2]))) <= WHOLE:
        return f'<code class="{found[1]} course-whole">{found[2]}</code>{found[3]}'
    inside = re.sub(r"(?<=[\w)])([/_.=,]+)(?=\w)", r'\1</span><wbr><span class="pre">', found[2])
    inside = re.sub(r"(?<![\w<-])(--?[a-z][\w-]*)", KEPT, inside)
    made = f'<code class="{found[1]}">{inside}</code>'
    return f'<span class="course-kept">{made}{found[3]}</span>' if found[3] else made


TABLE = re.compile(r'<table class="table">(.*?)</table>', re.S)
CELL = re.compile(r"<td(?=[ >])(.*?)</td>", re.S)
PLACES = re.compile(
    r"(?s)<td[^>]*>(?:<p>)?(?:<a [^>]*>(?:(?!</a>).)*</a>|<code\b.*?</code>)"
    r"(?:[,、\s]+<code\b.*?</code>)*(?:</p>)?</td>"
)
"""A link, or names in code."""


def _cells(table: str) -> tuple[list[str], list[str]]:
    """Of a table's inside: its cells, and what they say."""
    found = re.findall(r"<td\b.*?</td>", table, re.S)
    return found, [re.sub("<[^>]*>", "", each) for each in found]


def rows(found: re.Match) -> str:
    r"""A table with three columns or more, and sentences in it: on a phone each row is a small card.

    With five columns, some words are enough, and with more letters in a row than a phone has room for. Two
    columns fit, if the first is short, or shorter still beside a long list. The only column of sentences,
    and links or code alone, need no name, a number that begins a card does; numbers stay below each other.

    >>> head = "".join(f'<th class="head"><p>{name}</p></th>' for name in ("term", r"\(p\)", "said"))
    >>> row = f"<tr><td><p>bias</p></td><td><p>b</p></td><td><p>{'a number ' * 6}</p></td></tr>"
    >>> table = rows(TABLE.search(f'<table class="table">{head}{row}</table>'))
    >>> table.count('data-name="said"'), table.count('data-name="p"'), table.count("data-plain")
    (1, 1, 1)
    >>> row = row.replace("bias", "40")
    >>> rows(TABLE.search(f'<table class="table">{head}{row}</table>')).count("data-amount")
    1
    >>> row = "<tr>" + f"<td>{'a number ' * 3}</td>" * 3 + "</tr>"  # 81 letters, none of the cells is long
    >>> "course-rows" in rows(TABLE.search(f'<table class="table">{head}{row}</table>'))
    True
    >>> head = "".join(f"<th>{name}</th>" for name in ("given", "right", "broken", "named"))
    >>> row = f"<tr><td>{'a function ' * 4}</td><td>19</td><td>151</td><td>151</td></tr>"
    >>> "course-figures" in rows(TABLE.search(f'<table class="table">{head}{row}</table>'))
    True
    """
    heads = re.findall(r"<th\b.*?</th>", found[1], re.S)
    names = [re.sub(r"<[^>]*>|\\[()]", "", each).strip() for each in heads]  # a formula is not set there
    inside, cells = _cells(found[1])
    wide = [len(CHINESE.sub("--", each)) for each in cells]  # as wide as two letters, and saying as much
    if len(names) < 2 or len(cells) % len(names):
        return found[0]
    columns = [wide[n :: len(names)] for n in range(len(names))]
    if max(wide) < (40 if len(names) < 5 else 20) and sum(map(max, columns)) < 60:
        return found[0]
    if len(names) == 2 and max(wide[::2]) < (24 if max(wide[1::2]) < 160 else 14):
        return found[0]
    links = [all(map(PLACES.fullmatch, inside[n :: len(names)])) for n in range(len(names))]
    if len(names) > 3 and all(max(its) < 8 for its in columns[1:]):  # it stays a table, below each name
        return f'<table class="table course-figures" style="--n:{len(names) - 1}">{found[1]}</table>'
    alone = sum(max(its) >= 40 for its, linked in zip(columns, links, strict=True) if not linked) == 1
    amount = all(AMOUNT.fullmatch(each.strip() or "0") for each in cells[:: len(names)])  # it needs its name
    name = itertools.cycle(
        f'<td data-name="{name}"'
        + " data-amount" * (amount and not n)
        + (" data-short" if max(its) < 12 else " data-plain" * (linked or alone and max(its) >= 40))
        for n, (name, its, linked) in enumerate(zip(names, columns, links, strict=True))
    )
    named = CELL.sub(lambda its: f"{next(name)}{its[1]}</td>", found[1])
    return f'<table class="table course-rows">{named}</table>'


AMOUNT = re.compile(r"[−+-]?[\d.,]+(?: of [\d.,]+)?(?: ?%| \w{1,5})?")


def amounts(found: re.Match) -> str:
    """A table whose columns of nothing but numbers stand at the right, with their heads.

    >>> head, row = "<th>when</th><th>how much</th>", "<tr><td>May</td><td><p>1,024</p></td></tr>"
    >>> amounts(TABLE.search(f'<table class="table">{head}{row}</table>')).count("text-align")
    2
    """
    wide = len(re.findall(r"<th\b", found[1]))
    _inside, cells = _cells(found[1])
    if not wide or len(cells) % wide:
        return found[0]
    right = [all(AMOUNT.fullmatch(each.strip()) for each in cells[n::wide]) for n in range(wide)]
    place = itertools.cycle(' style="text-align:right"' * each for each in right)
    return re.sub(r"<t[hd]\b", lambda cell: cell[0] + next(place), found[0])


LINES = re.compile(
    r'(?s)(<div class="output (?:stream|text_plain)\b[^>]*>\s*<div class="highlight[^>]*>\s*)?'
    r"<pre>(?:<span></span>)?((?:(?!</?pre>|<span style).)*)</pre>"
)
"""What is typed or printed, and whether it was printed."""


def hung(found: re.Match) -> str:
    """What a phone has to break, in lines that go on below their own beginning.

    >>> code = '<pre><span></span><span class="k">def</span> f():\\n    {}\\n</pre>'
    >>> LINES.sub(hung, code.format("x" * PHONE)).split("\\n")[1][:30]
    '</span><span style="--in:4ch">'
    >>> LINES.sub(hung, code.format("pass")) == code.format("pass")
    True
    """
    lines = found[2].splitlines(keepends=True)
    words = [html.unescape(re.sub("<[^>]*>", "", line)).rstrip() for line in lines]
    if max(map(len, words), default=0) <= PHONE:
        return found[0]
    depths = (0 if found[1] else len(word) - len(word.lstrip()) for word in words)
    made = (
        f'<span style="--in:{depth}ch">{OPTION.sub(KEPT, line)}</span>'
        for line, depth in zip(lines, depths, strict=True)
    )
    return f"{found[1] or ''}<pre><span></span>{''.join(made)}</pre>"


SIDE_BY_SIDE = re.compile(r'<div class="(math notranslate nohighlight)">\s*\\\[(.*?)\\\]</div>', re.S)


def apart(found: re.Match) -> str:
    """Formulas side by side, which stand one below the other where there is no room.

    >>> formula = '<div class="math notranslate nohighlight">\\\\[{}\\\\]</div>'
    >>> made = SIDE_BY_SIDE.sub(apart, formula.format(r"a = b, \\qquad c = {d \\qquad e}"))
    >>> re.findall(r"\\\\displaystyle (.*?)\\\\", made)
    ['a = b,', 'c = {d ']
    """
    parts = [""]
    for piece in re.split(r"\\qquad(?![a-z])", found[2]):
        if not parts[-1] or documents.unclosed(parts[-1]):
            parts[-1] = f"{parts[-1]}\\qquad{piece}" if parts[-1] else piece
        else:
            parts.append(piece)
    if len(parts) == 1 or not all(re.search(r"\w", its) for its in parts):  # the end of a proof
        return found[0]
    spans = "".join(f'<span class="{found[1]}">\\(\\displaystyle {its.strip()}\\)</span> ' for its in parts)
    return f'<div class="course-apart">{spans}</div>'


TIME = re.compile(r"^<p>(?=<em>(?:(?!</em>|</p>).)*</em></p>)", re.S | re.M)

SWATCH = re.compile(r'(<code[^>]*><span class="pre">)(#[0-9a-fA-F]{6})(?=</span>)')
"""A colour by its number is shown, too."""
TIME = re.compile(r"<p>(?=<em>(?:(?!</em>|</p>).)*</em></p>)", re.S)
"""A paragraph in italics: how long a lesson takes."""
LEAD = re.compile(r"(</h1>\s*<p>(?:<svg.*?</svg>)?)<strong>([^<]*)</strong>(?=</p>)")
"""What begins a page and is bold as a whole: the first paragraph is larger anyway."""
WAY = re.compile(r'<p>(?=(?:(?!</p>).)*/glossary\.html"><span[^<]*>[^<]*</span></a></p>)')
"""A line of links that ends with the glossary: where a lesson stands."""


QUEST = re.compile(r'<h1>(\d\d · [^:：<]+)[:：] ?([“"‘]?\w)(?=([^<]?)(?:(?!</h1>).)*class="headerlink")')


def capital(first: str, second: str) -> str:
    """How a title begins, by its first letter and the next: large, but in xPos."""
    return first if second.isupper() else first.upper()  # a quotation mark before it stays


def quest(found: re.Match) -> str:
    """The title of a side quest, and above it that it is one.

    >>> title = '<h1>{} · Side quest: {}?<a class="headerlink"'
    >>> QUEST.sub(quest, title.format("09", "whose stars"))[:64]
    '<p class="course-quest">09 · Side quest</p><h1>Whose stars?<a cl'
    >>> QUEST.sub(quest, title.format("06", "xPos"))[39:48]
    '</p><h1>x'
    >>> QUEST.sub(quest, title.format("05", "“significantly better”"))[39:54]
    '</p><h1>“Signif'
    """
    return f'<p class="course-quest">{found[1]}</p><h1>{capital(found[2], found[3])}'


def of_quests(text: str) -> str:
    """The page of a side quest: its part says above it, and before its neighbours, what it is.

    >>> title = '<b>09 · Side quest: whose stars?</b><h1>09 · Side quest: whose stars?<a class="headerlink">'
    >>> of_quests(title)[:76]
    '<b>09 · Whose stars?</b><p class="course-quest">09 · Side quest</p><h1>Whose'
    """
    word = QUEST.search(text)[1].partition(" · ")[2]
    named = rf'((?:<b>|"prev-next-title">)\d\d · ){word}[:：] ?(\W?\w)(?=(.))'
    return QUEST.sub(quest, re.sub(named, lambda its: its[1] + capital(its[2], its[3]), text))


TWICE = re.compile(r"<h1>([^<]*).*?<h2(?=>([^<]*))", re.S)
XRAY = re.compile(r'((?:<h1>|</i>|\.html">|href="#">)[^<]*?)X-ray')
"""In a title, or in the list of pages: too short a word to be broken."""


def said_once(found: re.Match) -> str:
    """The first heading of a side quest is not shown where it only says the title again.

    >>> TWICE.sub(said_once, "<h1>Whose stars?</h1><h2>Whose stars</h2>")
    '<h1>Whose stars?</h1><h2 hidden>Whose stars</h2>'
    >>> TWICE.sub(said_once, "<h1>Two axes</h1><h2>A formula</h2>")
    '<h1>Two axes</h1><h2>A formula</h2>'
    """
    title, heading = (re.sub(r"\W", "", text).casefold() for text in found.groups())
    return found[0] + " hidden" * (title == heading)


def sheet(text: str) -> str:
    """A style sheet without comments, and without what its signs do not need.

    >>> sheet("/* why */ a > b {\\n  c: d; } /* and\\n so */\\n")
    'a > b{c: d}'
    >>> sheet(":root { --none: ; }")
    ':root{--none: }'
    """
    signs = re.sub(r"(?<!:)\s*([{};,])\s*", r"\1", re.sub(r"(?s)/\*.*?\*/", "", text))
    return signs.replace(";}", "}").strip()


def lighten(site: Path) -> None:
    """All pages of the site, in place; with a font for their Chinese characters."""
    characters: set[str] = set()
    others = {*editions.LANGUAGES} - {ENGLISH}  # sites of their own, below the English one
    for page in site.rglob("*.html"):
        if "_static" in page.parts or page.relative_to(site).parts[0] in others:
            continue
        text = page.read_text(encoding="utf-8")
        characters.update(CHINESE.findall(text))
        mended = ICONS.sub("", pictures(text, page, site)).replace(UNNAMED, "")
        mended = TIME.sub('<p class="course-time">', LEAD.sub(r"\1\2", mended))
        mended = WAY.sub('<p class="course-way">', mended)
        mended = XRAY.sub(r'\1<span class="course-kept">X-ray</span>', mended)
        if page.parent.name == "deeper":
            mended = TWICE.sub(said_once, of_quests(mended))
        mended = SPACE.sub(lambda its: its[1] or its[0], TABLE.sub(rows, TABLE.sub(amounts, mended)))
        mended = SWATCH.sub(r'\1<i class="course-swatch" style="background:\2"></i>\2', mended)
        mended = PRINTED.sub(printed, CODE.sub(chip, mended))
        if editions.LANGUAGE.startswith("zh"):
            mended = HALF.sub(half, ENDING.sub(KEPT, LAST.sub(KEPT, mended)))
        mended = LINES.sub(hung, SIDE_BY_SIDE.sub(apart, mended))
        if '<div id="pst-secondary-sidebar"' in text:  # for course.css, which keeps its room
            mended = mended.replace("<html ", "<html data-aside ", 1)
        if page.name != "search.html":
            mended = SEARCH.sub("", mended)
        else:
            mended = COPY.sub("", mended)
        if 'class="cell ' not in text:
            mended = CELLS.sub("", mended)
        if mended != text:
            page.write_text(mended, encoding="utf-8")
    for pattern in UNUSED:
        for file in (site / "_static").glob(pattern):
            file.unlink()
    if characters:
        font.make(font.OUT, site / "_static" / "fonts" / "chinese.woff", characters)


def finish(app, problem):
    if not problem and app.builder.name == "html":
        lighten(Path(app.outdir))


def styles(app, problem):
    for style in (Path(app.outdir) / "_static").glob("*.css"):
        style.write_text(sheet(style.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app):
    app.connect("build-finished", finish)
    app.connect("build-finished", styles, priority=900)  # after the theme has written the colours of code
    return {"parallel_read_safe": True, "parallel_write_safe": True}
