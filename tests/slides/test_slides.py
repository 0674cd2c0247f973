"""The slides: plans that fit their notebooks, and decks as a teacher opens them, in Chromium."""

import functools
import html
import re
import threading
import tomllib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe

from course.lesson import questions
from course.lesson.questions import notebooks
from tutorial_lib.language import speaking
from tutorial_lib.language import tag as web_name
from workshop import authoring, drawings, pieces, slides, translation

NUMBERS = slides.numbers()
every_deck = pytest.mark.parametrize("number", NUMBERS)
GUIDE = (slides.ROOT / "docs" / "instructor" / "README.md").read_text(encoding="utf-8")


@functools.cache
def deck(number):
    return slides.Deck(number)


def told_in(number, key):
    """What was measured for a prediction of a notebook."""
    return next(told["value"] for told in deck(number).notebook.told.values() if told["key"] == key)


# ---- plans ----
def test_every_notebook_has_a_plan():
    assert NUMBERS == notebooks() and len(NUMBERS) == 11


@every_deck
def test_a_plan_fits_its_notebook(number):
    """Each quote fits one place, and each result stands behind its prediction (Deck raises if not)."""
    plan = deck(number)
    assert 12 <= len(plan.slides) <= 23
    assert plan.slides[0].section == slides.plain(plan.notebook.title)
    assert plan.slides[0].draw and not plan.slides[0].head, "no cover: the title, a question, a drawing"
    assert plan.slides[-1].section == "Summary"
    for slide in plan.slides:
        assert slide.show or slide.draw, slide.section
        assert all(text[-1] in ".?" for text in (slide.ask, slide.expect)), slide.section
        shown = [
            part.source
            for blocks in slide.blocks
            for block in blocks
            for part in block.parts
            if block.kind != "code"
        ]
        assert len(shown) == len(set(shown)), f"{slide.section}: two quotes have a part in common"
    pictures = [
        block
        for slide in plan.slides
        for blocks in slide.blocks
        for block in blocks
        if block.kind == "picture"
    ]
    assert len(pictures) + sum(bool(slide.draw) for slide in plan.slides) >= 10
    assert any(re.search("data-(live|playground)", each.parts[0].source) for each in pictures), "a toy"
    sections = {slide.section for slide in plan.slides if slide.do}
    explorers = {
        name
        for _, name, blocks in plan.notebook.blocks
        for block in blocks
        if block.kind == "code" and re.search(r"^\w+Explorer\(", block.parts[-1].source)
    }
    assert not explorers or explorers & sections, f"no slide says what to move in {explorers}"
    lanes = [
        block
        for _, _, blocks in plan.notebook.blocks
        for block in blocks
        if block.kind == "picture" and "data-playground" in block.parts[0].source
    ]
    assert all(block in pictures for block in lanes), "lanes of the notebook are on no slide"


@every_deck
def test_a_slide_says_one_thing_and_shows_it(number):
    """Tables at the end, and what is voted on or moved by hand, speak for themselves; so does the title."""
    for n, slide in enumerate(deck(number).slides[1:], 2):
        blocks = [block for each in slide.blocks for block in each]
        moved = any(re.search("data-(live|playground)", block.parts[0].source) for block in blocks)
        if slide.vote or moved or slide.section in ("Claims tested", "Summary", "The map"):
            continue
        assert slide.head and len(slide.head) < 110, f"slide {n} of {slide.section} has no headline"
        kinds = {block.kind for block in blocks}
        assert slide.draw or kinds - {"paragraph"}, f"slide {n} ({slide.head}) is words alone"


@every_deck
def test_a_prediction_on_a_slide_has_its_choices_and_its_result(number):
    plan = deck(number)
    shown = [block for slide in plan.slides for blocks in slide.blocks for block in blocks]
    asked = [
        plan.notebook.asked[block.cell]
        for block in shown
        if block.kind == "html" and block.cell in plan.notebook.asked
    ]
    assert len(asked) == len(set(asked)) >= 2
    for cell, name in plan.notebook.asked.items():
        if name not in asked:
            continue
        (block,) = [b for b in shown if b.kind == "html" and b.cell == cell]
        (whole,) = [
            b for _, _, blocks in plan.notebook.blocks for b in blocks if (b.kind, b.cell) == ("html", cell)
        ]
        assert block.parts == whole.parts, f"{name} is not shown with all of its choices"
        at = next(n for n, slide in enumerate(plan.slides) if block in slide.blocks[0])
        assert [b for b in plan.slides[at + 1].blocks[0] if b.cell > cell], f"no result follows {name}"


