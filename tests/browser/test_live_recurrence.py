"""The memory that travels with the text, by hand."""

import pytest

from tutorial_lib.explorers import RecurrenceExplorer
from workshop import front


@pytest.fixture
def page(visit):
    return visit("recurrence")


def columns(page):
    """Where the 24 positions stand, in pixels of the page."""
    return page.evaluate("""() => [...document.querySelectorAll('.lv-stage circle[cx]')].slice(0, 24)
        .map(dot => { const box = dot.getBoundingClientRect(); return box.x + box.width / 2; })""")


def grab(page, name):
    return page.locator(f".lv-grip[data-key={name}] circle").nth(2)


def filled(page, colour):
    return page.locator(f".lv-stage circle[cx][fill='var(--{colour})'][stroke='var(--paper)']").count()


def test_the_token_is_dragged_to_the_end(page, hands):
    at = columns(page)
    hands.pull(page, grab(page, "query"), at[23] - at[14], 0)
    assert hands.params(page) == RecurrenceExplorer.settings(query=23)
    states = front.seen(RecurrenceExplorer, query=23).views["states"]
    assert filled(page, "k") == (states == 2).sum() and filled(page, "q") == (states == 3).sum()


@pytest.mark.parametrize(("places", "memory"), [(4, 8), (-2, 2), (-3, 1), (-4, 0)])
def test_the_edge_of_the_memory_is_dragged(page, hands, places, memory):
    at = columns(page)
    hands.pull(page, grab(page, "memory"), (at[0] - at[1]) * places, 0)
    assert hands.params(page) == RecurrenceExplorer.settings(memory=memory)
    assert filled(page, "k") == 2 * memory


def test_a_memory_longer_than_the_text_before_it_can_be_dragged_too(page, hands):
    at = columns(page)
    hands.pull(page, grab(page, "memory"), at[0] - at[13], 0, steps=8)
    assert hands.params(page)["memory"] == 16


def test_a_click_anywhere_moves_the_token(page, hands):
    area = page.locator(".lv-stage rect[style*=col-resize]").bounding_box()
    page.mouse.click(columns(page)[9], area["y"] + 40)
    hands.rest(page)
    assert hands.params(page)["query"] == 9


def test_a_state_says_whose_it_is(page):
    area = page.locator(".lv-stage rect[style*=col-resize]").bounding_box()
    at, dots = columns(page), page.locator(".lv-stage circle[cx]")
    y = dots.first.bounding_box()["y"] + dots.first.bounding_box()["height"] / 2
    assert area["y"] < y
    said = {2: "not reached", 5: "older memories", 9: "no gradient", 13: "with gradients"}
    for column, words in said.items():
        page.mouse.move(at[column], y)
        assert words in page.locator(".lv-tip").inner_text()


def test_the_challenge_is_won_by_mouse(page, hands):
    page.get_by_role("group", name="segment").get_by_role("radio").last.press("Space")
    page.get_by_label("layers").select_option("3")
    hands.rest(page)
    at = columns(page)
    hands.pull(page, grab(page, "query"), at[23] - at[14], 0)
    hands.pull(page, grab(page, "memory"), 3 * (at[1] - at[0]), 0)
    assert hands.params(page) == RecurrenceExplorer.settings(segment=8, memory=1, layers=3, query=23)
    evidence = front.seen(RecurrenceExplorer, **hands.params(page)).reached
    assert page.locator(".lv-verdict.lv-reached").inner_text().endswith(f"✔ Reached: {evidence}")
