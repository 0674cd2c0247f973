"""The ribbon of offsets by hand: rows, values, the length."""

import pytest

from tutorial_lib.explorers import RelativeBiasExplorer
from workshop import front


@pytest.fixture
def page(visit):
    return visit("relative", "?live=relative&method=full table&tokens=4")


def cell(page):
    return page.locator(".live canvas").bounding_box()["width"] / 4


def said(page):
    return [text.text_content() for text in page.locator(".live svg text[font-size='22']").all()]


def test_the_rows_and_columns_are_dragged(page, hands):
    side = cell(page)
    hands.pull(page, page.locator(".lv-grip[data-key=i] circle").last, 0, 2 * side)
    hands.pull(page, page.locator(".lv-grip[data-key=j] circle").last, -2 * side, 0)
    assert hands.params(page) == RelativeBiasExplorer.settings(method="full table", tokens=4, i=3, j=0)
    assert said(page) == ["= −1.00"]


def test_a_click_into_the_matrix_chooses_the_pair(page, hands):
    box = page.locator(".live canvas").bounding_box()
    page.mouse.click(box["x"] + 3.5 * cell(page), box["y"] + 2.5 * cell(page))
    hands.rest(page)
    now = hands.params(page)
    assert (now["i"], now["j"]) == (2, 3)


def test_the_window_over_the_ribbon_is_the_row(page, hands):
    """Row i reads the offsets −i … N − 1 − i: the ribbon stands over the columns that read it."""
    for i in (0, 3):
        page.locator(".lv-grip[data-key=i]").press("Home" if i == 0 else "End")
        hands.rest(page)
        left = page.locator(".live canvas").bounding_box()["x"]
        zero = page.locator(".lv-ribbon > text", has_text="0").last.bounding_box()
        assert abs(zero["x"] + zero["width"] / 2 - (left + (i + 0.5) * cell(page))) < 2


def test_a_value_is_dragged_and_its_whole_diagonal_follows(page, hands):
    hands.pull(page, page.locator(".lv-grip[data-key=value] circle").last, 0, -200)
    assert said(page) == ["= 1.00"]
    shown = [text.text_content() for text in page.locator(".live svg text").all()]
    assert shown.count("1.00") == 2 + 4  # offsets 1 and 3 on the ribbon, and their pairs
    assert "future 1.00 to 1.00" in page.locator(".lv-more p").text_content()
    page.keyboard.press("ArrowDown")
    hands.rest(page)
    assert said(page) == ["= 0.95"]
    page.get_by_role("button", name="Reset").click()
    hands.rest(page)
    assert said(page) == ["= 0.33"]


@pytest.mark.parametrize("sign", ["j − i", "i − j"])
def test_a_shape_is_drawn_over_the_ribbon_by_one_sweep(visit, hands, sign):
    page = visit("relative", f"?live=relative&method=full table&tokens=4&i=0&j=3&sign={sign}")
    area, side = page.locator("rect[style*=crosshair]").bounding_box(), cell(page)
    left = page.locator(".live canvas").bounding_box()["x"]
    page.mouse.move(left + 1.5 * side, area["y"] + 2)
    page.mouse.down()
    page.mouse.move(left + 3.5 * side, area["y"] + 2)  # so quick that offset 2 is skipped
    page.mouse.up()
    hands.rest(page)
    words = page.locator(".lv-more p").text_content()
    past = "-1.00 to -0.33" if sign == "j − i" else "1.00 to 0.33"  # the other half stays as it was
    assert said(page) == ["= 1.00"] and f"past get {past}, those of the future 1.00 to 1.00" in words
    texts = page.locator(".lv-ribbon > text").all_text_contents()
    assert texts.count("1.00") == (3 if sign == "j − i" else 4)


def test_offsets_of_one_bucket_share_what_is_dragged(visit, hands):
    page = visit("relative", "?live=relative&method=clipped&tokens=16&size=4&i=8&j=0")
    hands.pull(page, page.locator(".lv-grip[data-key=value] circle").last, 0, 200)
    page.keyboard.press("End")
    hands.rest(page)
    assert said(page) == ["= 1.00"]
    assert "past get 1.00 to -0.25" in page.locator(".lv-more p").text_content()


def test_the_bars_say_where_the_query_looks_and_choose_the_key(page, hands):
    bars = page.locator(".live svg rect[style*='pan-y']").last.bounding_box()
    page.mouse.click(bars["x"] + bars["width"] * 2.5 / 4, bars["y"] + 20)
    hands.rest(page)
    now = hands.params(page)
    assert now["j"] == 2
    weights = front.seen(RelativeBiasExplorer, **now).views["beside"][1]
    assert f"{weights[2]:.2f}" in page.locator(".live svg text").all_text_contents()
    # more bias, more attention
    hands.pull(page, page.locator(".lv-grip[data-key=value] circle").last, 0, -200)
    assert f"{weights[2]:.2f}" not in page.locator(".live svg text").all_text_contents()


def test_the_length_is_chosen_on_its_axis(visit, hands):
    page = visit("relative", "?live=relative&method=full table&tokens=4&view=memory")
    area = page.locator("rect[style*=col-resize]").bounding_box()
    page.mouse.click(area["x"] + 8 + (area["width"] - 16) * 5 / 14, area["y"] + 30)
    hands.rest(page)
    assert hands.params(page)["tokens"] == 128


def test_the_challenge_is_won_by_mouse(visit, hands):
    page = visit("relative")
    page.get_by_role("radio", name="clipped").press("Space")
    page.get_by_label("tokens N").select_option("128")
    page.get_by_role("group", name="k, or").get_by_role("radio").last.press("Space")
    hands.rest(page)
    evidence = front.seen(RelativeBiasExplorer, **hands.params(page)).reached
    assert page.locator(".lv-verdict.lv-reached").inner_text().endswith(f"✔ Reached: {evidence}")