def test_the_minutes_are_those_of_three_half_days():
    table = GUIDE.split("### Three half-days")[1].split("\n### ")[0]
    said = dict.fromkeys(NUMBERS, 0)
    for minutes, number in re.findall(r"^\| (\d+) \| \[(\d\d) ", table, re.MULTILINE):
        said[number] += int(minutes)
    assert {number: deck(number).minutes for number in NUMBERS} == said


def test_the_clock_runs_on():
    plan = deck("06")
    assert [slide.clock for slide in plan.slides[:3]] == [
        0,
        plan.slides[0].minutes,
        plan.slides[0].minutes + plan.slides[1].minutes,
    ]
    assert "<b>0:03</b>, 2 minutes. Open: A wish" in plan.slides[2].notes


# ---- quotes ----
@pytest.mark.parametrize(
    "quote, message",
    [
        ("No such words", "fits 0 places, it must fit one: mend it"),
        ("", "fits 0 places"),
        ("T", "places, it must fit one: lengthen it"),
        ("Any arrow [...] nowhere", "nothing after it in its block ends with 'nowhere'"),
    ],
    ids=["nothing", "empty", "twice", "no-end"],
)
def test_a_quote_that_does_not_fit_is_named_with_its_place(quote, message):
    with pytest.raises(ValueError, match="06_rope.ipynb, section 'One pair, by hand': the quote") as problem:
        deck("06").notebook.quoted("One pair, by hand", quote)
    assert repr(quote) in str(problem.value) and message in str(problem.value)


def test_links_and_emphasis_do_not_break_a_quote():
    bare = "An encoding opens a *door*. **It is one of five.** See $a_i$ there."
    linked = (
        'An [encoding](../docs/glossary.md#encoding "how (much) it says") opens a *[door](x.md#door)*. '
        "**It is one of [five](00_start_here.ipynb#Five-doors).** See $a_i$ there."
    )
    (one,), (other,) = (slides._of_markdown(0, text) for text in (bare, linked))
    assert one == other
    assert [part.text for part in one.parts] == [
        "An encoding opens a door.",
        "It is one of five.",
        "See $a_i$ there.",
    ]


def test_a_list_is_quoted_by_sentences():
    (block,) = slides._of_markdown(0, "1. First. More of it.\n2. **Second** one.")
    assert [part.source for part in block.parts] == ["1. First.", "   More of it.", "2. **Second** one."]


@pytest.mark.parametrize(
    "change, message",
    [
        (("minutes = 2\n", "minutes = 0\n"), "needs minutes"),
        (('ask = "', 'ask = ""\n# "'), "needs minutes"),
        (("minutes = 2\n", "minutes = 2\nasks = 1\n"), "unexpected keyword argument 'asks'"),
        (('section = "A wish"', 'section = "A riddle"'), "has the section 'A riddle' 0 times"),
        (
            (
                'two recipes"\n',
                'two recipes"\nshow = ["In 04 the offset", "Add a sinusoid [...]", "With $q = W_Q"]\n',
            ),
            "words of text",
        ),
        (('"Measured: 0.2823"', '"scores without and with [...]"'), "raw output"),
        (('"Predict. WQ and WK are random. [...]"', '"Two tries, with the same"'), "prediction 06.tries"),
        (("look for two", "look for 9,753"), "slide 3: 9,753 stands nowhere in 06_rope.ipynb"),
        (("we look for two recipes", "But a query at position 2000"), "stands below the prediction 06.tries"),
        (("draw.flow", "draw.flowers"), "slide 3: a drawing has one of rows, flow"),
        (("draw.dials = [", 'draw.dials = [ { hands = ["12:00"] },'), "can't be drawn"),
        (("we look for two recipes", "after 2000 places"), "'2000' stands below the prediction 06.tries"),
    ],
    ids="minutes ask key section words raw result-first number head-first form drawing number-first".split(),
)
def test_a_plan_that_does_not_fit_says_so(tmp_path, monkeypatch, change, message):
    number = "05" if message == "raw output" else "06"
    plan = (slides.PLANS / f"{number}.toml").read_text(encoding="utf-8")
    assert change[0] in plan
    (tmp_path / f"{number}.toml").write_text(plan.replace(*change), encoding="utf-8")
    monkeypatch.setattr(slides, "PLANS", tmp_path)
    with pytest.raises(ValueError, match=number) as problem:
        slides.Deck(number)
    assert message in str(problem.value)


