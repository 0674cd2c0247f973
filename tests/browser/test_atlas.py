"""The atlas of positions in Chromium: searched, sorted, opened, read on a phone and without a script."""

import importlib.util

import pytest
from axe_playwright_python.sync_playwright import Axe

from workshop import documents

HERE = documents.SITE
spec = importlib.util.spec_from_file_location("site_atlas", HERE / "atlas.py")
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
MEASURED = [its for its in made.atlas.record()["rows"] if "runs" in its]
PAGE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><title>Atlas</title>
<meta name="viewport" content="width=device-width"><style>
:root {{ --pst-color-border: #c9c9c9; --pst-color-text-muted: #595959; }} {css}</style>
<main><h1>Atlas</h1>{table}</main><script>{script}</script></html>"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    css = (HERE / "atlas.css").read_text(encoding="utf-8") + made.style()
    script = (HERE / "static" / "atlas.js").read_text(encoding="utf-8")
    page = PAGE.format(css=css, table=made.table(), script=script)
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


def test_it_is_searched_sorted_and_opened_by_keys(address, browser):
    with browser.new_context(viewport={"width": 360, "height": 740}) as context:
        page = context.new_page()
        page.goto(address)
        wide = "() => document.documentElement.scrollWidth <= innerWidth"
        assert page.evaluate(wide)
        rows = page.locator("tbody tr:not(.at-group):visible")
        heads = page.locator(".at-group:visible")
        every, mixed = page.locator("tbody tr:not(.at-group)").count(), rows.count()
        assert every > 100 and 20 < mixed == len([its for its in MEASURED if not made.alike(its)])
        counts = [int(each) for each in heads.locator("small").all_inner_texts()]
        assert sum(counts) == every - mixed and len(counts) > 4
        heads.get_by_role("button").first.focus()
        page.keyboard.press("Enter")
        assert rows.count() == mixed + counts[0] and page.evaluate(wide)
        page.keyboard.press("Enter")
        assert rows.count() == mixed
        page.get_by_role("searchbox").fill("gemma window")
        assert 0 < rows.count() < 10 and "gemma" in rows.first.inner_text()
        page.get_by_role("searchbox").fill("no such model")
        assert page.get_by_role("status").inner_text() == "Nothing found" and rows.count() == 0
        page.get_by_role("searchbox").fill("")
        chip = page.get_by_role("button", name="windows")
        chip.click()
        with_windows = [its for its in MEASURED if any(run[3] for run in its["runs"])]
        assert rows.count() == len(with_windows) == int(chip.locator("small").inner_text())
        page.get_by_role("button", name="no order in some layers").click()
        assert 0 < rows.count() < len(with_windows)
        assert rows.count() == len(
            [its for its in with_windows if {"none", "sharp"} & {run[1] for run in its["runs"]}]
        )
        for pressed in page.locator("[aria-pressed=true]").all()[::-1]:
            pressed.click()
        assert rows.count() == mixed
        page.get_by_role("searchbox").fill("gpt2")  # its layers are all alike
        assert "gpt2" in rows.first.inner_text() and heads.count() == 1
        page.get_by_role("searchbox").fill("")
        page.get_by_role("button", name="layers", exact=True).focus()
        for wanted in (min, max):
            page.keyboard.press("Enter")
            assert rows.count() == every and heads.count() == 0
            layers = [int(each) for each in page.locator("tbody td:nth-child(3)").all_text_contents()]
            assert layers[0] == wanted(layers) and len(layers) == every
        page.keyboard.press("Enter")  # unsorted again
        assert rows.count() == mixed and heads.count() == len(counts)
        page.locator("summary", has_text="smollm3").focus()
        page.keyboard.press("Enter")
        assert page.locator("details[open] a[href$='06_rope.html']").is_visible() and page.evaluate(wide)
        assert not Axe().run(page).response["violations"]


def test_without_a_script_it_is_a_table(address, browser):
    with browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        page.goto(address)
        assert page.locator("tbody tr").count() > 100 and page.get_by_role("columnheader").count() == 7


def test_a_checkpoint_stands_beside_the_default_of_its_class():
    table = made.checkpoints()
    assert table.count("<tr>") == 21 and "32 (class: 40)" in table and "512 (class: 4,096)" in table
    assert "10,000,000 (class: 10,000)" in table and "llama3 × 8" in table


GLOSSARY = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Glossary</title>
<main><nav data-term="Find a term" data-none="Nothing found"></nav><table>
<tr><td><b class="course-letter" id="letter-b">B</b></td><td></td></tr>
<tr><td><a id="base"></a>base</td><td>a number</td></tr>
<tr><td><a id="bias"></a>bias</td><td>is added</td></tr>
<tr><td><b class="course-letter" id="letter-p">P</b></td><td></td></tr>
<tr><td><a id="pair"></a>pair</td><td>two channels</td></tr>
</table></main><script>{script}</script></html>"""


def test_the_glossary_is_searched_and_letters_without_a_term_go(browser):
    script = (HERE / "static" / "glossary.js").read_text(encoding="utf-8")
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content(GLOSSARY.format(script=script))
        find, seen = page.get_by_role("searchbox", name="Find a term"), page.locator("tr:visible")
        assert seen.count() == 5
        find.fill("BIAS")
        assert seen.all_inner_texts() == ["B\t", "bias\tis added"]
        find.fill("xyz")
        assert seen.count() == 0 and page.get_by_role("status").inner_text() == "Nothing found"
        find.fill("")
        assert seen.count() == 5 and page.get_by_role("status").inner_text() == ""
