"""What is a page of the site, and how a notebook is fitted to a page without a kernel."""

import html
import itertools
import json
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from sphinx import application, project

from course import playground
from course.lesson import museum, predictions, questions
from course.lesson.warm_up import Again, pick
from tutorial_lib.explorers import live
from tutorial_lib.language import ENGLISH, _
from workshop import documents

HERE = Path(__file__).parent
if str(HERE) not in sys.path:  # where a test reads this file
    sys.path.insert(0, str(HERE))

import article  # noqa: E402
import atlas  # noqa: E402
import editions  # noqa: E402
import landing  # noqa: E402
import methods  # noqa: E402
import quests  # noqa: E402
import reference  # noqa: E402

import results  # noqa: E402

CARD = Path(predictions.__file__).parent / "card"
ROOT = HERE.parents[1]
API = re.compile(r"^   ((?:tutorial_lib|course)\S+)$", re.M)
STUDENTS = bool(os.environ.get("STUDENTS"))
TEACHERS = re.compile(r"\n## Teach with it\n.*?(?=\n\[What is taught where)|\ndocs/instructor/\w+", re.S)
NEIGHBOURS = re.compile(r"\[← [^]]+\]\([^)]+\) · | · \[[^]]+ →\]\([^)]+\)")
"""Of a line that says where a lesson stands: below it, the page has them as cards."""
MOVED = {
    "workshop/site/index": "index",
    "README": "index",
    "workshop/site/api": "api/index",
    "workshop/site/methods": "methods/index",
}


class Project(project.Project):
    """The repository as a web site: the first page is ``index``; modules, methods, records have one each."""

    def path2doc(self, filename):
        name = super().path2doc(filename)
        return MOVED.get(name, name)

    def discover(self, *args, **kwargs):
        super().discover(*args, **kwargs)
        here = editions.LANGUAGE == ENGLISH
        for index, names, source in (
            ("api/index", [f"api/{module}" for module in MODULES], "module.rst"),
            ("methods/index", methods.NAMES, "method.md"),
        ):
            for name in names if index in self.docnames else ():
                if not here and name not in editions.documents_of(editions.LANGUAGE):
                    continue
                self.docnames.add(name)
                self._docname_to_path[name] = Path("workshop/site") / source
        for slug in results.records() if results.INDEX in self.docnames else ():
            self.docnames.add(results.FOLDER + slug)
            self._docname_to_path[results.FOLDER + slug] = Path(f"{results.INDEX}.md")
        return self.docnames


def modules(text: str) -> str:
    r"""``api.rst``, with a line for each module that it does not name where it says ``….*``.

    >>> modules("   tutorial_lib.data.corpus\n   tutorial_lib.data.*").split()[:2]
    ['tutorial_lib.data.corpus', 'tutorial_lib.data.images']
    """
    named = API.findall(text)

    def rest(line):
        package = line[1].removesuffix(".*")
        files = sorted((ROOT / package.replace(".", "/")).glob("[!_]*.py"))
        new = [name for path in files if (name := f"{package}.{path.stem}") not in named]
        return "\n".join(f"   {name}" for name in new)

    return API.sub(lambda line: rest(line) if line[1].endswith(".*") else line[0], text)


MODULES = API.findall(modules((HERE / "api.rst").read_text(encoding="utf-8")))


def links(text: str) -> str:
    """Links as the site has them: its anchors in place of JupyterLab's, modules in place of their files.

    >>> links("[02](02_sinusoidal.ipynb#The-equation), [code](../tutorial_lib/encodings/rotary.py)")
    '[02](02_sinusoidal.ipynb#the-equation), {py:mod}`code <tutorial_lib.encodings.rotary>`'
    """

    def module(link):
        name = link[2].replace("/", ".")
        if name in MODULES and editions.LANGUAGE != ENGLISH:
            return f"[{link[1]}]({editions.ENGLISH_SITE}api/{name}.html)"
        return f"{{py:mod}}`{link[1]} <{name}>`" if name in MODULES else link[0]

    text = re.sub(
        r"(\]\((?:[^()\s#]*\.ipynb)?)#((?:[^()\s]|\([^()\s]*\))+)",
        lambda link: f"{link[1]}#{documents.slug(unquote(link[2]))}",
        text,
    )
    if editions.LANGUAGE == ENGLISH:
        text = results.linked(text)
    if STUDENTS:  # what is not there is not linked to
        text = re.sub(r"\[([^][]+)\]\((?:\.\./)*(?:docs/)?instructor/[^()\s]*\)", r"\1", text)
    return re.sub(r"\[([^][]+)\]\((?:\.\./)*(tutorial_lib/[\w/]+)\.py\)", module, text)


