"""The crowd in a page: number and lead are dragged by known amounts, and the areas are the weights."""

import pytest

from tutorial_lib.explorers import CrowdExplorer
from tutorial_lib.explorers.crowd import KEYS, QUERIES
from workshop import front


@pytest.fixture
def page(visit):
    return visit("crowd")


def middle(thing):
    box = thing.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def chart(page):
    return page.get_by_role("group", name="What the right key keeps, over")


def score(page, text):
    """The height of a number on the axis of the scores."""
    axis = page.get_by_role("group", name="The lead of the right key")
    return middle(axis.get_by_text(text, exact=True))[1]


def octave(page):
    """The pixels from one number of keys to the next."""
    ends = [middle(chart(page).get_by_text(text, exact=True))[0] for text in ("16", "8,192")]
    return (ends[1] - ends[0]) / 9


def grab(page, name):
    return page.locator(f".lv-grip[data-key={name}]")


def areas(page):
    """The heights of the right key's area and of the others'."""
    return page.evaluate("""() => {
        const box = document.querySelector('.lv-stage rect[fill="none"][stroke="var(--soft)"]');
        const same = [...document.querySelectorAll('.lv-stage rect')].filter(each =>
            each !== box && each.getAttribute('x') === box.getAttribute('x'));
        return Object.fromEntries(same.map(each =>
            [each.getAttribute('fill'), each.getAttribute('height') / box.getAttribute('height')])); }""")


def test_the_number_of_keys_is_dragged_along_the_axis(page, hands):
    hands.pull(page, grab(page, "keys"), 5 * octave(page), 0)
    assert hands.params(page) == CrowdExplorer.settings(keys=64 * 2**5)
    page.keyboard.press("ArrowLeft")  # the keys go on where the mouse was
    hands.rest(page)
    assert hands.params(page)["keys"] == 1024
    hands.pull(page, grab(page, "keys"), 900, 0)
    assert hands.params(page)["keys"] == KEYS[-1]


def test_the_lead_is_dragged_along_the_scores(page, hands):
    step = (score(page, "0") - score(page, "10")) / 10
    hands.pull(page, grab(page, "lead"), 0, -4 * step)
    assert hands.params(page) == CrowdExplorer.settings(lead=6.75)
    page.keyboard.press("PageDown")
    hands.rest(page)
    assert hands.params(page)["lead"] == 4.25


@pytest.mark.parametrize("query", ["as trained", "Scalable-Softmax"])
def test_the_areas_are_the_weights_and_all_cells_are_alike(page, hands, query):
    page.get_by_role("radio", name=query).check(force=True)
    for _ in range(3):
        hands.rest(page)
        params = hands.params(page)
        right, others = front.seen(CrowdExplorer, **params).views["weights"][QUERIES.index(query)].tolist()
        seen = areas(page)
        assert seen["var(--k)"] == pytest.approx(right, abs=1e-3)
        assert seen["var(--soft)"] == pytest.approx(others, abs=1e-3)
        gaps = page.locator(".lv-stage path[stroke='var(--paper)']").first.get_attribute("d")
        rows, columns = gaps.count("h"), gaps.count("v")  # each row has one cell more than lines
        assert columns + rows + 1 == params["keys"] - 1
        grab(page, "keys").press("ArrowLeft")


def test_a_click_in_the_chart_moves_the_number_and_a_value_is_read_there(page, hands):
    area = page.locator(".lv-stage rect[style*=col-resize]").bounding_box()
    at = middle(chart(page).get_by_text("1,024", exact=True))[0]
    page.mouse.move(at, area["y"] + 60)
    kept = front.seen(CrowdExplorer).views["shares"][1:, KEYS.index(1024)]
    assert page.locator(".lv-tip").inner_text() == "1,024 keys: " + ", ".join(
        f"{query} {share:.3g}" for query, share in zip(QUERIES, kept, strict=True)
    )
    page.mouse.click(at, area["y"] + 60)
    hands.rest(page)
    assert hands.params(page)["keys"] == 1024


def test_the_challenge_is_won_by_mouse(page, hands):
    step = (score(page, "0") - score(page, "10")) / 10
    hands.pull(page, grab(page, "keys"), 900, 0)
    hands.pull(page, grab(page, "lead"), 0, -9.5 * step)
    assert "Not reached" in page.locator(".lv-verdict").inner_text()  # 12.25: a smaller one will do
    page.keyboard.press("ArrowDown")
    hands.rest(page)
    assert hands.params(page) == CrowdExplorer.settings(keys=131_072, lead=12)
    said = page.locator(".lv-verdict.lv-reached").inner_text()
    assert said.endswith(f"✔ Reached: {front.seen(CrowdExplorer, **hands.params(page)).reached}")


def test_where_it_falls_below_half_is_said_in_the_picture(page, hands):
    lesson = page.locator(".lv-lesson")
    assert lesson.inner_text().startswith("As trained: from 17 keys on the right key has less than half")
    grab(page, "lead").press("ArrowRight")
    page.get_by_role("radio", name="Scalable-Softmax").check(force=True)
    hands.rest(page)
    assert lesson.inner_text() == "Scalable-Softmax: up to 131,072 keys the right key keeps at least half."
