"""Words that are dragged to other places: by mouse, by keys, and in the small form of the landing page."""

import itertools

import pytest

from tutorial_lib.explorers import PermutationExplorer
from tutorial_lib.explorers.permutation import ORDERS, WORDS, outputs
from workshop import front

SIGNS = """() => [...document.querySelectorAll('.live svg text')].map(text => text.textContent)
    .filter(text => /changed|the same/.test(text))"""


def carry(page, hands, word, onto):
    """Drag a word to where another one stands."""
    boxes = [page.locator(f".lv-grip[data-key={name}]").bounding_box() for name in (word, onto)]
    hands.pull(page, page.locator(f".lv-grip[data-key={word}]"), boxes[1]["x"] - boxes[0]["x"], 0)


def test_words_are_dragged_and_the_challenge_is_won_by_mouse(visit, hands):
    page = visit("permutation")
    carry(page, hands, "dog", "cat")
    assert hands.params(page)["order"] == "chases cat dog"
    for label in ("causal", "2"):
        page.get_by_label(label, exact=True).check()
    hands.rest(page)
    assert hands.params(page) == PermutationExplorer.settings(order="chases cat dog", mask="causal", layers=2)
    said = page.locator(".lv-verdict.lv-reached").inner_text()
    assert said.endswith(f"✔ Reached: {front.seen(PermutationExplorer, **hands.params(page)).reached}")
    carry(page, hands, "chases", "cat")
    assert hands.params(page)["order"] == "cat chases dog" and page.evaluate(SIGNS) == []


def test_a_word_keeps_the_focus_on_its_way(visit, hands):
    page = visit("permutation")
    page.locator(".lv-grip[data-key=cat]").focus()
    moves = {"ArrowLeft": "dog cat chases", "Home": "cat dog chases", "End": "dog chases cat"}
    for key, order in moves.items():
        page.keyboard.press(key)
        hands.rest(page)
        assert hands.params(page)["order"] == order
        assert page.evaluate("() => document.activeElement.dataset.key") == "cat"


@pytest.mark.parametrize(
    ("position", "mask", "layers"), itertools.product(("none", "sinusoids"), ("none", "causal"), (1, 2))
)
def test_it_marks_what_has_changed(visit, hands, position, mask, layers):
    """The picture argues with what each word can know; Python compares the vectors."""
    model = {"position": position, "mask": mask, "layers": layers}
    page = visit("permutation", f"?live=permutation&position={position}&mask={mask}&layers={layers}")
    for order in ORDERS[1:]:
        page.evaluate("order => document.querySelector('.live').live.set({ order })", order)
        hands.rest(page)
        now, before = outputs(order, **model), outputs(ORDERS[0], **model)
        change = {name: now[name] - before[name] for name in WORDS}
        change["mean"] = sum(change.values()) / len(WORDS)
        assert page.evaluate(SIGNS) == [
            "≠ changed" if change[name].abs().max() > 1e-9 else "= the same" for name in (*WORDS, "mean")
        ], order


def test_the_small_form_is_low_and_has_words_to_drag(visit, hands, folder):
    page_ = (folder / "permutation.html").read_text(encoding="utf-8")
    small = page_.replace('data-params="{}"', 'data-params="{}" data-small="toy"')
    assert small != page_
    (folder / "toy.html").write_text(small, encoding="utf-8")
    for width, most in ((1280, 240), (390, 300)):
        page = visit("toy", viewport={"width": width, "height": 720})
        assert page.locator(".live").bounding_box()["height"] < most
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".lv-lesson").inner_text().endswith("who chases whom?")
        carry(page, hands, "cat", "dog")
        assert hands.params(page)["order"] == "cat dog chases"
        page.get_by_label("sinusoids", exact=True).check()
        hands.rest(page)
        assert page.locator(".lv-lesson").inner_text().endswith("now the order shows.")
        assert page.get_by_role("button", name="Reset").count() == 0