def place(name: str, value: str, inside: str, **data) -> str:
    """HTML that ``answers.js`` brings to life; ``inside`` is there without it."""

    def said(text: str) -> str:
        text = documents.curly(text)  # and i − j stays in one piece
        return re.sub(r"(?<!\w)(\w) ([−+]) (\w)(?!\w)", "\\1\u00a0\\2\u00a0\\3", text)

    more = "".join(f' data-{key}="{html.escape(said(live.compact(each)))}"' for key, each in data.items())
    return f'<div data-{name}="{html.escape(value)}"{more}>{said(inside)}</div>'


def checks(asked_here: list[tuple[str, str, dict]]) -> str:
    """Questions, by key, label and text: to be answered, or, without a script, with answers to be opened."""
    shown = []
    for kept, label, asked in asked_here:
        question, right = f"<b>{label}</b><br>{asked['question']}", asked["answer"]
        choices = [
            [key, words, None if key == questions.UNSURE else key == right, asked["why"][key]]
            for key, words in asked["choices"].items()
        ]
        listed = "".join(f"<li>{html.escape(words)}</li>" for _key, words, *_rest in choices)
        inside = f"<p>{question}</p><ul>{listed}</ul>"
        if STUDENTS:
            shown.append(inside)
            continue
        inside += (
            f"<details><summary>{_('Answer')}</summary>"
            f"<p><b>{html.escape(asked['choices'][right])}</b> {asked['why'][right]}</p></details>"
        )
        shown.append(
            place(
                "key",
                kept,
                inside,
                check={"question": question, "choices": choices},
            )
        )
    return "".join(shown)


def concept_check(number: str) -> str:
    asked = questions.questions(number)["check"].items()
    return checks(
        [
            (questions.log_key("check", f"{number}.{name}"), _("Question {n}").format(n=n), each)
            for n, (name, each) in enumerate(asked, 1)
        ]
    )


def warm_up(number: str) -> str:
    """The two questions for a reader whose answers nobody knows; the page keeps its own."""
    asked = [Again(*key, n) for n, key in enumerate(pick(number, {}), 1)]
    return checks([(f"{number} {each.key}", each.label, each.asked) for each in asked])


def verdicts(content: dict) -> dict[str, list[str]]:
    """Of each exhibit of the bug museum what each check says, as the table in its notebook has it."""
    outputs = [output for cell in content["cells"] for output in cell.get("outputs", [])]
    told = "".join("".join(output.get("data", {}).get("text/html", "")) for output in outputs)
    rows = re.findall(r'<tr><th scope="row"[^>]*>.*?</th>(.*?)</tr>', told, re.S)
    cells = [[html.unescape(cell) for cell in re.findall("<td[^>]*>(.*?)</td>", row, re.S)] for row in rows]
    return dict(zip(museum.EXHIBITS, cells, strict=False))


def exhibit(name: str, said: list[str]) -> str:
    """An exhibit as a card: its code, the checks to be chosen, and what each one measured."""
    shown = museum.EXHIBITS[name]
    answer = f"<details><summary>{_('Which line is it?')}</summary>{museum.explained(shown)}</details>"
    choices = []
    for (key, check), words in zip(museum.CHECKS.items(), said, strict=True):
        if words == "–":
            words = _("does not apply: {reason}").format(reason=_(check.reason))
        right, words = words.startswith("✔"), words.removeprefix("✔ ")
        why = f"{html.escape(words[0].upper() + words[1:], quote=False)}." + answer * right
        choices.append([key, _(check.label), right, why])
    asked = {"question": _("Which check finds the mistake?"), "choices": choices}
    listed = "".join(f"<li>{html.escape(words)}</li>" for _key, words, *_rest in choices)
    inside = f"<p>{asked['question']}</p><ul>{listed}</ul>"
    if not STUDENTS:
        inside = place("key", f"{museum.NOTEBOOK}.museum.{name}", inside + answer, check=asked)
    head = f"<p><b>{_('Exhibit')}.</b> {html.escape(_(shown.title))}</p>"
    return f'<div class="course-exhibit">{head}{article.coloured(shown.code)}{inside}</div>'


def gallery(without: list[str], said: dict[str, list[str]]) -> str:
    """All other exhibits, each below its title."""
    cards = (
        f"<details><summary>{html.escape(_(museum.EXHIBITS[name].title))}</summary>"
        f"{exhibit(name, words)}</details>"
        for name, words in said.items()
        if name not in without
    )
    return "".join(cards)


