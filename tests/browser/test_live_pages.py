"""Live explorers in a page from the disk, in Chromium: by mouse, touch and keys, and two at once."""

import math
import struct
from base64 import b64decode

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe

from tutorial_lib.explorers import RotaryExplorer, live
from workshop import front, pictures

ALL = live.everyone()
every_explorer = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.front)
QUIET = {"preload": False, "resultTypes": ["violations"]}
FOCUSED = ".live :is(button, select, summary, input:checked, input[type=range], [tabindex='0'])"


def params(page, number=0):
    return page.evaluate("n => document.querySelectorAll('[data-live]')[n].live.params", number)


def rest(page, number=0):
    """Wait until nothing moves any more."""
    page.wait_for_function("n => document.querySelectorAll('.live')[n].live.still", arg=number, polling=30)


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_page_that_is_used_again_is_as_new(kept):
    options = {"viewport": {"width": 500, "height": 400}}
    page = kept.take(options)
    page.set_content("<p>What a test left.</p>")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    kept.leave(page, options)
    assert kept.take(options) is page
    assert page.evaluate("""() => [location.href, innerWidth, innerHeight, document.body.children.length,
        matchMedia('(prefers-color-scheme: dark)').matches, matchMedia('(prefers-reduced-motion)').matches]
        """) == ["about:blank", 500, 400, 0, False, False]
    assert kept.take(options) is not page, "two at once are two"


# ---- every explorer ----
@every_explorer
def test_it_says_what_python_says_and_axe_finds_nothing(kind, visit):
    page = visit(kind.front)
    assert page.locator(".lv-more p").text_content() == front.seen(kind).description
    assert page.locator(".lv-verdict").inner_text() == f"Challenge: {kind.challenge} Not reached yet."
    assert page.locator(".lv-result").text_content() == front.seen(kind).result
    assert page.locator(".lv-result:visible, .lv-lesson:visible, .lv-versus:visible").count() == 1
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):  # colours alone differ
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, context={"include": [[".live"]]}, options=QUIET | rules)
        found = found.response["violations"]
        assert not found, [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found]


@every_explorer
def test_what_the_challenge_asks_for_is_seen_without_scrolling(kind, visit):
    page = visit(kind.front, folded=True)
    box = page.locator(".lv-verdict").bounding_box()
    assert box["y"] + box["height"] < 720
    for width in (390, 700, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        rest(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        small = page.evaluate("""() => [...document.querySelectorAll('.live svg text')].filter(text => {
            const box = text.getBoundingClientRect(), own = text.closest('.live').getBoundingClientRect();
            return box.width && (box.left < own.left || box.right > own.right + 1);
        }).map(text => text.textContent)""")
        assert not small, f"{small} is cut off at {width} pixels"


@every_explorer
def test_on_a_phone_two_rows_of_controls_stand_before_the_picture(kind, visit):
    page = visit(kind.front, folded=True, viewport={"width": 390, "height": 844})
    boxes = page.evaluate("""() => [...document.querySelectorAll(
        '.lv-bar :is(.lv-play, .lv-key, .lv-tool, .lv-row label, .lv-menu :is(select, input), summary)')]
        .filter(node => node.checkVisibility({ contentVisibilityAuto: true }))
        .map(node => node.getBoundingClientRect().toJSON())""")
    rows = []
    for box in sorted(boxes, key=lambda box: box["top"]):
        if not rows or box["top"] > rows[-1]:
            rows.append(box["bottom"] - 1)
        assert box["height"] >= 28 and box["width"] >= 28, box
    assert 1 <= len(rows) <= 2
    words, reset = page.locator(".lv-more summary"), page.get_by_role("button", name="Reset")
    assert abs(middle(words.bounding_box())[1] - middle(reset.bounding_box())[1]) < 3, "in one row"
    page.set_viewport_size({"width": 1280, "height": 720})
    page.wait_for_function("() => document.querySelector('.lv-bar > .lv-tools')")


@every_explorer
def test_keys_reach_every_control_and_move_every_slider(kind, visit):
    page = visit(kind.front)
    sliders = page.locator(".live [role=slider]")
    for n in range(sliders.count()):
        slider = sliders.nth(n)
        name = slider.get_attribute("data-key")
        keys = (
            ("End", lambda old, most: most),
            ("PageDown", lambda old, most: max(0, old - 10)),
            ("Home", lambda old, most: 0),
            ("ArrowRight", lambda old, most: 1),
        )
        for key, value in keys[:: 2 if n else 1]:  # of one explorer, all sliders listen by the same lines
            old, most = int(slider.get_attribute("aria-valuenow")), int(slider.get_attribute("aria-valuemax"))
            slider.press(key)
            rest(page)
            assert int(slider.get_attribute("aria-valuenow")) == value(old, most), (name, key)
            assert page.evaluate("() => document.activeElement.dataset.key") == name
        assert slider.get_attribute("aria-label") and slider.get_attribute("aria-valuetext")
    wanted = page.locator(FOCUSED)
    page.evaluate("() => document.activeElement.blur()")
    seen = set()
    for _ in range(wanted.count() + 3):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "all => [...document.querySelectorAll(all)].indexOf(document.activeElement)", FOCUSED
            )
        )
    assert set(range(wanted.count())) <= seen


