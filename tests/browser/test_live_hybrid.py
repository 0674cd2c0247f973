"""The mixing desk by hand: faders, the query, and weights that stand still."""

import pytest

from tutorial_lib.explorers import HybridExplorer


@pytest.fixture
def page(visit):
    return visit("hybrid")


def bars(page):
    """Heights of the weights: of each key without the chosen term, and with it."""
    return page.locator(".live svg rect[rx='2'][fill^='var(--mix']").evaluate_all(
        "all => all.map(bar => +bar.getAttribute('height'))")


def turn_up(page, hands, name, by):
    """Drag the fader of a term by steps of volume."""
    rail = page.locator(f"g[data-drag={name}] line").first.bounding_box()["width"] / 4
    hands.pull(page, page.locator(f".lv-grip[data-key={name}] circle").nth(2), by * rail, 0)


def test_a_fader_is_dragged_and_scores_move_but_no_weight(page, hands):
    before = bars(page)
    turn_up(page, hands, "query", 3)
    assert hands.params(page) == HybridExplorer.settings(query=4)
    assert bars(page) == pytest.approx(before, abs=1e-9)
    text = page.locator(".lv-stage svg").first.text_content()
    assert "moves scores by 2.76 to 6.15," in text and "and not a single weight" in text
    logit = HybridExplorer.scene(query=4).views["logits"].array()[1, 2]
    assert f"{logit:.2f}" in text


def test_a_term_that_differs_from_key_to_key_moves_the_weights(page, hands):
    page.locator(".live svg text", has_text="r_ij").first.click()
    turn_up(page, hands, "relative", 2)
    assert hands.params(page) == HybridExplorer.settings(relative=3, without="relative")
    full, rest = bars(page)[1::2], bars(page)[::2]
    change = HybridExplorer.scene(relative=3, without="relative").views["change"].array()[1]
    unit = sum(full)
    assert [(a - b) / unit for a, b in zip(full, rest, strict=True)] == pytest.approx(list(change), abs=1e-3)


def test_another_query_is_chosen_in_the_squares(page, hands):
    grip = page.locator(".lv-grip[data-key=row]")
    grip.press("End")
    hands.rest(page)
    e = HybridExplorer.scene().views["logits"].array()
    shown = page.locator(".lv-stage svg").first.text_content()
    assert "sum: the score e_3j" in shown and all(f"{v:.2f}".replace("-", "−") in shown for v in e[3])
    assert hands.params(page) == HybridExplorer.settings()  # Python knows nothing of it


def test_the_challenge_is_won_by_mouse(page, hands):
    turn_up(page, hands, "query", 1)
    evidence = HybridExplorer.reached(**hands.params(page))
    assert page.locator(".lv-verdict.lv-reached").inner_text().endswith(f"✔ Reached: {evidence}") and evidence
