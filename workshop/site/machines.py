"""What programs read: pages as Markdown, their list `llms.txt`, schema.org's words, the changelog as RSS."""

import html
import json
import os
import re
from pathlib import Path

import editions
import nbformat

from tutorial_lib.language import ENGLISH
from workshop import documents

LICENCE = "https://creativecommons.org/licenses/by/4.0/"
AUTHORS = "The authors of How Transformers know order"
FEED = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0"><channel><title>{title}</title><link>{base}</link><description>What changed</description>
{items}</channel></rss>
"""


def markdown(path: Path, text: str) -> str:
    """A page's source as Markdown: a notebook is its text, its code, and what that printed.

    >>> cell = nbformat.v4.new_code_cell("1 + 1", outputs=[nbformat.v4.new_output("stream", text="2")])
    >>> print(markdown(Path("a.ipynb"), nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))))
    ```python
    1 + 1
    ```
    <BLANKLINE>
    ```
    2
    ```
    <BLANKLINE>
    """
    if path.suffix != ".ipynb":
        return text.replace(".ipynb", ".md")
    parts = []
    for cell in nbformat.reads(text, as_version=4).cells:
        if cell.cell_type != "code":
            parts.append(cell.source.replace(".ipynb", ".md"))  # links lead from Markdown to Markdown
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            said = output.get("text") or output.get("data", {}).get("text/plain", "")
            if said and not said.startswith("<"):  # a picture's or a widget's name says nothing
                parts.append(f"```\n{said.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def paged(name: str) -> bool:
    """Does the page have a source to read? The others are lists, or made from code."""
    return name.startswith(("notebooks/", "exercises/", "docs/"))


def linked(data: dict) -> str:
    """Data of schema.org as a script of the page."""
    text = json.dumps({"@context": "https://schema.org", **data}, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/ld+json">{text}</script>\n'


def say(app, name, _template, context, _doctree):
    """The page in schema.org's words: the course on the first page, a learning resource on each lesson's."""
    base, course = app.config.html_baseurl, {"@type": "Course", "name": app.config.project}
    about = {
        "name": html.unescape(re.sub("<.*?>", "", context.get("title", ""))),
        "inLanguage": editions.tag(editions.LANGUAGE),
        "license": LICENCE,
        "author": {"@type": "Organization", "name": AUTHORS},
        **({"url": f"{base}{name}.html"} if base else {}),
    }
    if name == "index":
        about |= course | {"description": "Positional encoding in Transformers", "isAccessibleForFree": True}
        about |= {"provider": about["author"]}
    elif paged(name) or name.startswith("methods/"):
        about |= {"@type": "LearningResource", "isPartOf": course, "isAccessibleForFree": True}
    else:
        return
    tags = linked(about)
    if paged(name):
        tags += f'<link rel="alternate" type="text/markdown" href="{name.rpartition("/")[2]}.md">\n'
    if base:
        feed = os.environ["SITE_URL"] + "changes.xml"
        tags += f'<link rel="alternate" type="application/rss+xml" href="{html.escape(feed)}">\n'
    context["metatags"] = context.get("metatags", "") + tags


def rss(title: str, base: str, changes: str) -> str:
    """The changelog as RSS, one item for each version.

    >>> rss("T", "https://a.b/", "# C\\n\\n## 0.2\\n\\nA < B\\n").splitlines()[2][:55]
    '<item><title>0.2</title><guid isPermaLink="false">0.2</'
    """
    items = "".join(
        f'<item><title>{version}</title><guid isPermaLink="false">{version}</guid><link>{base}</link>'
        f"<description>{html.escape(text.strip())}</description></item>\n"
        for version, text in re.findall(r"^## (\S+)[^\n]*\n(.*?)(?=^## |\Z)", changes, re.M | re.S)
    )
    return FEED.format(title=html.escape(title), base=html.escape(base), items=items)


def write(app, problem):
    """Beside each page its Markdown, and at the top the list of them all."""
    if problem or app.builder.name != "html":
        return
    out, base, listed = Path(app.outdir), app.config.html_baseurl, {}
    for name in sorted(app.env.found_docs):
        path = Path(app.env.doc2path(name))
        if not paged(name):
            continue
        text = markdown(path, editions.source(name, path, path.read_text(encoding="utf-8")))
        (out / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        head = re.search(r"^# (.+)$", text, re.M)
        listed.setdefault(name.partition("/")[0], []).append(
            f"- [{head[1] if head else name}]({base}{name}.md)\n"
        )
    text = f"# {app.config.project}\n\n> {AUTHORS}. Text and figures: CC BY 4.0; code: MIT.\n"
    for part, lines in listed.items():
        text += f"\n## {part}\n\n" + "".join(lines)
    (out / "llms.txt").write_text(text, encoding="utf-8")
    changes = documents.ROOT / "CHANGELOG.md"
    if base and editions.LANGUAGE == ENGLISH and changes.is_file():
        text = rss(app.config.project, os.environ["SITE_URL"], changes.read_text(encoding="utf-8"))
        (out / "changes.xml").write_text(text, encoding="utf-8")


def setup(app):
    app.connect("html-page-context", say)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
