"""How heavy the site is: ``python workshop/site/weigh.py build/site`` prints its size, and that of each page.

A page weighs what a first visit fetches: itself, and each script, style sheet and picture that it names.
What a visitor only gets by scrolling or asking for it, a picture that is loaded late or a formula's font, is
left out. Sizes are uncompressed, although most servers compress.
"""

import argparse
import re
from pathlib import Path
from urllib.parse import unquote, urljoin

NAMED = re.compile(r'<(?:script|img|link)\b[^>]*?\s(?:src|href)="([^"#?]+)[^"]*"[^>]*>')
LATER = re.compile(r'loading="lazy"|rel="(?:next|prev|index|search|canonical|alternate|author|icon)"')


def parts(text: str) -> set[str]:
    """What a page names and a browser fetches at once.

    >>> sorted(parts('<img src="a.png"><img loading="lazy" src="b.png"><script src="c.js?v=1"></script>'))
    ['a.png', 'c.js']
    """
    found = {match[1] for match in NAMED.finditer(text) if not LATER.search(match[0])}
    return {one for one in found if not re.match("data:|https?:", one)}


def weights(site: Path) -> dict[str, int]:
    """Bytes of each page with its parts, by its path; listings of code are left out."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name.startswith("_modules/") or "_static" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        names = {unquote(urljoin(name, part)) for part in parts(text)}
        files = [site / one for one in names if (site / one).is_file()]
        found[name] = path.stat().st_size + sum(file.stat().st_size for file in files)
    return found


def size(n: int) -> str:
    """
    >>> size(2_345_678), size(45_600)
    ('2.3 MB', '46 kB')
    """
    return f"{n / 1e6:.1f} MB" if n >= 1e6 else f"{n / 1e3:.0f} kB"


def report(site: Path) -> str:
    """Total, and the pages, heaviest first."""
    files = [path for path in site.rglob("*") if path.is_file()]
    pages = sorted(weights(site).items(), key=lambda pair: -pair[1])
    head = f"{site}: {size(sum(path.stat().st_size for path in files))} in {len(files):,} files"
    return "\n".join([head, "a first visit fetches:", *(f"{size(n):>8}  {name}" for name, n in pages)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    print(report(parser.parse_args().site))
