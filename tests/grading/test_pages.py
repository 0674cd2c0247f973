"""Pages that show what students wrote: nothing in them can run, load, send or cover anything."""

import csv
import html
import json
import re
from html.parser import HTMLParser

import nbformat
import pytest

from classroom import __main__ as command
from classroom import assignments, gradebook, marking, reports, safe_html, written
from classroom.rules import Rules
from course import certificate
from course.lesson import questions, votes
from tutorial_lib.language import language
from workshop import translation

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FORMULA = "Since $W_Q$ and $\\frac{q_i^\\top k_j}{\\sqrt d}$ turn, `$x$` stays, and $5 is 5."
HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data='x.swf'></object>",
    "<embed src=x>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='JaVa&#9;Script:alert(1)'>x</a>",
    "<a href=' javascript:alert(1)'>x</a>",
    "<a href='files/javascript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<a href='/logout'>x</a>",
    "<a href='//evil'>x</a>",
    "<a href='vbscript:x'>x</a>",
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](<java\nscript:alert(1)>)",
    "![x](javascript:alert(1))",
    "![x](https://evil/pixel.png)",
    "![x](/logout)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    '![x](x "y\\" onerror=alert(1)")',
    "<javascript:alert(1)>",
    "<div style='position:fixed;top:0;left:0;width:100%;height:100%;background:url(//evil)'>x</div>",
    "<div style='color:red;background:url(javascript:alert(1))'>x</div>",
    "<p style='width:expression(alert(1))'>x",
    "<div style='background-color:url(//evil)'>x</div>",
    "<div style='color:u\\72l(//evil)'>x</div>",
    "<div style='color:red;posi\\74ion:fixed'>x</div>",
    "<div style='color:red;po/**/sition:fixed'>x</div>",
    "<div style='--x:url(//evil);color:var(--x)'>x</div>",
    "<div style='color: image-set(\"//evil\" 1x)'>x</div>",
    "<div class='navbar-fixed-top modal' id='explain_why' name='explain_why'>x</div>",
    "<form action='//evil'><input name=password><button>Send</button></form>",
    "<textarea>x</textarea>",
    "<base href='//evil/'>",
    "<meta http-equiv=refresh content='0;url=//evil'>",
    "<link rel=stylesheet href=//evil>",
    "<style>body{display:none}</style>",
    "<!-- --!><script>alert(1)</script> -->",
    "<![CDATA[<script>alert(1)]]>",
    "<video src=x onerror=alert(1)></video>",
    "<details open ontoggle=alert(1)>x</details>",
    "<p onclick=alert(1)>x",
    "<body onload=alert(1)>",
    "</div></main></body><script>alert(1)</script>",
    "<template><script>alert(1)</script>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<xmp><p title='</xmp><img src=x onerror=a()>'>",
    "$x</script><script>alert(1)</script>$",
    "$$<img src=x onerror=alert(1)>$$",
    "\\begin{a}<img src=x onerror=alert(1)>\\end{a}",
    "```<script>alert(1)</script>\nx\n```",
    "```python\n<script>alert(1)</script>\n```",
    "```mermaid\n<script>alert(1)</script>\n```",
    "# <img src=x onerror=alert(1)>",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "{{ 7 * 7 }} {% raw %}",
    "\0<scr\0ipt>alert(1)</script>",
    "<a target=_blank onmouseover=alert(1) href=https://x>x</a>",
]
TAGS = safe_html.TEXT | {"html", "head", "meta", "title", "style", "body", "main", "section"}


