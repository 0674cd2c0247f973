"""Attention in a page: vectors are dragged, another word asks, scores grow."""

from tutorial_lib.explorers import AttentionExplorer
from workshop import front


def tip(page, word):
    box = page.locator(f".lv-hand[data-drag={word}_x] circle").last.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def carry(page, hands, word, dx, dy):
    """Drag the tip of a word's vector by parts of the distance between “the” and “cat”."""
    x, y = tip(page, word)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=5)
    page.mouse.up()
    hands.rest(page)


def test_a_vector_goes_where_the_pointer_goes_in_both_coordinates(visit, hands):
    page = visit("attention")
    (x0, y0), (x1, y1) = tip(page, "the"), tip(page, "cat")
    unit = (x1 - x0) / 1.3  # CSS pixels; “cat” stands 1.3 to the right of “the”, and 0.6 below
    assert abs((y1 - y0) / unit - 0.6) < 0.02
    carry(page, hands, "cat", -2 * unit, -1.5 * unit)
    assert hands.params(page) == AttentionExplorer.settings(cat_x=15, cat_y=30)
    said = front.seen(AttentionExplorer, cat_x=15, cat_y=30).description
    assert page.locator(".lv-more p").text_content() == said
    page.keyboard.press("ArrowRight")  # the keys go on with x
    hands.rest(page)
    assert hands.params(page) == AttentionExplorer.settings(cat_x=16, cat_y=30)
    carry(page, hands, "cat", 900, 0)
    assert hands.params(page) == AttentionExplorer.settings(cat_x=40, cat_y=30)


def test_the_challenge_is_won_with_three_equal_vectors(visit, hands):
    page = visit("attention")
    for word in ("the", "sleeps"):
        (x, y), (to_x, to_y) = tip(page, word), tip(page, "cat")
        carry(page, hands, word, to_x - x, to_y - y)
    assert hands.params(page) == AttentionExplorer.settings(the_x=35, the_y=15, sleeps_x=35, sleeps_y=15)
    said = page.locator(".lv-verdict.lv-reached").inner_text()
    assert said.endswith("✔ Reached: all nine weights are 0.33.")


def test_another_word_asks_by_click_and_by_key(visit, hands):
    page = visit("attention")
    rows = page.get_by_role("radio", name="asks")
    rows.nth(0).click()
    hands.rest(page)
    assert hands.params(page)["row"] == 0 and page.get_by_text("“the” looks at", exact=True).is_visible()
    rows.nth(0).press("ArrowDown")
    hands.rest(page)
    assert hands.params(page)["row"] == 1 and rows.nth(1).get_attribute("aria-checked") == "true"


def test_no_weight_changes_when_the_words_change_places(visit, hands):
    page = visit("attention")
    cells = """() => [...document.querySelectorAll('.live [role=radiogroup] text')]
        .map(text => text.textContent).filter(text => /^0\\.\\d\\d$/.test(text))"""
    before = page.evaluate(cells)
    page.get_by_label("sleeps cat the", exact=True).check()
    hands.rest(page)
    assert hands.params(page)["order"] == "sleeps cat the"
    assert len(before) == 9 and page.evaluate(cells) == before


def test_the_rail_sets_how_sharp_it_looks(visit, hands):
    page = visit("attention")
    handle = page.locator(".lv-grip[data-key=sharpness]")
    hands.pull(page, handle, 500, 0)
    assert hands.params(page)["sharpness"] == 8
    handle.press("ArrowLeft")
    hands.rest(page)
    assert hands.params(page)["sharpness"] == 4 and handle.get_attribute("aria-valuetext") == "4"
