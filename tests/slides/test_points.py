"""Points and values that slides draw are those that the cells of their notebooks compute."""

import contextlib
import io
import math
import tomllib

import matplotlib
import nbformat
import pytest
import torch

from workshop import authoring, slides

PLANS = {
    number: tomllib.loads((slides.PLANS / f"{number}.toml").read_text(encoding="utf-8"))["slide"]
    for number in slides.numbers()
}


def drawn(number):
    """``(slide, form)`` of each curve through points, and each grid or row of values."""
    for n, slide in enumerate(PLANS[number], 1):
        for drawing in (slide.get("draw", {}), slide.get("draw", {}).get("also", {})):
            for form in (each for forms in ("curves", "grids", "rows") for each in drawing.get(forms, ())):
                if "points" in form or "values" in form:
                    yield f"slide {n}, {form.get('name', '')!r}", form


def asked(number):
    return [(where, form) for where, form in drawn(number) if "of" in form]


@pytest.mark.parametrize("number", PLANS)
def test_a_number_that_is_drawn_stands_in_the_notebook_or_says_what_computes_it(number):
    notebook = slides.Notebook(number)
    for where, form in drawn(number):
        if "of" not in form:
            for _x, y, *_said in form["points"]:
                known = any(map(notebook.counting, {f"{abs(y):g}", f"{abs(y):.2f}", f"{abs(y):.3f}"}))
                assert known, f"{where}: {y} stands nowhere in the notebook; say what computes it, with `of`"


@pytest.mark.parametrize("number", [number for number in PLANS if asked(number)])
def test_points_are_what_the_cells_compute(number, monkeypatch):
    """Cells run only until all that is asked for is known."""
    path = authoring.find(number)
    monkeypatch.chdir(path.parent)
    matplotlib.use("Agg")
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    cells = iter([source for source in sources if "Explorer" not in source])
    names = {"math": math, "torch": torch}

    def found(expression, x=None):
        while True:
            try:
                return eval(expression, names | {"x": x})
            except NameError as unknown:
                cell = next(cells, None)
                assert cell is not None, unknown
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(cell, names)

    for where, form in asked(number):
        if "values" in form:
            shades = torch.tensor(form["values"], dtype=torch.float64)
            rows, columns = shades.shape
            there = torch.as_tensor(found(form["of"])).double()[:rows, :columns]
            pairs = [
                ("", *both) for both in zip(shades.flatten().tolist(), there.flatten().tolist(), strict=True)
            ]
        else:
            pairs = [(f"at {x}: ", y, float(found(form["of"], x))) for x, y, *_said in form["points"]]
        close = 0.025 if "values" in form else 0.0151  # a shade, and a digit; a place on a slide
        for at, y, true in pairs:
            assert math.isclose(y, true, abs_tol=close, rel_tol=0.006), (
                f"{where}: {at}{y} is drawn, {true:.4f} found"
            )
