"""ALiBi in a page: the slope is dragged, words are chosen in the text, the challenge is won by mouse."""

from tutorial_lib.explorers import ALiBiExplorer
from workshop import front


def middle(thing):
    box = thing.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_the_line_goes_through_the_pointer(visit, hands):
    """The pointer at distance 32 and bias −2 means a slope of 1/16: head 3 of 8."""
    page = visit("alibi")
    plot = page.get_by_role("group", name="The bias of one query")
    (i, _), (j, _) = (middle(page.locator(f".lv-grip[data-key={name}]")) for name in ("query", "key"))
    zero, low = (middle(plot.get_by_text(text, exact=True))[1] for text in ("0", "−6"))
    x, y = middle(handle := page.locator(".lv-grip[data-key=head]"))
    to = i - 32 * (i - j) / (48 - 31), zero + 2 * (low - zero) / 6
    hands.pull(page, handle, to[0] - x, to[1] - y)
    assert hands.params(page)["head"] == 3
    hands.pull(page, handle, 0, -500)  # at the top all heads are steeper
    assert hands.params(page)["head"] == 7


def test_words_of_the_text_are_query_and_key(visit, hands):
    page = visit("alibi")
    words = page.get_by_role("group", name="A text").locator("text")
    (x, y), (there, line), (third, _) = (middle(words.nth(n)) for n in (48, 40, 2))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(there, line, steps=4)
    page.mouse.up()
    hands.rest(page)
    assert (hands.params(page)["query"], hands.params(page)["key"]) == (40, 31)
    page.mouse.click(third, middle(words.nth(2))[1])
    hands.rest(page)
    assert (hands.params(page)["query"], hands.params(page)["key"]) == (40, 2)
    shades = [float(words.nth(n).get_attribute("fill-opacity")) for n in (2, 37, 38, 39, 40)]
    assert shades == sorted(shades) and shades[3] == round(0.7788, 3)  # e^(−1/4)


def test_the_challenge_is_won_by_mouse(visit, hands):
    page = visit("alibi")
    page.locator("label:has-text('heads') select").select_option("12")
    hands.rest(page)
    heads = page.get_by_role("group", name="All heads")
    page.mouse.click(*middle(heads.get_by_text("104", exact=True)))
    hands.rest(page)
    assert hands.params(page)["head"] == 11
    said = page.locator(".lv-verdict.lv-reached").inner_text()
    assert said.endswith(f"✔ Reached: {front.seen(ALiBiExplorer, **hands.params(page)).reached}")


def test_the_same_line_is_moved_up_and_nothing_else_changes(visit, hands):
    page = visit("alibi")
    bars = """() => [...document.querySelectorAll('.live rect[fill="var(--mix)"]')]
        .map(bar => bar.getAttribute('height'))"""
    before = page.evaluate(bars)
    page.locator("label:has-text('bias') select").select_option("causal m·j")
    hands.rest(page)
    assert page.get_by_text("higher by m·i = 12").is_visible()
    assert len(before) == 64 and page.evaluate(bars) == before