def prediction(key: str, shown: str) -> str:
    """The card that asks, with all that the page's script needs to answer it."""
    asked = questions.find("predict", key)
    kept = {name: asked[name] for name in (*predictions.SHOWN, "within", "why", "reasons") if name in asked}
    kept["kind"] = asked.get("kind", "choice")
    kept["choices"] = [[*pair] for pair in asked.get("choices", {}).items()]
    return place("predict", questions.log_key("predict", key), shown, asked=kept)


def notebook(text: str, aside: bool = False) -> str:
    """A stored notebook, fitted to the site: links, alternative texts, answers that wait to be opened."""
    content = json.loads(text)
    *above, last = content["cells"]  # where a lesson stands is said at its end: beside it is a list of all
    content["cells"] = [cell for cell in above if "strip" not in cell["metadata"].get("tags", ())] + [last]
    first = list(itertools.takewhile(lambda cell: cell.get("outputs") == [], content["cells"][1:]))
    if first:  # a page begins with its puzzle: what runs before is in one drawer
        first[0]["metadata"].setdefault("tags", []).append("hide-input")
        first[0]["source"] = "\n\n".join("".join(cell["source"]) for cell in first)
        del content["cells"][2 : 1 + len(first)]
    if aside:
        article.put_below(content["cells"])
    found = verdicts(content)
    for cell in content["cells"]:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        if cell["cell_type"] == "markdown":
            cell["source"] = article.worth(links(NEIGHBOURS.sub("", source) if "strip" in tags else source))
            if any(tag.startswith("explain:") for tag in tags):
                words = _("Your answer goes here, in the notebook.")
                cell["source"] = f'<p class="course-blank">{words}</p>'
            continue
        article.fit(cell)
        options = cell["metadata"]["mystnb"]
        for output in list(cell.get("outputs", [])):
            data = output.get("data", {})
            if told := output.get("metadata", {}).get("measured"):
                whole = re.sub("</?details>|<summary>.*?</summary>", "", "".join(data["text/html"]))
                words = predictions.in_words(told["key"], told["value"])  # not read from the text
                data["text/html"] = place(
                    "told",
                    questions.log_key("predict", told["key"]),
                    whole,
                    measured={"value": told["value"], "words": words},
                )
            elif asked := re.search(r'^lesson\.predict\("(\d+\.\w+)"\)', source, re.M):
                data["text/html"] = prediction(asked[1], "".join(data["text/html"]))
            if own := output.get("metadata", {}).get("live"):  # the script of the page brings it to life
                inside = re.search("<figure[^>]*>(.*)</figure>", "".join(data["text/html"]))[1]
                output["data"] = {"text/html": playground.place(**own, inside=inside)}
            elif "image/png" in data:  # an image of its own with an alternative text, not one inside of HTML
                del data["text/html"]
                options["image"] = {"alt": "".join(data["text/plain"]).removeprefix("Figure: ")}
                if output["output_type"] == "execute_result":
                    words = _(
                        "This is a picture of the explorer. In JupyterLab it moves: run the cell, and "
                        "set it with its controls."
                    )
                    note = {"text/html": f'<p class="course-note">{words}</p>'}
                    cell["outputs"].append({"output_type": "display_data", "metadata": {}, "data": note})
            elif check := re.search(r'^lesson\.concept_check\("(\d+)"\)$', source, re.M):
                data["text/html"] = concept_check(check[1])
            elif visit := re.search(r"^museum\.(visit|gallery)\((.*)\)$", source, re.M):
                names = re.findall(r'"(\w+)"', visit[2])
                one = visit[1] == "visit"
                data["text/html"] = exhibit(names[0], found[names[0]]) if one else gallery(names, found)
            elif warm := re.search(r'^lesson\.warm_up\("(\d+)"\)$', source, re.M):
                data["text/html"] = warm_up(warm[1])
    return json.dumps(content)