class Seen(HTMLParser):
    """The tags of a page, each with its attributes."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, {name: value or "" for name, value in attributes}))

    def handle_data(self, data):
        self.text.append(data)


def dangers(markup: str, tags=safe_html.TEXT) -> list:
    """Whatever in the markup could run, load, send, cover or pass for a part of the page."""
    found = []
    for tag, attributes in Seen(markup).tags:
        if tag not in tags:
            found.append(tag)
        for name, value in attributes.items():
            plain = re.sub(r"[\s\0]", "", value).lower()
            if name.startswith("on") or name in ("id", "name", "srcdoc", "action", "formaction", "target"):
                found.append((tag, name))
            if name == "href" and not re.match(r"https?://|mailto:|#", plain):
                found.append((tag, name, value))
            if name == "src" and not re.match(r"data:image/(png|jpeg|gif);", plain):
                found.append((tag, name, value))
            if name == "style" and re.search(
                r"url|expression|position|width|height|[^-]top|@import|\\\\|image-set", plain
            ):
                found.append((tag, name, value))
            if (
                name == "class"
                and tags is safe_html.TEXT
                and not re.fullmatch(r"highlight|[a-z]{1,2}\d?", value)
            ):
                found.append((tag, name, value))
    return found


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_markdown(source):
    assert dangers(safe_html.render(source)) == []


def test_the_look_for_dangers_finds_them():
    """The same search over what nbconvert gives without the filter."""
    from nbconvert.filters import markdown2html

    missed = [source for source in HOSTILE if not dangers(markdown2html(source))]
    assert len(missed) < 20, missed  # those that nbconvert escapes by itself


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("*a* **b** `c<d` ~~e~~", "<p><em>a</em> <strong>b</strong> <code>c&lt;d</code> <del>e</del></p>\n"),
        ("$a_1 < b_2$ and $$\\sum_i x_i$$", "$a_1 &lt; b_2$"),
        ("$$\\sum_i x_i$$", "$$\\sum_i x_i$$"),
        ("[x](https://example.org/?a=1&b=2)", '<a href="https://example.org/?a=1&amp;b=2">x</a>'),
        ("- a\n- b", "<li>a</li>"),
        ("|a|b|\n|-|-|\n|1|2|", "<td>1</td>"),
        ("# Title", "<h1>Title</h1>"),
        ("```python\nfor x in y: pass\n```", '<span class="k">for</span>'),
        ("List<int> x", "List&lt;int&gt; x"),
        ("<span style='color: red; top: 0'>a</span>", '<span style="color:red">a</span>'),
        ("<p style='color: rgb(1, 2, 3)'>a", 'style="color:rgb(1, 2, 3)"'),
        # what is no tag of ours is text, and none of it is lost
        ("<div>\na<b c\nd", "a&lt;b c\nd"),
        ("<div>\n<foo>y</foo></div>", "&lt;foo&gt;y&lt;/foo&gt;"),
        ("<B>a</B>", "<b>a</b>"),
        ("a<br/>b", "a<br>b"),
        (f"![dot](data:image/png;base64,{PIXEL})", f'src="data:image/png;base64,{PIXEL}" alt="dot">'),
    ],
)
def test_honest_markdown_keeps_its_form(source, expected):
    assert expected in safe_html.render(source)


def test_attached_pictures():
    shown = safe_html.render("![a](attachment:a.png)", {"a.png": {"image/png": PIXEL}})
    assert f"data:image/png;base64,{PIXEL}" in shown
    assert "attachment:b.png" in safe_html.render("![a](attachment:b.png)")  # missing: shown as it was typed
    assert dangers(safe_html.render("![a](attachment:a)", {"a": {"text/html": "PHNjcmlwdD4="}})) == []


@pytest.mark.parametrize(
    "source",
    [
        "a" * 1_000_000,
        "<b>" * 100_000,
        "[" * 100_000,
        "> " * 9_000,
        "- " * 9_000,
        "<div>" * 3_999,
        "\\begin{a}" * 2_000,
        "**a*" * 4_000,
    ],
)
def test_bulk_is_shown_without_stopping_the_page(source):
    assert dangers(safe_html.render(source)) == []


# ---- whole pages ----


@pytest.fixture
def hostile_room(room):
    attack = "\n\n".join(HOSTILE) + "\n\nThe angles add up."

    def more(notebook):
        notebook.cells += [nbformat.v4.new_raw_cell(attack), nbformat.v4.new_markdown_cell(attack)]

    room.send("<script>alert(1)<", why=attack, code=f"'''{attack}'''\ndef answer(x): return x", change=more)
    (student,) = [path.name for path in (room.root / "submitted").iterdir()]
    marks = room.marks(
        student, 1.0, name="swapped", text=f"Your function returned {HOSTILE[0]}.", reread="06, section 2 <b>"
    )
    marks["remarks"] = [HOSTILE[3]]
    room.merge({student: marks})
    room.student = student
    room.comment(student, "explain_why", "**Nearly.** " + HOSTILE[3])
    return room


def test_feedback_page(hostile_room):
    room = hostile_room
    room.send("other", why="A secret of somebody else.")
    room.marks("other")
    room.merge()
    room.grade(room.student, "explain_why", manual_score=1.5, needs_manual_grade=False)
    paths = reports.feedback(room.root, room.name)
    assert len(paths) == 2
    page = (room.root / f"feedback/{room.student}/{room.name}/{room.name}.html").read_text()
    assert dangers(page, TAGS) == [("meta", "name")] * 2  # its own: the referrer and the viewport
    seen = Seen(page)
    policy = next(a["content"] for t, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "script-src" not in policy
    text = " ".join(" ".join(seen.text).split())
    for words in (
        "Your function returned <script>alert(1)</script>.",
        "Read again: 06, section 2 <b>",
        "answer: 1 of 4 points",
        "why: 1.5 of 2 points",
        "The angles add up.",
        "Nearly.",
        "2.5 of 6",
        "<script>alert(1)<: graded.",
    ):
        assert words in text, words
    assert "explain_why" not in text and "Because it is so." in text  # our answer
    assert "Because" not in (room.root / f"feedback/other/{room.name}/{room.name}.html").read_text()
    assert "secret" not in text and "swapped" not in text and "other" not in text.replace("another", "")


def test_feedback_of_every_state(room):
    room.send("slow")
    room.send("odd", seconds=1_700_000_000 + 1)
    for name in ("bad", "slow", "odd"):
        room.marks(name, state={"bad": "rejected", "slow": "timed out", "odd": "grader error"}[name])
    marks = gradebook.load_marks(room.root, room.name)
    marks["bad"]["reason"], marks["odd"]["reason"] = "The file is empty.", "KeyError in line 3 of the grader"
    room.merge(marks, due="2023-11-14T22:13:20+00:00", rules=Rules(late_per_day=0.1))
    for name, found in marks.items():
        (room.root / f"marks/{room.name}/{name}.json").write_text(json.dumps(found))
    paths = reports.feedback(room.root, room.name)
    pages = {path.parts[-3]: " ".join(Seen(path.read_text()).text) for path in paths}
    assert "The file is empty." in pages["bad"] and "too long" in pages["slow"]
    assert "no fault of yours" in pages["odd"] and "KeyError" not in pages["odd"]
    assert "−0.6" in pages["odd"] and "Late" not in pages["slow"]


def formgrader_page(room, student: str) -> str:
    """The page as formgrader builds it, with the configuration of the class folder."""
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader import handlers
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader("nbgrader_config.py", path=str(room.root)).load_config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    resources = {
        "assignment_id": room.name,
        "notebook_id": room.name,
        "submission_id": "1",
        "index": 0,
        "total": 1,
        "base_url": "",
        "student": student,
        "last_name": None,
        "first_name": None,
        "notebook_path": "x",
    }
    path = room.root / f"autograded/{student}/{room.name}/{room.name}.ipynb"
    return HTMLExporter(config=config).from_filename(str(path), resources=resources)[0]


def own(markup: str) -> list[tuple[str, dict]]:
    """What a page is built of, without text and its plain markup."""
    return [
        (tag, attributes)
        for tag, attributes in Seen(markup).tags
        if tag not in safe_html.TEXT or set(attributes) - {"href", "class", "style", "alt", "title", "src"}
    ]


def test_formgrader_page(hostile_room):
    """A hostile answer adds no tag and no attribute to the page of a harmless one."""
    room = hostile_room
    room.send("calm", change=lambda notebook: notebook.cells.append(nbformat.v4.new_markdown_cell("Hello.")))
    room.marks("calm")
    room.merge()
    hostile, calm = formgrader_page(room, room.student), formgrader_page(room, "calm")
    assert "The angles add up." in hostile and 'id="explain_why"' in hostile
    assert own(hostile.replace(room.student, "calm")) == own(calm)
    assert "Safe" in next(a["src"] for t, a in Seen(calm).tags if "mathjax" in a.get("src", "").lower())


def test_nbgraders_own_feedback_uses_the_filter(hostile_room, monkeypatch):
    from nbgrader.apps import NbGraderAPI
    from nbgrader.apps.baseapp import NbGrader

    monkeypatch.chdir(hostile_room.root)
    app = NbGrader()
    app.load_config_file()
    result = NbGraderAPI(config=app.config).generate_feedback(hostile_room.name, hostile_room.student)
    assert result["success"], result
    name = hostile_room.name
    page = (hostile_room.root / f"feedback/{hostile_room.student}/{name}/{name}.html").read_text()
    assert "The angles add up." in page
    for _, attributes in Seen(page).tags:
        assert not any(name.startswith("on") for name in attributes)
        assert not any("javascript:" in attributes.get(name, "").lower() for name in ("href", "src"))
    assert not re.search(r"<script[^>]*>[^<]*alert\(1\)", page)


def test_what_is_too_long_to_render_is_shown_as_it_was_typed():
    assert "<strong>" in safe_html.render("**b** " + "a" * (safe_html.MOST_LETTERS - 100))
    assert safe_html.render("**b** " + "a" * safe_html.MOST_LETTERS).startswith("<pre>**b** aaa")


# ---- what is read ----
def test_formulas_are_drawn_and_can_be_heard(room):
    room.send("li", why=FORMULA)
    room.marks("li")
    room.merge()
    (page,) = reports.feedback(room.root, room.name)
    marking, _ = written.write(room.root, room.name)
    for text in (page.read_text(), marking.read_text()):
        assert '<img alt="W_Q" src="data:image/png;base64,' in text and 'alt="\\frac{q_i' in text
        assert "<code>$x$</code>" in text and "$5 is 5." in text and "$W_Q$" not in text


def test_a_formula_that_cannot_be_drawn_stays_as_it_is():
    for tex in (
        "$\\begin{cases} a \\end{cases}$",
        "$\\nothing$",
        "$" + "x" * 1000 + "$",
        "$" + "{" * 250 + "$",
    ):
        assert "<img" not in safe_html.page(tex) and "$" in safe_html.page(tex)
    assert (
        safe_html.page(" ".join(f"$x_{{{n}}}$" for n in range(300))).count("<img") == safe_html.MOST_FORMULAS
    )


@pytest.mark.parametrize("way", ["text", "picture"])
def test_an_answer_of_many_megabytes_makes_no_page_of_many(room, way):
    def change(notebook):
        cell = next(one for one in notebook.cells if one.id == "explain_why")
        if way == "picture":
            cell.source = "![](attachment:a.png)"
            cell.attachments = {"a.png": {"image/png": "iVBORw0KGgo" + "A" * 14_000_001}}
        else:
            cell.source = "Because. " * 2_000_000

    room.send("big", change=change)
    room.send("li", why="A short reason.")
    for student in ("big", "li"):
        room.marks(student)
    room.merge()
    pages = [*reports.feedback(room.root, room.name), *written.write(room.root, room.name)]
    assert all(page.stat().st_size < 500_000 for page in pages)
    assert "in the file itself" in pages[0].read_text() and "A short reason." in pages[2].read_text()


def test_a_blank_draft_that_replaces_answers_is_said_in_the_table(room):
    room.send("li")
    room.send("bo", why="")
    stub = {
        one.metadata.nbgrader.grade_id: one.source
        for one in room.released().cells
        if "nbgrader" in one.metadata
    }
    room.send("li", why=stub["explain_why"], code=stub["answer"], seconds=1_700_000_100)
    for student in ("li", "bo"):
        room.marks(student)
    room.merge()
    with open(reports.export(room.root), encoding="utf-8-sig", newline="") as file:
        found = {row["student"]: row["reason"] for row in csv.DictReader(file)}
    assert "the notebook that was sent before had answers" in found["li"] and not found["bo"]


def test_pages_that_are_older_than_a_due_date_are_named(room, monkeypatch, capsys):
    monkeypatch.setattr(assignments, "path", lambda name, folder="": room.root / "solution.ipynb")
    monkeypatch.setattr(marking, "mark_all", lambda *args, **more: [])
    room.send("li")
    room.marks("li")
    line = ["grade", room.name, "--root", str(room.root)]
    assert command.main(line) == command.main(["feedback", *line[1:]]) == 0
    capsys.readouterr()
    assert command.main([*line, "--due", "2023-11-10T18:00", "--late-per-day", "0.1"]) == 0
    assert (
        "1 pages in feedback/ show the points from before: run `feedback ex06_rope`"
        in capsys.readouterr().out
    )


def test_a_certificate_of_the_class_can_be_told_from_any_other(room, capsys):
    line = ["certificate", "--root", str(room.root)]
    room.send("ada")
    assert command.main([*line, "ada"]) == 2 and "run `grade`" in capsys.readouterr().err
    room.marks("ada", 3.0)
    room.merge()
    room.grade("ada", "explain_why", manual_score=1.5, needs_manual_grade=False)
    assert command.main([*line, "ada"]) == 0 and command.main([*line, "adda"]) == 2
    made = room.root / "certificates" / "ada.html"
    text = made.read_text(encoding="utf-8")
    assert "4.5 of 6 points" in text and "Signature" in text and "1 graded exercise on" in text
    assert command.main([*line, "--check", str(made)]) == 0
    facts = certificate.stored(made)[0]
    facts["rows"][0][1:] = ["6 of 6 points", 1.0]
    made.write_text(certificate.page(facts, certificate.digest(facts), ""), encoding="utf-8")
    assert certificate.altered(made) == [] and command.main([*line, "--check", str(made)]) == 1


def test_the_page_of_a_class_says_what_to_begin_with(room, capsys):
    """Who has what, the mistakes by name, two answers without a name, the votes; and nothing in it runs."""
    wrong = 'def answer(x):\n    """The task."""\n    return "<script>"  # ada was here'
    for student, code, points in (
        ("ada", wrong, 0.0),
        ("ben", "def answer(x): return 41 + x", 4.0),
        ("cy", wrong, 0.0),
    ):
        room.send(student, code=code)
        room.marks(student, points, name="" if points else "adds <one>", reread="06, section 3")
    (room.root / "roster.csv").write_text("id,name\nada,Ada B.\nben,Ben\ncy,Cy\ndee,Dee\n")
    room.merge()
    folder = room.root / "votes"
    folder.mkdir()
    key = "06.tries"
    for code in range(votes.FEWEST):
        vote = {"question": key, "vote": 1, "choice": next(iter(questions.find("predict", key)["choices"]))}
        votes.write(vote | {"right": None, "version": "0.3.0", "code": f"{code:016x}"}, folder)
    assert command.main(["report", room.name, "--root", str(room.root)]) == 0
    page = (room.root / "report" / room.name / "class.html").read_text(encoding="utf-8")
    assert str(room.root / "report" / room.name / "class.html") in capsys.readouterr().out
    text = html.unescape(re.sub("<[^>]+>", " ", page.partition("<main>")[2]))
    for said in (
        "1 of 3 have answer right",
        "2 share a mistake: “adds <one>”, in answer. Read again: 06, section 3.",
    ):
        assert said in text, said
    assert "1 of 4 have nothing that could be marked" in text and "2 adds <one>" in text and "5 first" in text
    shown = re.findall("<pre>(.*?)</pre>", page, re.S)
    bodies = ["&#x27;&lt;script&gt;&#x27;", "41 + x"]
    assert shown == [f"def answer(x):\n    return {body}" for body in bodies]
    assert "<script" not in page and "Dee (not handed in)" in text
    with open(room.root / "report" / room.name / "class.csv", encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert [rows[name]["answer"] for name in ("ada", "ben", "dee")] == ["0", "4", ""]


def test_feedback_is_in_the_language_of_the_notebook(room, monkeypatch, tmp_path):
    """As the texts of the course are, once its catalog has been built; the question stands as it was read."""
    texts = translation.known("library", "zh")
    translation.compile_texts(texts, tmp_path / "zh")
    monkeypatch.setenv("TUTORIAL_LOCALE", str(tmp_path))

    def chinese(notebook):
        notebook.metadata["language"] = "zh"

    for student, change in (("ada", None), ("li", chinese)):
        room.send(student, change=change)
        room.marks(student, 0.0, reread="06")
    room.merge()
    ada, li = (path.read_text(encoding="utf-8") for path in reports.feedback(room.root, room.name))
    assert '<html lang="zh' in li and '<html lang="en"' in ada
    for said in ("Coded questions", "Not marked yet.", "Your answer:", "Total"):
        assert said in ada and said not in li and texts[said] in li, said
    monkeypatch.setattr(marking, "mark", lambda data, **job: {"text": language()})
    assert marking._mark({"data": b'{"metadata": {"language": "zh"}}'}) == {"text": "zh"}
    assert marking._mark({"data": b"no notebook"}) == {"text": "en"}
