"""Positions in a page: the model's positions are switched off, and it reads on."""

from tutorial_lib.explorers import PositionsExplorer
from tutorial_lib.explorers.positions import record
from workshop import front


def numbers(page):
    """What stands beside the bars of the guesses."""
    return [
        text
        for text in page.locator(".lv-stage svg").last.locator("text").all_text_contents()
        if text[:2] == "0." and len(text.split(" ")[0]) == 5
    ]


def test_switched_off_shows_what_is_left_and_what_was(visit, hands):
    page = visit("positions")
    assert numbers(page)[0] == "0.979"
    page.get_by_label("switched off", exact=True).check()
    hands.rest(page)
    assert hands.params(page) == PositionsExplorer.settings(positions="switched off")
    assert numbers(page)[0].split() == ["0.050", "(was", "0.979)"]


def test_a_click_on_a_word_reads_up_to_it_and_the_challenge_can_be_met(visit, hands):
    page = visit("positions")
    page.get_by_label("switched off", exact=True).check()
    page.locator(".lv-stage svg").first.get_by_text("chased", exact=True).click(force=True)
    hands.rest(page)
    assert hands.params(page)["word"] == 2
    evidence = front.seen(PositionsExplorer, **hands.params(page)).reached
    assert page.locator(".lv-verdict.lv-reached").inner_text().endswith(f"✔ Reached: {evidence}")
    page.keyboard.press("ArrowLeft")
    hands.rest(page)
    assert hands.params(page)["word"] == 1


def test_the_other_story_has_its_own_words(visit, hands):
    page = visit("positions")
    page.get_by_label("dog → cat", exact=True).check()
    hands.rest(page)
    comes, on, _ = record()["dog → cat"][-1][2]
    assert comes == "dog" and numbers(page)[0] == f"{on:.3f}"
