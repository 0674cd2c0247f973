"""Live explorers in a made-up language, in Chromium: no text that a reader sees or hears stays English."""

import re

import pytest

from tutorial_lib.explorers import live
from tutorial_lib.explorers.scoreboard import rows
from tutorial_lib.language import speaking
from workshop import pictures, translation

ALL = live.everyone()
NAMES = re.compile(r"\b(?:sin|cos|log|relu|std|PE|W_r|clip|bucket|[kMG]i?B|[a-z]_[a-z]{2})(?!\w)")
"""Signs of formulas and units are the same everywhere; so is what is marked translate="no", and ENCODINGS."""
ENCODINGS = re.compile("|".join(map(re.escape, sorted(rows(), key=len, reverse=True))))
SHOWN = """() => {
    const found = [], own = node => node.closest('[translate=no]');
    const walker = document.createTreeWalker(document.querySelector('.live'), NodeFilter.SHOW_TEXT);
    // a text with x_i in it is set in parts, and read as one
    const whole = node => [node, node.parentElement].find(each => each.querySelector(':scope > .lv-sign'));
    for (let text; (text = walker.nextNode());) if (!own(text.parentElement))
        found.push(whole(text.parentElement)?.textContent ?? text.data);
    for (const node of document.querySelectorAll('.live, .live *')) for (const name of
        ['aria-label', 'aria-valuetext', 'title', 'placeholder', 'alt'])
        if (node.hasAttribute(name)) found.push(node.getAttribute(name));
    return [...new Set(found)];
}"""
HOVER = """() => {
    const found = new Set(), box = document.querySelector('.lv-stage').getBoundingClientRect();
    const tip = document.querySelector('.lv-tip');
    for (let x = 6; x < box.width; x += 23) for (let y = 6; y < box.height; y += 17) {
        const at = { bubbles: true, clientX: box.left + x, clientY: box.top + y };
        const node = document.elementFromPoint(at.clientX, at.clientY);
        node?.dispatchEvent(new PointerEvent('pointermove', at));
        if (!tip.hidden) found.add(tip.textContent);
        node?.dispatchEvent(new PointerEvent('pointerleave', at));
    }
    return [...found];
}"""


@pytest.fixture(scope="module", autouse=True)
def folder(folder, tmp_path_factory):
    """The pages of all explorers with scripts in which each text stands in ⟦ ⟧."""
    made = tmp_path_factory.mktemp("made")
    known = {text: f"⟦{text}⟧" for text, *_more in translation.messages(translation.EXPLORERS)}
    translation.compile_texts(known, made / "xx")
    with pytest.MonkeyPatch.context() as patch, speaking("xx"):
        patch.setenv("TUTORIAL_LOCALE", str(made))
        live.write(made)
    for page in folder.glob("*.html"):
        (made / page.name).write_bytes(page.read_bytes())
    return made


def escaped(texts, names=NAMES):
    """What of these texts is English: words outside of all brackets."""
    found = []
    for text in texts:
        rest = text
        while "⟦" in rest and rest != (rest := re.sub("⟦[^⟦⟧]*⟧", "", rest)):
            pass
        if re.search("[A-Za-z]{2,}", NAMES.sub("", names.sub("", rest))):
            found.append(text)
    return found


def test_what_escapes_is_found():
    assert escaped(["⟦a ⟦word⟧ two⟧ 0.5", "sin(7 / 100^(1/2))", "r_ij = 3", "⟦tokens⟧ kept", "layer 1"]) == [
        "⟦tokens⟧ kept",
        "layer 1",
    ]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.front)
def test_no_text_of_an_explorer_escapes_translation(kind, visit, hands):
    page = visit(kind.front)
    assert page.locator(".live").get_attribute("aria-label").startswith("⟦")
    seen = set(page.evaluate(SHOWN) + page.evaluate(HOVER))
    assert len(seen) > 20

    def look():
        hands.rest(page)
        seen.update(page.evaluate(SHOWN))

    for slider in page.locator(".live [role=slider]").all():
        slider.press("End")
        look()
    for button in page.locator(".live svg [role=button]").all()[:1]:  # a guess: the others are built anew
        button.click()
        look()
    for text in page.locator(".lv-typed input").all():
        for score in ("x_i +", "w·p_i + r_ij"):
            text.fill(score)
            look()
    for box in page.locator(".lv-bar select").all():
        for n in range(box.locator("option").count()):
            box.select_option(index=n)
            look()
    for choice in page.locator(".lv-bar .lv-row input").all():
        choice.press("Space")
        look()
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(50)
    look()
    names = ENCODINGS if kind.front == "scoreboard" else NAMES
    assert not (found := escaped(seen | set(page.evaluate(HOVER)), names)), found


@pytest.mark.parametrize("tongue, faces", [("en", []), ("xx", ["loaded"])])
def test_a_picture_brings_its_font_where_the_browser_may_have_none(browser, tongue, faces):
    page = browser.new_page()
    with speaking(tongue):
        pictures.picture(page, "alibi", {})
    assert page.evaluate("() => [...document.fonts].map(font => font.status)") == faces
    page.close()