# ---- what Sphinx calls ----
def read(app, docname, source):
    path, known = Path(app.env.doc2path(docname)), app.env.found_docs
    guide = TEACHERS if STUDENTS and docname == "index" else None
    source[0] = editions.source(docname, path, source[0], leave_out=guide)
    if path.suffix == ".ipynb":
        source[0] = notebook(source[0], "/deeper/" in docname)
    elif docname == "index":
        source[0] = landing.filled(source[0]).replace("METHODS", methods.sidebar())
    elif docname == "methods/index":
        source[0] = links(source[0].replace("METHODS", methods.listed()))
    elif docname.startswith("methods/"):
        name = docname.removeprefix("methods/")
        source[0] = links(methods.text(name, methods.picture(name)))
    elif docname == results.INDEX:
        source[0] = results.index(source[0])
    elif docname.startswith(results.FOLDER):
        source[0] = results.page(docname.removeprefix(results.FOLDER))
    elif docname == "docs/atlas":
        source[0] = re.sub("<div data-atlas>.*?</div>", lambda _found: atlas.table(), source[0])
        source[0] = links(
            re.sub("<div data-checkpoints>.*?</div>", lambda _found: atlas.checkpoints(), source[0])
        )
    elif docname in reference.LAID:
        source[0] = links(reference.LAID[docname](source[0]))
    elif docname == "api/index":
        source[0] = (
            modules(source[0])
            + "\n.. toctree::\n   :hidden:\n\n"
            + "".join(f"   {name.removeprefix('tutorial_lib.')} <{name}>\n" for name in MODULES)
        )
    elif docname.startswith("api/"):
        source[0] = source[0].replace("MODULE", docname.removeprefix("api/"))
    else:
        source[0] = links(source[0])
    folder = path.parent.relative_to(app.srcdir).as_posix()
    if path.suffix != ".ipynb":
        source[0] = editions.abroad(source[0], folder, known, MOVED)
    elif editions.LANGUAGE != ENGLISH:
        content = json.loads(source[0])
        for cell in content["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = editions.abroad(cell["source"], folder, known, MOVED)
        source[0] = json.dumps(content)


def anchors(app, doctree):
    """``<a id="rope"></a>`` in a page is a place that links may name, as a heading is."""
    known = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for node in doctree.findall(nodes.raw):
        for name in re.findall(r'<a id="([^"]+)">', node.astext()):
            known[name] = (node.line, name, name)


def letters(app, doctree):
    """On the page of a method, letters of formulas look in sentences as they do in formulas."""
    if not app.env.docname.startswith("methods/"):
        return
    for section in doctree.findall(nodes.section):
        if {"the-equation", "costs-and-users"} & {*section["ids"]}:
            for text in [*section.findall(nodes.Text)]:
                kind, parts = type(text.parent), methods.letters(text.astext())
                if kind is nodes.subscript and text.isalpha() and len(text) < 3:
                    parts = ["", text.astext(), ""]  # indices: ij
                if kind in (nodes.paragraph, nodes.subscript, nodes.superscript) and parts[1:]:
                    new = [
                        nodes.inline(part, part, classes=["course-letter"]) if n % 2 else nodes.Text(part)
                        for n, part in enumerate(parts)
                    ]
                    text.parent.replace(text, new)


def bars(_app, _what, _name, _object, _options, lines):
    """In a docstring ``|i − j|`` is a distance, and no substitution of reStructuredText."""
    lines[:] = [
        line
        if line.startswith((" ", ".."))
        else re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line)
        for line in lines
    ]


def sources(_app, env):
    """The overview of the code names only modules that have a page."""
    known = getattr(env, "_viewcode_modules", {})
    env._viewcode_modules = {name: code for name, code in known.items() if code}


def overview(_app, name, _template, context, _doctree):
    """The overview of the code as one list: Sphinx puts lists between the items of a list."""
    if name == "_modules/index":
        head, _list, items = context["body"].partition("<ul>")
        context["body"] = f"{head}<ul>{re.sub('</?ul>', '', items)}</ul>"


def front_end(app):
    """Scripts and styles of explorers, playground and predictions stand beside the other static files."""
    folder = Path(app.doctreedir) / "live"
    live.write(folder)
    playground.write(folder)
    (folder / "playground.html").write_text(playground.page(), encoding="utf-8")
    card = CARD.with_suffix(".js").read_text(encoding="utf-8").replace("export default", "const card =")
    own = (HERE / "answers.js").read_text(encoding="utf-8")
    said = {text: _(text) for text in re.findall(r'\bsay\("([^"]+)"\)', card + own)}
    words = {} if editions.LANGUAGE == ENGLISH else said
    script = live.lean(card + own.replace("TEXTS", live.compact(words)))
    (folder / "answers.js").write_text(f'(() => {{\n"use strict";\n{script}}})();\n', encoding="utf-8")
    css = (HERE / "atlas.css").read_text(encoding="utf-8")
    (folder / "atlas.css").write_text(f"{css}{atlas.style()}\n", encoding="utf-8")
    shutil.copyfile(CARD.with_suffix(".css"), folder / "answers.css")
    app.config.html_static_path.append(str(folder))