@every_explorer
def test_every_choice_can_be_made_and_is_what_python_says(kind, visit):
    page = visit(kind.front)
    for box in page.locator(".lv-bar select").all():
        box.select_option(index=box.locator("option").count() - 1)
    for row in page.locator(".lv-bar .lv-row").all():
        row.locator("input").last.focus()
        row.locator("input").last.press("Space")
    rest(page)
    assert page.locator(".lv-more p").text_content() == front.seen(kind, **params(page)).description
    assert params(page) != kind.settings()
    page.get_by_role("button", name="Reset").click()
    rest(page)
    assert params(page) == kind.settings()


@every_explorer
def test_play_moves_and_pauses_and_reduced_motion_takes_whole_steps(kind, visit):
    for motion in ("no-preference", "reduce"):
        page = visit(kind.front, reduced_motion=motion)
        for button in page.locator(".lv-play").all():
            button.click()
            assert button.get_attribute("aria-pressed") == "true"
            page.wait_for_function("""() => {
                const now = JSON.stringify(document.querySelector('.live').live.params);
                return now !== (window.before ??= now); }""")
            page.evaluate("() => { delete window.before; }")
            button.click()
            assert button.get_attribute("aria-pressed") == "false"
            rest(page)


@every_explorer
def test_without_a_script_the_picture_stays(kind, visit):
    page = visit(kind.front, java_script_enabled=False)
    assert page.locator("[data-live] img").get_attribute("alt").startswith("The picture")


@every_explorer
def test_a_line_of_python_and_a_link_show_the_same_again(kind, visit):
    page = visit(kind.front, permissions=["clipboard-read", "clipboard-write"])
    every = page.locator(".live [role=slider]").all()  # some are no parameters
    sliders = [slider for slider in every if slider.get_attribute("data-key") in kind.parameters] or every
    sliders[-1].press("ArrowLeft" if int(sliders[-1].get_attribute("aria-valuenow")) else "ArrowRight")
    rest(page)
    now = params(page)
    assert now != kind.settings()
    page.get_by_role("button", name="Copy a line of Python").click()
    line = page.evaluate("() => navigator.clipboard.readText()")
    assert kind.settings(**eval(line, {kind.__name__: dict})) == now and line.startswith(f"{kind.__name__}(")
    page.get_by_role("button", name="Copy a link").click()
    page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('live=')")
    link = page.evaluate("() => navigator.clipboard.readText()")
    assert params(visit(kind.front, f"?{link.partition('?')[2]}")) == now


