"""The font of figures in languages that DejaVu Sans has no characters for: a small part of a large one.

    python -m workshop.font NotoSansCJK-Regular.ttc

The file comes with Debian's package ``fonts-noto-cjk``. What is written into
``course/fonts`` has the characters of all catalogs and of the glossary, the 3,755 of GB 2312's
level 1, punctuation and ASCII. Run it again when a test says that a catalog has a character that it lacks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from . import FONTS, ROOT, translation

FAMILY, NUMBER = "Noto Sans CJK SC", 2
"""Which font of the collection."""
OUT = FONTS / "NotoSansCJKsc-course.otf"
COMMON = [
    bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF if row < 0xD7 else 0xFA)
]
"""Level 1 of GB 2312: the 3,755 characters that are used most."""
MARKS = [
    *range(0x20, 0x7F),
    *range(0xA0, 0x100),
    *range(0x2010, 0x2040),
    *range(0x3000, 0x3020),
    *range(0xFF01, 0xFF60),
]
"""ASCII, Latin-1 and punctuation, narrow and wide."""


def written() -> set[str]:
    """The characters of all catalogs and of the glossary."""
    texts = [
        said
        for language in translation.languages()
        for name in translation.catalogs(language)
        for said in translation.known(name, language).values()
    ]
    return set("".join([*texts, (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")]))


def characters() -> set[str]:
    """All characters that the font should have."""
    return written() | {each.decode("gb2312") for each in COMMON} | set(map(chr, MARKS))


def make(source: Path, out: Path = OUT, only: Iterable[str] | None = None) -> None:
    """Write the subset of the font ``source`` with the characters ``only``, by default :func:`characters`.

    A name that ends in ``.woff`` asks for that format. ValueError if the source is another font.
    """
    from fontTools import subset
    from fontTools.ttLib import TTFont

    with TTFont(source, fontNumber=NUMBER, recalcTimestamp=False) as font:
        if (family := font["name"].getDebugName(1)) != FAMILY:
            raise ValueError(f"{source} holds {family!r} as font {NUMBER}, not {FAMILY!r}")
        options = subset.Options(hinting=False, layout_features=[], notdef_outline=True, name_IDs=["*"])
        cutter = subset.Subsetter(options)
        cutter.populate(text="".join(sorted(characters() if only is None else only)))
        cutter.subset(font)
        font.flavor = "woff" if out.suffix == ".woff" else None
        font.save(out)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workshop.font",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", type=Path)
    make(parser.parse_args(arguments).source)
    print(f"{OUT.relative_to(ROOT)}: {OUT.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
