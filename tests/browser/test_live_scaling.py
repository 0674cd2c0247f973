"""The live explorer of scaled RoPE: both handles, the hand of the dial, the methods, and the challenge."""

import math

from tutorial_lib.explorers import ScalingExplorer
from workshop import front


def middle(box):
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def pulled(page, hands, name, to):
    """Drag the grip of a factor up or down to the value ``to``: the axis is logarithmic, 32 at its top."""
    rail = page.evaluate(
        """name => {
        const grip = document.querySelector(`.lv-grip[data-key=${name}]`).getBoundingClientRect();
        const lines = [...document.querySelectorAll('.live svg line[stroke-width="4"]')];
        const box = lines.map(line => line.getBoundingClientRect()).sort((a, b) =>
            Math.abs(a.x - grip.x) - Math.abs(b.x - grip.x))[0];
        return [grip.x + grip.width / 2, grip.y + grip.height / 2, box.height]; }""",
        name,
    )
    x, y, height = rail
    now = hands.params(page)[name]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - height * math.log2(to / now) / 5, steps=5)
    page.mouse.up()
    hands.rest(page)


def test_the_challenge_is_won_by_mouse(visit, hands):
    page = visit("scaling")
    page.get_by_role("radio", name="YaRN").click()
    for name, to in (("times", 12), ("s", 16)):
        pulled(page, hands, name, to)
    assert hands.params(page) == ScalingExplorer.settings(method="YaRN", times=12, s=16)
    page.wait_for_function("() => document.querySelector('.lv-verdict').matches('.lv-reached')")
    assert page.get_by_text("No pair reaches an angle never seen").is_visible()


def test_the_pictures_count_what_python_counts(visit, hands):
    """The number above the dials, and the number of each method, at any length."""
    page = visit("scaling", "?live=scaling&times=8")
    words = {
        each.get_attribute("aria-label").split(":")[0]: each.locator("text").last.text_content()
        for each in page.locator("[data-key^=method]").all()
    }
    for method, said in words.items():
        text = front.seen(ScalingExplorer, method=method, times=8).description
        count = int(text.split("training, and ")[1].split()[0])
        assert said == (f"{count} new" if count else "✓ none new"), method
    assert page.get_by_text("12 of 32 pairs reach angles never seen").count() == 1
    assert set(words) == set(ScalingExplorer.parameters["method"].values)


def test_the_hand_of_the_dial_takes_the_text_along(visit, hands):
    """As far back as pair 22 turns in L positions, half a turn: a text of 3 L in place of 4 L."""
    page = visit("scaling")
    dot = middle(page.locator(".live circle[r='4.5']").bounding_box())
    x, y = middle(page.locator(".lv-hand[data-drag=times] circle").last.bounding_box())
    reach, angle = math.hypot(x - dot[0], y - dot[1]), math.atan2(dot[1] - y, x - dot[0])
    back = 8192 * 100_000 ** (-22 / 32)  # L less
    page.mouse.move(x, y)
    page.mouse.down()
    for part in range(1, 13):
        a = angle - back * part / 12
        page.mouse.move(dot[0] + reach * math.cos(a), dot[1] - reach * math.sin(a))
    page.mouse.up()
    hands.rest(page)
    assert hands.params(page)["times"] == 3
    page.keyboard.press("ArrowRight")
    hands.rest(page)
    assert hands.params(page)["times"] == 4


def test_a_pair_is_chosen_in_the_chart_and_among_the_dials(visit, hands):
    page = visit("scaling")
    dots = page.locator(".live svg circle[cx][stroke][r='4']")
    assert dots.count() == 31
    area = page.locator("rect[style*='cursor:pointer']").bounding_box()
    page.mouse.click(area["x"] + area["width"] * 8.5 / 32, area["y"] + 40)
    hands.rest(page)
    assert hands.params(page)["pair"] == 8
    page.mouse.move(area["x"] + area["width"] * 31.5 / 32, area["y"] + 50)
    wave = 2 * math.pi * 100_000 ** (31 / 32)
    assert page.locator(".lv-tip").inner_text().startswith(f"Pair 31: a turn in {wave:,.1f} positions")
    page.locator("[data-key=pair20]").click()
    hands.rest(page)
    assert hands.params(page)["pair"] == 20