def test_a_stored_picture_is_taken_from_the_explorer_itself(chromium):
    """With its words; settings and the line of Python stay."""
    data, metadata = RotaryExplorer(m=30)._repr_mimebundle_()
    output = nbformat.v4.new_output("execute_result", data, metadata={"live": metadata["live"]})
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])])
    assert pictures.renew(notebook) == 1
    (new,) = notebook.cells[0].outputs
    png = b64decode(new.data["image/png"])
    assert struct.unpack(">I", png[16:20]) == (pictures.WIDTH * pictures.SHARP,)
    assert new.metadata == {"live": {"name": "rotary", "params": RotaryExplorer.settings(m=30)}}
    assert new.data["text/plain"] == data["text/plain"] == "RotaryExplorer(m=30)"
    first, figure = new.data["text/html"].splitlines()
    assert first == data["text/html"].splitlines()[0] and new.data["image/png"] in figure
    assert f'<img alt="{front.seen(RotaryExplorer, m=30).alt}"' in figure


# ---- RoPE ----
def test_an_arrow_is_dragged_by_a_known_angle(visit):
    """A quarter turn of q in pair 1 is π/2/θ positions; the axis of the dial is its middle."""
    page = visit("rotary")
    dot = page.locator(".live circle[r='4.5']").bounding_box()
    spot = page.locator(".lv-hand[data-drag=m] circle").last.bounding_box()
    (cx, cy), (x, y) = middle(dot), middle(spot)
    reach, angle, theta = math.hypot(x - cx, y - cy), math.atan2(cy - y, x - cx), 1000 ** (-1 / 4)
    page.mouse.move(x, y)
    page.mouse.down()
    for part in range(1, 11):
        a = angle + math.pi / 2 * part / 10
        page.mouse.move(cx + reach * math.cos(a), cy - reach * math.sin(a))
    page.mouse.up()
    rest(page)
    assert params(page)["m"] == round(20 + math.pi / 2 / theta)
    page.keyboard.press("ArrowLeft")  # the keys go on where the mouse was
    rest(page)
    assert params(page)["m"] == round(20 + math.pi / 2 / theta) - 1


def test_the_challenge_is_won_by_mouse(visit):
    page = visit("rotary")
    for name, to in (("m", 33), ("n", 25)):
        grip = page.locator(f".lv-grip[data-key={name}]")
        x, y = middle(grip.bounding_box())
        step = page.evaluate(
            """name => { const rail = document.querySelector(`g[data-drag=${name}] line`);
            return rail.getBoundingClientRect().width; }""",
            name,
        )
        step /= RotaryExplorer.parameters[name].size - 1
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + step * (to - params(page)[name]), y, steps=4)
        page.mouse.up()
    rest(page)
    assert params(page) == RotaryExplorer.settings(m=33, n=25)
    page.wait_for_function("() => document.querySelector('.lv-verdict').matches('.lv-reached')")
    said = page.locator(".lv-verdict").inner_text()
    assert said.endswith(f"✔ Reached: {front.seen(RotaryExplorer, **params(page)).reached}")