def in_steps(words: str) -> str:
    """What is to be done in an exercise, as a list: write, check, ask for a hint."""
    write, checked, wrong, hint, model, panel = re.findall(r".+?(?:[.](?= |$)|。)", words, re.S)
    steps = (write, checked + wrong + panel, hint + model)
    return f'<ul class="simple">{"".join(f"<li>{step.strip()}</li>" for step in steps)}</ul>'


def exercise(body: str, picture: str, notebook: str) -> str:
    """With the picture of its lesson, and its notebook; its table is a list that leads to each question.

    Each question says its level, its minutes and its points, in the list and below its heading.
    """
    framed = r'(<div class="pst[^>]*><table.*?</table>\s*</div>)'
    start, table, rest = re.split(framed, body, maxsplit=1, flags=re.S)
    worth = r'<p class="course-worth">'  # what is worth nothing is no question
    title = r"<h2>(.*?)(?=<a class=\"headerlink)"
    asked = re.findall(rf'<section id="([^"]+)">\n(?:<span[^>]*></span>)*{title}.*</h2>\s*{worth}', rest)
    head, *rows = table.split("<tr")[1:]
    minutes, listed = re.findall("<th.*?><p>(.*?)</p>", head)[3], ""
    for row, (place, name) in zip(rows, asked, strict=True):
        _name, _what, level, time, _points = re.findall("<td.*?>(?:<p>)?(.*?)(?:</p>)?</td>", row)
        its = re.compile(rf'(<section id="{place}">.*?{worth})(?:★+[,，] ?)?(.*?)(?=</p>)', re.S)
        said = f"{level} · {time} {minutes} · {its.search(rest)[2]}"
        rest = its.sub(rf"\1{said}", rest, count=1)
        listed += f'<li><a class="reference internal" href="#{place}">{name}</a><small>{said}</small></li>'
    ways = f'<a href="{notebook}" download>{_("Download the notebook")}</a> '
    ways += f"<span>{_('You write your answers in it; this page is for reading.')}</span>"
    start = start.replace("<p>", f"<p>{picture}", 1)
    start = re.sub(r"<h1>([^<]*?\d\d) · ", r'<p class="course-quest">\1</p><h1>', start, count=1)
    how = r"<h2>([^<]*)(?:(?!</h2>).)*</h2>\n<p>((?:(?!</p>).)*check\.model_answer.*?)</p>"
    rest = re.sub(
        how,
        lambda found: f"<details><summary>{found[1]}</summary>{in_steps(found[2])}</details>",
        rest,
        count=1,
        flags=re.S,
    )
    return f'{start}<p class="course-open">{ways}</p><ol class="course-asked">{listed}</ol>{rest}'


def alive(app, name, _template, context, _doctree):
    """A page with an explorer, or with something to answer, loads the script for it."""
    if its := re.match(r"exercises/ex(\d\d)", name):
        source = context["pathto"](f"_sources/{name}.ipynb", resource=True)
        context["body"] = exercise(context["body"], landing.picture(its[1]), source)
    elif its := re.match(r"notebooks/deeper/(\w+)", name):
        context["body"] = context["body"].replace("<p>", f"<p>{quests.picture(its[1])}", 1)
    if "data-live=" in context.get("body", ""):
        app.add_js_file("live.js", defer="defer")
        app.add_css_file("live.css")
    if "data-atlas" in context.get("body", "") or 'class="at-' in context.get("body", ""):
        app.add_css_file("atlas.css")
    if name == results.INDEX or name.startswith((results.FOLDER, "methods/")):
        app.add_css_file("records.css", priority=900)  # behind course.css
    if "data-find=" in context.get("body", ""):
        app.add_js_file("atlas.js", defer="defer")
    if re.search('class="course-(?:models|samples|letters|entry|told|board)', context.get("body", "")):
        app.add_css_file("reference.css", priority=900)  # after course.css
    if "data-term=" in context.get("body", ""):
        app.add_js_file("glossary.js", defer="defer")
    if "data-playground" in context.get("body", ""):
        app.add_js_file("playground.js", defer="defer")
        app.add_css_file("playground.css")
    if "data-predict=" in context.get("body", "") or "data-check=" in context.get("body", ""):
        app.add_js_file("answers.js", defer="defer")
        app.add_css_file("answers.css")


def setup(app):
    application.Project = Project
    app.connect("source-read", read)
    app.connect("doctree-read", anchors)
    app.connect("doctree-read", letters)
    app.connect("env-updated", sources)
    app.connect("builder-inited", front_end)
    app.connect("html-page-context", overview)
    app.connect("html-page-context", alive)
    app.connect("autodoc-process-docstring", bars, priority=900)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
