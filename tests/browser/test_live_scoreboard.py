"""The live scoreboard: sorted by its heads, filtered, two encodings dragged and compared."""

from course.experiments.scoreboard import shown
from tutorial_lib.explorers import ScoreboardExplorer as Explorer
from tutorial_lib.explorers.scoreboard import TITLES, filtered, rows, scores
from workshop import front

NAMES = "() => [...document.querySelectorAll('.lv-board tbody th')].map(head => head.lastChild.textContent)"


def marked(page):
    """The names of the blue and the orange encoding, as the table shows them."""
    return tuple(page.locator(f".lv-board tr.lv-{one} th > span").last.text_content() for one in "ab")


def test_heads_sort_and_who_is_marked_stays_marked(visit, hands):
    page = visit("scoreboard")
    was = marked(page)
    assert was == ("alibi", "rotary")
    for column, words in TITLES.items():
        page.get_by_role("button", name=words, exact=True).click()
        hands.rest(page)
        params = hands.params(page)
        assert params["sort"] == column and page.evaluate(NAMES) == list(filtered(params))
        assert marked(page) == was
        assert page.evaluate("() => document.activeElement.textContent") == words
    page.get_by_label("door").select_option("rotate")
    hands.rest(page)
    left = filtered(hands.params(page))
    assert page.evaluate(NAMES) == list(left) and len(left) < len(rows())
    blue = page.locator(".lv-board tr.lv-a th > span").last.text_content()
    assert was[0] not in left and blue == left[0]


def test_a_handle_goes_to_the_encoding_under_the_pointer(visit, hands):
    page = visit("scoreboard", "?live=scoreboard&longer=tested")
    order = filtered(hands.params(page))
    column = page.locator(".lv-board svg > circle[style*=cursor]")
    per, at = len(order), list(TITLES).index("tail")
    spots = [column.nth(at * per + n).bounding_box() for n in range(per)]
    middles = sorted((box["y"] + box["height"] / 2) for box in spots)
    grip = page.locator(".lv-grip[data-key=other]")
    worst = order.index("sinusoidal")
    now = grip.bounding_box()
    hands.pull(page, grip, 0, middles[worst] - now["y"] - now["height"] / 2)
    assert marked(page) == ("alibi", "sinusoidal")
    assert not page.locator(".lv-verdict").evaluate("said => said.matches('.lv-reached')")
    page.keyboard.press("ArrowRight")
    hands.rest(page)
    assert marked(page)[1] == order[worst + 1]
    for name, key in (("other", "cope"), ("row", "kerple")):
        page.locator(f".lv-pin[data-key={name}{order.index(key)}]").click()
    hands.rest(page)
    page.wait_for_function("() => document.querySelector('.lv-verdict').matches('.lv-reached')")


def test_rows_and_pins_choose_and_the_two_are_compared(visit, hands):
    page = visit("scoreboard")
    page.locator(".lv-board tbody tr").nth(3).locator("td").first.click()
    page.locator(".lv-board tbody tr").nth(2).get_by_role("radio").last.click()
    hands.rest(page)
    assert (hands.params(page)["row"], hands.params(page)["other"]) == (3, 2)
    order = filtered(hands.params(page))
    z = front.seen(Explorer).views["board"]
    both = [(a, b) for a, b in zip(z[3], z[2], strict=True) if a == a and b == b]
    said = page.locator(".lv-versus b").all_text_contents()
    assert said == [
        f"{order[3]} is better in {sum(a > b for a, b in both)}",
        f"equal in {sum(a == b for a, b in both)} of {len(both)} columns",
        f"{order[2]} is better in {sum(a < b for a, b in both)}",
    ]


def test_what_was_not_measured_is_never_a_value(visit, hands):
    for scheme in ("light", "dark"):
        page = visit("scoreboard", color_scheme=scheme)
        cells = page.evaluate("""() => [...document.querySelectorAll('.lv-board tbody td')].map(cell =>
            [cell.textContent, cell.getAttribute('aria-label')])""")
        missing = ["tail" not in rows()[name] for name in filtered(Explorer.settings())]
        assert [label == "not measured" for _, label in cells] == missing
        assert [text == "" for text, _ in cells] == missing and any(missing)
        hatched = page.locator(".lv-none").first.evaluate("cell => getComputedStyle(cell).backgroundImage")
        assert "repeating" in hatched


def test_all_rows_and_all_columns_are_seen_at_once(visit):
    page = visit("scoreboard", folded=True)
    boxes = [one.bounding_box() for one in page.locator(".lv-names tr").all()]
    assert len(boxes) == len(rows()) and max(box["y"] + box["height"] for box in boxes) < 720
    board = page.locator(".lv-board")
    assert board.evaluate("box => box.scrollHeight <= box.clientHeight + 1")
    heads = page.locator(".lv-board thead th").all_text_contents()
    assert heads == list(TITLES.values())


def test_both_numbers_stand_in_each_column_and_a_link_in_the_colour_of_the_better(visit):
    page = visit("scoreboard")
    alibi, rotary = (rows()[name] for name in ("alibi", "rotary"))
    texts = page.locator(".lv-board svg text").all_text_contents()
    for row in (alibi, rotary):
        for key in TITLES:
            assert shown(key, row.get(key)).replace("-", "−") in texts
    links = page.locator(".lv-board path[stroke-width='5']").evaluate_all(
        "all => all.map(path => [path.getTotalLength() > 1, path.getAttribute('stroke')])"
    )
    better = [scores(key)["alibi"] - scores(key)["rotary"] for key in TITLES]
    assert [seen for seen, _ in links] == [bool(gap) for gap in better]
    assert [colour for seen, colour in links if seen] == [
        "var(--q)" if gap > 0 else "var(--k)" for gap in better if gap
    ]


def test_nothing_left_is_said_and_can_be_undone(visit, hands):
    page = visit("scoreboard", "?live=scoreboard&door=values&shift=absolute")
    assert page.get_by_text("No encoding is left: loosen a filter.").is_visible()
    page.get_by_label("shift error").select_option("any")
    hands.rest(page)
    assert page.evaluate(NAMES) == ["shaw"]
    assert page.locator(".lv-board tr.lv-a").count() == 1


def test_three_stand_at_their_numbers_and_are_dragged(visit, hands):
    """The best at the top of each column, by name; nothing else is drawn there."""
    page = visit("scoreboard", "?live=scoreboard&which=three")
    short = {"alibi": "ALiBi", "t5": "T5", "rotary": "RoPE"}
    words = page.locator(".lv-board svg text[translate=no]").all_text_contents()
    columns = ["time", "loss", "tail", "won"]
    assert words == [
        f"{short[name]}\u2002{shown(key, rows()[name][key])}".replace("-", "−")
        for name in filtered(hands.params(page) | {"sort": "tail"})
        for key in columns
    ]
    heights = page.evaluate("""() => [...document.querySelectorAll('.lv-board svg circle[style]')].map(dot =>
        +dot.getAttribute('cy'))""")
    names = filtered(hands.params(page))
    for c, key in enumerate(columns):
        up = dict(zip(names, [-y for y in heights[c::4]], strict=True))
        sign = 1 if key == "won" else -1
        assert sorted(names, key=up.get) == sorted(names, key=lambda name: sign * rows()[name][key]), key
    first, last = (page.locator(f".lv-grip[data-key={key}]") for key in ("row", "other"))
    hands.pull(page, first, 0, last.bounding_box()["y"] - first.bounding_box()["y"])
    assert hands.params(page)["row"] == hands.params(page)["other"] == names.index("rotary")
