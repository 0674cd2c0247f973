"""The live explorer of learned tables: its film, its lanes, and the scar, found by mouse."""

import math

import pytest

from tutorial_lib.explorers import LearnedExplorer
from workshop import front


def test_the_table_comes_from_a_file_beside_the_script(visit, folder):
    """Only a page that shows it takes it: most of the text of all explorers is this one table."""
    taken = "() => [...document.scripts].map(script => script.src.split('/').at(-1)).filter(Boolean)"
    assert sorted(visit("learned").evaluate(taken)) == ["live-learned.js", "live.js"]
    assert (folder / "live-learned.js").stat().st_size > 250_000
    assert 'minilm":' not in (folder / "live.js").read_text(encoding="utf-8")
    assert sorted(visit("rotary").evaluate(taken)) == ["live-rotary.js", "live.js"]
    assert sorted(visit("two").evaluate(taken)) == ["live-rotary.js", "live.js"], "once for two places"


def test_without_its_file_the_picture_stays(folder, browser, tmp_path):
    for name in ("learned.html", "live.js", "live.css"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    page = browser.new_page()
    page.goto((tmp_path / "learned.html").as_uri())
    assert page.locator("[data-live] img").get_attribute("alt").startswith("The picture")
    page.close()


def test_the_scar_is_found_by_mouse(visit, hands):
    page = visit("learned", "?live=learned&shown=128")
    rail = page.locator("g[data-drag=position] line[stroke-linecap]").bounding_box()
    grip = page.locator(".lv-grip[data-key=position]")
    hands.pull(page, grip, rail["width"] * (127 - 7) / 127, 0)
    assert hands.params(page)["position"] == 127
    page.wait_for_function("() => document.querySelector('.lv-verdict').matches('.lv-reached')")
    assert page.get_by_text("row p: 0.69").is_visible()


def test_the_film_is_read_clicked_and_its_lines_are_dragged(visit, hands):
    page = visit("learned")
    film = page.locator("rect[style*=crosshair]").bounding_box()
    cell = film["width"] / 64
    x, y = film["x"] + 44.5 * cell, film["y"] + 20.5 * cell
    page.mouse.move(x, y)
    exact = front.seen(LearnedExplorer, position=20, other=44).views["cosines"][20, 44]
    assert page.locator(".lv-tip").inner_text() == f"cos(P[20], P[44]) = {exact:.4f}".replace("-", "−")
    page.mouse.click(x, y)
    hands.rest(page)
    assert (hands.params(page)["position"], hands.params(page)["other"]) == (20, 44)
    page.mouse.move(x, film["y"] + film["height"] - 20)
    page.mouse.down()
    page.mouse.move(x + 10 * cell, film["y"] + 30, steps=4)
    page.mouse.up()
    hands.rest(page)
    assert (hands.params(page)["position"], hands.params(page)["other"]) == (20, 54)


@pytest.mark.parametrize("name", ["MiniLM", "sinusoids"])
def test_the_film_shows_the_colours_of_the_cosines(visit, hands, name):
    """From −1 to 1; of cosines that are all above 0, from the least of them, in the colours above 0."""
    page = visit("learned", f"?live=learned&shown=32&name={name}")
    pixels = page.evaluate("""() => { const film = document.querySelector('.lv-stage canvas');
        return [...film.getContext('2d').getImageData(0, 0, 32, 32).data]; }""")
    z = front.seen(LearnedExplorer, name=name, shown=32).views["cosines"]
    low, first = (math.floor(10 * z.min()) / 10, 32) if name == "sinusoids" else (-1, 0)
    colours = bytes.fromhex(LearnedExplorer.constants()["palette"])[3 * first :]
    assert (z.min() > 0) == (name == "sinusoids")
    for i, j in ((0, 0), (3, 17), (31, 0), (12, 9)):
        shade = round((float(z[i, j]) - low) / (1 - low) * (63 - first))
        assert pixels[4 * (32 * i + j) :][:3] == list(colours[3 * shade : 3 * shade + 3]), (i, j)
    ends = page.locator(".lv-stage svg").first.locator("text").all_text_contents()
    assert {f"{low:g}".replace("-", "−"), "1" if first else "+1"} <= set(ends)