# ---- decks ----
@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A folder with all decks, and its address on this machine."""
    folder = tmp_path_factory.mktemp("slides")
    assert slides.main(["--folder", str(folder)]) == 0

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def words(text):
    return re.sub(r"[\W_]+", "", html.unescape(text))


@every_deck
def test_a_deck_shows_nothing_that_is_not_in_the_notebook(site, number):
    """But for headlines and drawings: the plan may say in its own words what is seen."""
    from bs4 import BeautifulSoup

    page = BeautifulSoup((site[0] / f"{number}.html").read_text(encoding="utf-8"), "html.parser")
    known = ""
    for cell in deck(number).notebook.cells:
        known += words(slides.unlinked(cell.source).replace("texttt", "mathtt"))
        for output in cell.get("outputs", []):
            known += words(output.get("text", "") or output.data["text/plain"])
            rich = BeautifulSoup(output.get("data", {}).get("text/html", ""), "html.parser")
            known += words(rich.get_text())
            known += "".join(words(image.get("alt", "")) for image in rich.select("img"))
    for section in page.select("section"):
        assert section.select_one("aside.notes").extract()
        for own in section.select("h3, figure > svg, .measured"):
            own.extract()
        for piece in section.find_all(string=True):
            assert all(words(line) in known for line in piece.split("\n")), piece
        for image in section.select("img"):
            assert image["src"].startswith("data:image/png") and words(image["alt"]) in known


def test_a_measured_number_keeps_its_unit(site):
    assert '<b class="number">14.68\u00a0%</b>' in (site[0] / "05.html").read_text(encoding="utf-8")


def test_the_index_lists_every_deck(site):
    page = (site[0] / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="(\d\d)\.html"', page) == NUMBERS


class Shown:
    """A deck in a page, and all that goes wrong there."""

    def __init__(self, browser, url, path, width=1280, height=720):
        self.context, self.problems = browser.new_context(viewport={"width": width, "height": height}), []
        self.context.route(
            "**/*",
            lambda route: (
                route.continue_()
                if route.request.url.startswith((url, "data:"))
                else (self.problems.append(f"outside: {route.request.url}"), route.abort())
            ),
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(90e3)  # other tests may use both cores
        note = self.problems.append
        self.page.on("pageerror", lambda error: note(f"script: {error}"))
        self.page.on("console", lambda message: message.type == "error" and note(f"console: {message.text}"))
        self.page.on("requestfailed", lambda request: note(f"failed: {request.url}"))
        self.page.on("response", lambda r: r.status >= 400 and note(f"{r.status}: {r.url}"))
        self.page.goto(f"{url}/{path}")
        self.page.wait_for_function("() => window.Reveal && Reveal.isReady()")


# Explorers are drawn a frame after the words have taken their room. ``.live`` has the size of its place,
# whatever is in it; so its parts are measured: they stay in the place, and their words on the slide.
# Lanes stay in the place, and what is in a lane in the lane: it would be cut off.
EXPLORERS = """async (slide, say) => {
    const scale = Reveal.getScale(), edge = document.querySelector('.slides').getBoundingClientRect();
    const frame = () => new Promise(requestAnimationFrame);
    for (const place of slide.querySelectorAll('[data-live]')) {
        for (let n = 0; n < 3 || n < 900 && !place.live?.still; n++) await frame();
        const all = place.parentElement.getBoundingClientRect(), slack = 2 * scale;
        for (const e of place.querySelectorAll('.lv-bar, .lv-stage, .lv-stage > *, svg, svg text')) {
            const b = e.getBoundingClientRect(), word = e.matches('text');
            if (!b.width || e.closest('[clip-path]')) continue;
            const room = !word ? all : { left: edge.left + 30 * scale, right: edge.left + 1250 * scale,
                                         top: all.top, bottom: edge.top + 690 * scale };
            if (b.left < room.left - slack || b.right > room.right + slack
                || b.top < room.top - slack || b.bottom > room.bottom + slack)
                say(`${place.dataset.live}, ${e.tagName} ${e.classList}: ${Math.round(b.width)} × `
                    + `${Math.round(b.height)} sticks out`, e);
        }
    }
    for (const place of slide.querySelectorAll('[data-playground]')) {
        for (let n = 0; n < 900 && !place.live?.lanes.every(lane => lane.shares); n++) await frame();
        for (let n = 0; n < 3; n++) await frame();
        for (const e of place.querySelectorAll('.pg-bar > *, .pg-guess, .pg-lane, .pg-lane *')) {
            const b = e.getBoundingClientRect(), lane = e.parentElement.closest('.pg-lane');
            const room = (lane ?? place.parentElement).getBoundingClientRect(), slack = 2 * scale;
            if (b.width && (b.left < room.left - slack || b.right > room.right + slack
                || b.top < room.top - slack || b.bottom > room.bottom + slack))
                say(`lanes, ${e.tagName} ${e.getAttribute('class')}: ${Math.round(b.width)} × `
                    + `${Math.round(b.height)} sticks out`, e);
        }
    }
}"""
# Of every slide: pictures before a click; then, with all fragments, what sticks out, small type, pictures
# without words, formulas not set.
LOOK = (
    """async () => {
    const explorers = """
    + EXPLORERS
    + """;
    await document.fonts.ready;
    const wrong = [], slides = Reveal.getSlides();
    for (const [n, slide] of slides.entries()) {
        const say = (what, e) => wrong.push(
            `slide ${n + 1}: ${what}: ${(e.alt ?? e.textContent).trim().slice(0, 60)}`);
        Reveal.slide(n, 0, -1);
        for (const e of slide.querySelectorAll('.body > figure img')) {
            const b = e.getBoundingClientRect();  // most of its type has 14 points
            const share = 2 * Math.min(b.width / e.naturalWidth, b.height / e.naturalHeight);
            if (share < 0.6) say('small type in', e);
        }
        await explorers(slide, say);
        const later = [...slide.querySelectorAll('.fragment')];
        later.forEach(f => f.classList.add('visible'));
        if (later.length) await explorers(slide, say);
        const heading = slide.querySelector('h1, h2').getBoundingClientRect();
        const kinds = ['p', 'li', 'tr', 'pre', 'figure', 'img', 'svg', 'canvas', 'table', 'button',
                       'input', '.live', '.pg',
                       '.MathJax'];
        for (const e of slide.querySelectorAll(kinds.map(e => `.body ${e}`).join())) {
            if (e.closest('.MathJax_Preview, .MJX_Assistive_MathML, .live :not(svg), .pg *')) continue;
            if (e.matches('.told, .vote svg') && !e.hasChildNodes()) continue;
            const b = e.getBoundingClientRect();
            if (b.width === 0 || b.height === 0) say('nothing to see', e);
            else if (b.top < heading.bottom - 1 || b.bottom > 690 || b.left < 30 || b.right > 1250)
                say('sticks out', e);
            if (e.scrollWidth > e.clientWidth + 1 && e.tagName === 'PRE') say('is cut off', e);
        }
        const votes = slide.querySelector('.vote input');
        for (const typed of votes ? ['1 2 2 2 2 9', ''] : []) {
            votes.value = typed;
            votes.dispatchEvent(new Event('input'));
            const dots = slide.querySelector('.vote svg').getBoundingClientRect();
            if (dots.bottom > 690) say('dots stick out', slide);
        }
        const text = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
        while (text.nextNode()) {
            const e = text.currentNode.parentElement;
            const elsewhere = e.closest('.notes, .MathJax, .MJX_Assistive_MathML, script, .lv-sign');
            if (!text.currentNode.textContent.trim() || elsewhere) continue;
            const drawn = e.closest('svg')?.getScreenCTM()?.a ?? e.currentCSSZoom ?? 1;
            const inside = e.closest('[data-live], [data-playground]');
            const least = e.closest('sub, sup, .lv-index') ? 14 : inside ? 16 : 22;
            if (parseFloat(getComputedStyle(e).fontSize) * drawn < least) say('small type', e);
            if (/\\$/.test(text.currentNode.textContent) && !e.closest('pre')) say('a formula is not set', e);
        }
        for (const e of slide.querySelectorAll('.MathJax .math'))
            if (parseFloat(getComputedStyle(e).fontSize) < 18) say('a small formula', e);
        for (const e of slide.querySelectorAll('.merror, .noError')) say('a formula fails', e);
        for (const e of slide.querySelectorAll('img')) {
            const told = e.alt.split(' ').length >= 5 || e.alt.length >= 20;
            if (!e.complete || !e.naturalWidth || !told) say('a picture', e);
            if (e.getBoundingClientRect().height < 250) say('a small picture', e);
        }
    }
    return [slides.length, wrong];
}"""
)


# On an older projector all is smaller by one factor, except what measures its place.
OLDER = (
    """async () => {
    const explorers = """
    + EXPLORERS
    + """, wrong = [];
    for (const [n, slide] of Reveal.getSlides().entries()) {
        if (!slide.querySelector('[data-live], [data-playground]')) continue;
        Reveal.slide(n, 0, 99);
        await explorers(slide, (what, e) => wrong.push(`slide ${n + 1} at 1024: ${what}: ${e.textContent}`));
    }
    return wrong;
}"""
)


def look(shown):
    """How many slides a deck shows, after its boxes were measured on two projectors: nothing sticks out."""
    count, wrong = shown.page.evaluate(LOOK)
    shown.page.set_viewport_size({"width": 1024, "height": 768})
    wrong += shown.page.evaluate(OLDER)
    shown.page.set_viewport_size({"width": 1280, "height": 720})
    assert not wrong, "\n".join(wrong)
    return count


@every_deck
def test_every_slide_fits_and_can_be_read_in_each_language(site, abroad, browser, tmp_path, number):
    """In one pass, because a browser is slow: boxes, sizes of type, pictures, and what axe sees."""
    plan = deck(number)
    shown = Shown(browser, site[1], f"{number}.html")
    assert look(shown) == len(plan.slides)
    kinds = [{block.kind for blocks in slide.blocks for block in blocks} for slide in plan.slides]
    votes = [n for n, slide in enumerate(plan.slides) if slide.vote]
    for found in (
        votes,
        *([n for n, each in enumerate(kinds) if kind in each] for kind in ("picture", "code")),
    ):
        if found:
            shown.page.evaluate("n => Reveal.slide(n)", found[0])
            seen = Axe().run(shown.page, context={"include": [["section.present"]]}).response
            assert not [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in seen["violations"]]
    assert not shown.problems
    shown.context.close()
    for language in (each for each in translation.languages() if number in slides.spoken(each)):
        slides.build(number, abroad / language, language, translated(number, language, tmp_path))
        shown = Shown(browser, site[1], f"{language}/{number}.html")
        shown.page.evaluate("() => document.fonts.load('32px Course', '中')")
        assert shown.page.evaluate("() => document.fonts.check('32px Course', '中')")
        assert look(shown) == len(plan.slides)
        assert shown.page.evaluate("() => document.documentElement.lang") == web_name(language)
        text = shown.page.evaluate("() => document.querySelector('.slides').textContent")
        english = {each for slide in plan.slides for each in (slide.section, slide.ask, slide.expect)}
        assert not [each for each in english if len(each) > 12 and each in text]
        assert not shown.problems
        shown.context.close()


def test_a_vote_is_counted_on_its_slide_and_shown_beside_the_answer(site, browser):
    """By letter and click; numbers on a line; a curve under the mouse. Another class begins with 0."""
    plan = deck("06")
    at = {slide.vote: n for n, slide in enumerate(plan.slides) if slide.vote}
    shown = Shown(browser, site[1], f"06.html#/{at['06.layout']}")
    page = shown.page
    for key in ("c", "c", "Shift+C", "c", "a"):
        page.keyboard.press(key)
    buttons = page.locator(".present [data-vote] button")
    buttons.nth(1).click()
    assert [each.inner_text() for each in page.locator(".present output").all()] == ["1", "1", "2", "0"]
    assert page.url.endswith(f"/{at['06.layout']}"), "a letter of the vote is no key of the show"
    page.reload()
    page.wait_for_function("() => window.Reveal && Reveal.isReady()")
    assert page.locator(".present output").nth(2).inner_text() == "2"
    page.keyboard.press("0")
    assert not page.locator(".present output").nth(2).inner_text()

    page.evaluate("n => Reveal.slide(n)", at["06.pairs"])
    page.locator(".present input").fill("8 8 25,5 so 30")
    assert page.locator(".present [data-vote] circle").count() == 4
    assert not shown.problems
    shown.context.close()

    at = {slide.vote: n for n, slide in enumerate(deck("07").slides) if slide.vote}
    shown = Shown(browser, site[1], f"07.html#/{at['07.own']}")
    page = shown.page
    page.keyboard.press("c")
    right = list(questions.find("predict", "07.own")["choices"]).index(told_in("07", "07.own"))
    told = page.locator("ol.told[data-vote='07.own'] li")
    assert [each.get_attribute("class") for each in told.all()] == [
        "right" if n == right else None for n in range(3)
    ]
    assert told.locator("output").all_text_contents() == ["0", "0", "1"]
    page.evaluate("n => Reveal.slide(n)", at["07.tail"])
    sheet = page.locator(".present [data-vote] svg").bounding_box()
    page.mouse.move(sheet["x"] + 130, sheet["y"] + 100)
    page.mouse.down()
    page.mouse.move(sheet["x"] + 1100, sheet["y"] + 200, steps=40)
    page.mouse.up()
    drawn = page.locator(".present [data-vote] path.drawn").get_attribute("d")
    assert drawn.count("L") == 4
    page.evaluate("n => Reveal.slide(n)", at["07.tail"] + 1)
    assert page.locator(".present path.drawn").get_attribute("d") == drawn
    (left, *_rest), *_points = measured = re.findall(
        r"([\d.]+) ([\d.]+)", page.locator(".present path.measured").get_attribute("d")
    )
    assert left == "120" and len({height for _x, height in measured}) == 1, "ALiBi's loss is flat"
    assert not shown.problems
    shown.context.close()


def test_lanes_learn_on_a_slide_that_is_opened_from_a_file(site, browser):
    """Keys and fingers there leave the slide where it is; what is pointed at is explained in the lane."""
    quoted = "Attention maps, and bars by length."
    place = next(n for n, slide in enumerate(deck("06").slides) if quoted in slide.show)
    shown = Shown(browser, site[0].as_uri(), f"06.html#/{place}")
    page, here = shown.page, shown.page.url
    lanes = page.locator(".present .pg")
    finger = shown.context.new_cdp_session(page)
    for kind, xs in (("touchStart", [900]), ("touchMove", [600]), ("touchMove", [300]), ("touchEnd", [])):
        points = [{"x": x, "y": 660} for x in xs]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    lanes.evaluate("pg => pg.live.set(pg.live.settings.replace('pace=50', 'pace=0'))")
    page.wait_for_function(
        "() => document.querySelector('.present .pg').live.lanes.every(lane => lane.shares)"
    )
    lanes.get_by_role("slider").first.press("ArrowRight")
    lanes.get_by_role("button", name="Start").press("Space")
    page.wait_for_function("() => document.querySelector('.present .pg').live.lanes.every(lane => lane.done)")
    page.get_by_text("You said 51 %.").wait_for()
    lanes.locator(".pg-maps").first.press("ArrowUp")
    inside = lanes.locator(".pg-inside").first
    inside.get_by_text("pair 5").wait_for()
    wrong = page.evaluate(
        """async () => {
        const explorers = """
        + EXPLORERS
        + """, wrong = [], slide = document.querySelector('.present');
        await explorers(slide, (what, e) => wrong.push(`${what}: ${e.textContent}`));
        for (const e of slide.querySelectorAll('.pg text'))
            if (parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a < 16) wrong.push(e.textContent);
        return wrong;
    }"""
    )
    assert not wrong and not shown.problems and page.url == here
    shown.context.close()


DIALS = [
    (number, n, slide["dials"])
    for number in NUMBERS
    for n, slide in enumerate(tomllib.loads((slides.PLANS / f"{number}.toml").read_text("utf-8"))["slide"], 1)
    if "dials" in slide
]


@pytest.mark.parametrize("number, n, dials", DIALS)
def test_an_explorer_begins_where_the_plan_says(site, browser, number, n, dials):
    shown = Shown(browser, site[1], f"{number}.html")
    shown.page.evaluate(f"Reveal.slide({n - 1})")
    shown.page.wait_for_function("() => document.querySelector('.present [data-live]')?.live?.still")
    params, handles = shown.page.evaluate("""() => {
        const place = document.querySelector('.present [data-live]');
        return [place.live.params, Object.fromEntries([...place.querySelectorAll('[role=slider]')]
            .map(each => [each.dataset.key, +each.ariaValueNow]))];
    }""")
    assert (handles | params).items() >= dials.items() and not shown.problems
    shown.context.close()


# ---- another language ----
def translated(number, language, folder):
    """A notebook in another language with its English outputs, their words replaced where they are known."""
    path = authoring.find(number)
    says = translation.speakers(language)
    notebook = translation.translate(path.stem, says)
    known = translation.looked_up(language)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = re.sub(
                    ">([^<>]+)<",
                    lambda text: f">{known.get(html.unescape(text[1]), text[1])}<",
                    output.data["text/html"],
                )
    nbformat.write(notebook, folder / path.name)
    return folder / path.name


@pytest.fixture(scope="session")
def abroad(site, tmp_path_factory):
    """The folder of all decks, with one for each language: what decks need beside them is said in it."""
    catalogs = tmp_path_factory.mktemp("catalogs")
    for language in translation.languages():
        translation.compile_texts(translation.looked_up(language), catalogs / language)
        with speaking(language, catalogs):
            slides.write_static(site[0] / language / "_static", language)
    return site[0]


OTHERS = [(number, language) for language in translation.languages() for number in slides.spoken(language)]


@pytest.mark.parametrize("language", translation.languages())
def test_every_quote_stands_in_its_translated_notebook(tmp_path, language):
    for number in slides.spoken(language):
        path = tmp_path / authoring.find(number).name
        nbformat.write(translation.translate(path.stem, translation.speakers(language)), path)
        assert slides.Deck(number, language, path).slides, number


@pytest.mark.parametrize("number, language", OTHERS[:1])
def test_a_quote_must_stand_in_the_translated_notebook(tmp_path, monkeypatch, number, language):
    path = translated(number, language, tmp_path)
    plan = slides.Deck(number, language, path)
    assert [len(slide.blocks[0]) for slide in plan.slides] == [len(s.blocks[0]) for s in deck(number).slides]
    own = {word for slide in deck(number).slides for word in slide.words()}
    text = next(text for text, _, note in deck(number).messages() if not note and text not in own)
    known = translation.known
    monkeypatch.setattr(
        translation,
        "known",
        lambda name, language: (
            known(name, language) | ({text: "别的话。"} if name == f"slides_{number}" else {})
        ),
    )
    with pytest.raises(ValueError, match="'别的话。' is not a part of"):
        slides.Deck(number, language, path)


def test_own_words_keep_their_numbers_in_translation(tmp_path):
    say = pieces.Say({"Pair 25 stops first": "第 26 对先停", "Pair 7 goes on": "第 7 对继续"})
    there = slides.Translated(deck("06").notebook, translated("06", "zh", tmp_path), say, pieces.Say())
    assert there.words("Pair 7 goes on") == "第 7 对继续"
    with pytest.raises(ValueError, match="'第 26 对先停' has other numbers than 'Pair 25 stops first'"):
        there.words("Pair 25 stops first")


@pytest.mark.parametrize("said, found", [("别的话。", False), ("我们要找两个做法", True)])
def test_a_headline_must_stand_in_the_translated_notebook(tmp_path, monkeypatch, said, found):
    path, known = translated("06", "zh", tmp_path), translation.known
    monkeypatch.setattr(
        translation, "known", lambda *which: known(*which) | {"we look for two recipes": said}
    )
    if not found:
        with pytest.raises(ValueError, match="'别的话。' stands nowhere in"):
            slides.Deck("06", "zh", path)
        return
    heads = [{slide.head for slide in each.slides} for each in (deck("06"), slides.Deck("06", "zh", path))]
    assert said in heads[1] and heads[0] & heads[1] == {""}


def test_a_claim_has_its_verdict_in_a_word_and_what_was_measured_beside_it():
    rows = "".join(f"<tr><td>{n}</td><td>◐ half true: not alone</td><td>Why.</td></tr>" for n in "ab")
    block = slides.Block("html", 0, (slides.Part("", rows),), "<tr><th>Claim</th></tr>")
    shown = re.sub("<[^>]+>", "|", slides._html(block, [["0.83", "both"], ["1.00", "a table"]]))
    assert [re.findall(r"[^| ][^|]*", row) for row in shown.split("Claim")[1].split("Why.")] == [
        ["a", "◐", "half true"],
        ["0.83", "both", "b", "◐", "half true"],
        ["1.00", "a table"],
    ]


def test_a_drawing_in_another_language_keeps_its_roles():
    drawing = {"rows": [{"name": "moved:q", "words": "cat:q sat", "under": "0 1"}], "into": "$q$:q"}
    theirs = {"moved": "挪动", "cat sat": "猫 坐"}
    assert drawings.said(drawing, theirs.__getitem__) == {
        "rows": [{"name": "挪动:q", "words": "猫:q 坐", "under": "0 1"}],
        "into": "$q$:q",
    }
    with pytest.raises(ValueError, match="'猫坐' should have 2 words"):
        drawings.said(drawing, {**theirs, "cat sat": "猫坐"}.__getitem__)


def test_a_notebook_that_was_not_run_in_the_language_is_named(tmp_path):
    path = tmp_path / authoring.find("00").name
    with pytest.raises(ValueError, match="is not there in this language"):
        slides.Deck("00", OTHERS[0][1], path)
    notebook = translation.translate(path.stem, translation.speakers(OTHERS[0][1]))
    for cell in notebook.cells:
        cell.update({"outputs": []} if cell.cell_type == "code" else {})
    nbformat.write(notebook, path)
    with pytest.raises(ValueError, match="has not been run"):
        slides.Deck("00", OTHERS[0][1], path)


def test_explorers_and_lanes_on_slides_speak_the_language_of_the_deck(tmp_path, monkeypatch):
    translation.compile_texts({"slopes ×": "⟦slopes⟧", "query i": "⟦query⟧"}, tmp_path / "zz")
    monkeypatch.setenv("TUTORIAL_LOCALE", str(tmp_path))
    slides.write_static(tmp_path / "_static", "zz")
    for file, words in (("playground.js", "⟦slopes⟧"), ("live-alibi.js", "⟦query⟧")):
        assert words in (tmp_path / "_static" / file).read_text(encoding="utf-8")


def test_the_speaker_view_shows_notes_and_slides(site, browser):
    shown = Shown(browser, site[1], "06.html#/5")
    with shown.page.expect_popup() as opening:
        shown.page.keyboard.press("s")
    speaker = opening.value
    notes = speaker.locator(".speaker-controls-notes .value")
    plan = deck("06")
    for n in (5, 6):
        notes.get_by_text(plan.slides[n].ask).wait_for()
        said = notes.inner_text()
        assert plan.slides[n].expect in said and f"0:{plan.slides[n].clock:02}" in said
        current = speaker.frame_locator("#current-slide iframe")
        current.locator("section.present h2", has_text=plan.slides[n].section).wait_for()
        shown.page.keyboard.press("ArrowRight")
    assert not shown.problems
    shown.context.close()


def test_a_deck_prints_one_page_for_each_slide(site, browser, tmp_path):
    shown = Shown(browser, site[1], "04.html?print-pdf")
    shown.page.wait_for_selector(".pdf-page")
    assert shown.page.locator(".pdf-page").count() == len(deck("04").slides)
    assert not shown.page.locator(".pg").count(), "lanes have learned nothing: their picture is printed"
    printed = shown.page.pdf(prefer_css_page_size=True, print_background=True)
    Path(tmp_path, "deck.pdf").write_bytes(printed)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == len(deck("04").slides)
    shown.context.close()


def test_the_watch_is_not_blind(site, browser):
    """A deck that is broken on purpose: each kind of fault is seen."""
    page = (site[0] / "06.html").read_text(encoding="utf-8")
    faults = (
        '<p style="font-size:12px">small</p>'
        + "<p>more</p>" * 30
        + "<p>$\\frac$</p>"
        + '<img src="http://example.org/x.png" alt="">'
    )
    broken = page.replace("<p>Both have the same speeds.</p>", faults, 1)
    assert broken != page
    (site[0] / "broken.html").write_text(broken, encoding="utf-8")
    shown = Shown(browser, site[1], "broken.html")
    _, wrong = shown.page.evaluate(LOOK)
    found = "\n".join(wrong + shown.problems)
    for sign in (
        "sticks out",
        "small type",
        "a picture",
        "a small picture",
        "outside: http://example.org",
        "a formula fails",
    ):
        assert sign in found
    shown.context.close()