def test_a_finger_drags_and_the_page_scrolls_elsewhere(visit):
    page = visit("rotary", has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    touch = page.context.new_cdp_session(page)
    grip = page.locator(".lv-grip[data-key=m]")
    grip.scroll_into_view_if_needed()
    x, y = middle(grip.bounding_box())

    def finger(kind, *points):
        places = [{"x": a, "y": b} for a, b in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    finger("touchStart", (x, y))
    for part in range(1, 6):
        finger("touchMove", (x - 12 * part, y))
    finger("touchEnd")
    rest(page)
    assert params(page)["m"] < 18


def test_a_pair_is_chosen_by_click_and_keys_and_keeps_the_focus_when_it_is_rebuilt(visit):
    page = visit("rotary")
    clocks = page.get_by_role("radio", name="pair ")
    clocks.nth(3).click()
    rest(page)
    assert params(page)["pair"] == 3 and clocks.nth(3).get_attribute("aria-checked") == "true"
    clocks.nth(3).focus()
    for key, pair in (("ArrowRight", 0), ("ArrowLeft", 3), ("ArrowLeft", 2), ("Home", 0), ("End", 3)):
        page.keyboard.press(key)
        rest(page)
        assert params(page)["pair"] == pair
        assert page.evaluate("() => document.activeElement.dataset.key") == f"pair{pair}"


def test_a_value_is_read_under_the_mouse(visit):
    page = visit("rotary")
    area = page.locator("rect[style*=col-resize]").bounding_box()
    page.mouse.move(area["x"] + 8, area["y"] + 20)
    score = f"{front.seen(RotaryExplorer, n=0).views['beside'][1][0]:.4f}".replace("-", "−")
    assert page.locator(".lv-tip").inner_text().startswith(f"n = 0: q·k {score}")
    page.mouse.move(2, 2)
    page.locator(".lv-tip").wait_for(state="hidden")


@pytest.mark.parametrize(("motion", "glides"), [("reduce", False), ("no-preference", True)])
def test_motion_is_smooth_unless_the_reader_wants_none(visit, motion, glides):
    page = visit("rotary", reduced_motion=motion)
    before = int(page.locator(".live").get_attribute("data-frame"))
    page.locator(".lv-grip[data-key=m]").press("End")
    rest(page)
    frames = int(page.locator(".live").get_attribute("data-frame")) - before
    assert frames > 3 if glides else frames == 1


def test_the_wheel_turns_only_what_has_the_focus(visit):
    page = visit("rotary")
    grip = page.locator(".lv-grip[data-key=m]")
    page.mouse.move(*middle(grip.bounding_box()))
    page.mouse.wheel(0, 100)
    rest(page)
    assert params(page)["m"] == 20
    page.evaluate("() => scrollTo(0, 0)")
    grip.focus()
    page.mouse.move(*middle(grip.bounding_box()))
    page.mouse.wheel(0, -100)
    page.wait_for_function("() => document.querySelector('[data-live]').live.params.m === 21")


def test_two_on_a_page_share_nothing(visit):
    page = visit("two", "?live=rotary-2&m=7&n=99&layout=half&base=nonsense")
    assert params(page, 0) == RotaryExplorer.settings()
    assert params(page, 1) == RotaryExplorer.settings(m=7, n=32, layout="half")
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(node => node.id)")
    names = page.evaluate(
        "() => [...document.querySelectorAll('.live')].map(root => "
        "root.querySelector('input[type=radio]').name)"
    )
    assert len(ids) == len(set(ids)) > 1 and len(set(names)) == 2
    page.locator(".lv-grip[data-key=m]").nth(1).press("Home")
    rest(page, 1)
    assert params(page, 0)["m"] == 20 and params(page, 1)["m"] == 0


def test_high_contrast_keeps_shapes_and_marks_the_choice(visit):
    page = visit("rotary", forced_colors="active")
    assert page.locator(".lv-hand").count() == 2
    colours = page.evaluate("""() => ['input:checked + span', 'input:not(:checked) + span'].map(which =>
        getComputedStyle(document.querySelector(`.lv-row ${which}`)).backgroundColor)""")
    assert colours[0] != colours[1]


@every_explorer
def test_a_hidden_explorer_draws_when_it_is_seen(visit, hands, kind):
    page = visit(kind.front)
    name, value = next(
        (name, parameter.allowed(kind.settings())[-1]) for name, parameter in kind.parameters.items()
    )
    page.evaluate("() => document.querySelector('[data-live]').style.display = 'none'")
    page.evaluate("some => document.querySelector('[data-live]').live.set(some)", {name: value})
    page.wait_for_timeout(300)  # time to do harm: `visit` fails for what the console says
    page.evaluate("() => document.querySelector('[data-live]').style.display = ''")
    hands.rest(page)
    assert page.locator(".lv-more p").text_content() == front.seen(kind, **hands.params(page)).description
    widths = page.locator(".live svg").evaluate_all("all => all.map(one => one.clientWidth)")
    assert max(widths) > 100
