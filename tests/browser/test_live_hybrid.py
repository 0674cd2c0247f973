"""The laboratory of scores by hand: what is typed, what is guessed, and the query that is dragged."""

import pytest
import torch

from tutorial_lib.explorers import HybridExplorer, hybrid
from workshop import front

X = torch.tensor(hybrid.X)
R = torch.tensor(hybrid.W_R)[torch.arange(4) - torch.arange(4)[:, None] + 3]


@pytest.fixture
def page(visit):
    return visit("hybrid")


def field(page):
    return page.locator(".lv-typed input")


def shown(page):
    return page.locator(".lv-stage svg").first.text_content()


def test_a_typed_score_is_worked_out_and_a_guess_uncovers_it(page, hands):
    field(page).fill("x_i·x_j + w*p_i + r_ij")
    hands.rest(page)
    assert hands.params(page) == HybridExplorer.settings(score="x_i·x_j + w*p_i + r_ij")
    assert "w·p_i" in shown(page) and "gone" not in shown(page)
    assert shown(page).count("does a weight change?") == 3
    page.locator("[data-key=yes1]").click()
    hands.rest(page)
    assert "gone: the same forall keysno weight changes✘ you said yes" in shown(page)
    page.locator("[data-key=yes2]").click()
    hands.rest(page)
    assert "counts,by the offset aloneweights change by ≤ 0.19✔ as you said" in shown(page)
    page.get_by_role("radio", name="show at once").check()
    hands.rest(page)
    assert shown(page).count("does a weight change?") == 0 and "pair by pair" in shown(page)


def test_indices_are_set_and_stay_in_the_text(page):
    term = page.get_by_role("radio", name="weights without x_i·x_j").locator("text")
    assert term.text_content() == "x_i·x_j"
    parts = term.locator("tspan").evaluate_all(
        "all => all.map(part => [part.textContent, parseFloat(getComputedStyle(part).fontSize)])"
    )
    whole = term.evaluate("text => parseFloat(getComputedStyle(text).fontSize)")
    assert [text for text, _ in parts] == ["_", "i", "·x", "_", "j"]
    assert [size / whole for _, size in parts] == pytest.approx([0, 0.8, 1, 0, 0.8])
    assert page.locator(".lv-key sub").all_text_contents() == ["i", "j", "i", "j", "ij"]
    assert field(page).input_value() == "x_i·x_j + r_ij"


def test_what_is_no_score_is_refused_and_the_last_one_stays(page, hands):
    before = shown(page)
    field(page).fill("x_i·x_j + p_i + r_ij")
    hands.rest(page)
    said = page.locator(".lv-says")
    assert said.inner_text().endswith("as in w·p_i.") and "lv-not" in said.get_attribute("class")
    assert page.locator(".lv-more p").text_content().endswith(said.inner_text())
    assert shown(page) == before
    assert float(page.locator(".lv-stage svg").first.get_attribute("opacity")) < 1
    field(page).press("End")
    assert page.evaluate("() => document.activeElement.value") == "x_i·x_j + p_i + r_ij", "still in the field"


def test_buttons_write_where_the_caret_is(page, hands):
    field(page).fill("")
    for name in ("relu( )", "w", "·", "[ ; ]", "p_i"):
        page.locator(".lv-key", has_text=name).filter(has_not_text=f"{name}_").first.click()
    hands.rest(page)
    assert hands.params(page)["score"] == "relu(w·[p_i;])"
    page.keyboard.press("ArrowRight")
    page.keyboard.type("r_ij")
    hands.rest(page)
    assert hands.params(page)["score"] == "relu(w·[p_i;r_ij])" and "relu(w·[p_i;r_ij])" in shown(page)


def test_another_query_is_dragged_and_its_weights_follow(page, hands):
    page.locator(".lv-grip[data-key=query]").press("End")
    hands.rest(page)
    weights = (X @ X.T + R)[3].softmax(-1).tolist()
    assert "weights of “dog”" in shown(page) and all(f"{weight:.2f}" in shown(page) for weight in weights)
    assert hands.params(page) == HybridExplorer.settings(query=3)


def test_pale_bars_are_the_weights_without_the_chosen_term(page, hands):
    page.get_by_role("radio", name="show at once").check()
    page.get_by_role("radio", name="weights without x_i·x_j").click()
    hands.rest(page)
    heights = page.locator(".live svg rect[rx='2'][fill='var(--mix2)']").evaluate_all(
        "all => all.map(bar => +bar.getAttribute('height'))"
    )
    weights = R[1].softmax(-1).tolist()
    assert [height / sum(heights) for height in heights] == pytest.approx(weights, abs=1e-3)


def test_the_challenge_is_won_by_keys(page, hands):
    field(page).fill("w p_j")
    hands.rest(page)
    evidence = front.seen(HybridExplorer, **hands.params(page)).reached
    assert page.locator(".lv-verdict.lv-reached").inner_text().endswith(f"✔ Reached: {evidence}") and evidence
