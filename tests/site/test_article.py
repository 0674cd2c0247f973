"""What a notebook becomes on the site: an article, in which nothing of the notebook is lost."""

import copy
import html
import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workshop" / "site"))
import article  # noqa: E402
import pages  # noqa: E402

from course.lesson import museum  # noqa: E402

NOTEBOOKS = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("notebooks/deeper/*.ipynb")])


def codes(path):
    return [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]


SAID = {"✔": "holds", "≡": "holds", "✘": "does not hold", "◐": "half true", "◌": "not shown"}


def bare(text):
    return "".join(html.unescape(re.sub("<[^>]*>", "", text)).split())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_call_of_the_lesson_is_left_and_no_code_is_lost(path):
    for cell in codes(path):
        kind, source, shown = article.part(cell), "".join(cell["source"]), copy.deepcopy(cell)
        article.fit(shown)
        hidden = "remove-input" in shown["metadata"]["tags"]
        assert hidden or not re.search(
            r"^(?:lesson\.(?:predict|concept_check|reveal|progress)|museum\.\w+)\(|Explorer\(", source, re.M
        )
        added = shown["outputs"][len(cell["outputs"]) :]
        given = bare("".join(output["data"]["text/html"] for output in added))
        if hidden and kind not in ("toy", "question", "check"):
            lines = [line for line in source.splitlines() if line.strip() and not line.startswith("# ")]
            assert all("".join(line.split()) in given for line in lines), source
        else:
            assert kind == "code" or not added
        stands = re.sub("\n{3,}", "\n\n", source)
        if kind == "turn":
            stands = "\n".join(line for line in stands.splitlines() if ".your_turn(" not in line).strip()
        if added and kind == "code":  # what only draws stands below the picture
            assert stands.startswith(shown["source"]) and "plots." not in shown["source"]
            assert bare(html.escape(stands.removeprefix(shown["source"]))) in given
        else:
            assert shown["source"] == stands


def test_an_exhibit_is_a_card_that_tells_what_each_check_measured():
    path = ROOT / "notebooks" / "deeper" / "09_museum.ipynb"
    said = pages.verdicts(json.loads(path.read_text(encoding="utf-8")))
    assert [*said] == [*museum.EXHIBITS] and all(len(each) == len(museum.CHECKS) for each in said.values())
    card = pages.exhibit("halves", said["halves"])
    asked = json.loads(html.unescape(re.search('data-check="([^"]*)"', card)[1]))
    told = {name: (right, why) for name, _words, right, why in asked["choices"]}
    assert [name for name, (right, _why) in told.items() if right] == ["moved", "norm", "equation"]
    assert told["moved"][1].startswith("FOUND (") and "<details>" in told["moved"][1]
    assert told["stepwise"][1] == "Sees nothing (0.0%)." and "<details>" not in told["stepwise"][1]
    assert bare(museum.EXHIBITS["halves"].code) in bare(card)
    others = pages.gallery(["halves", "kernel"], said)
    assert others.count('<div class="course-exhibit">') == len(museum.EXHIBITS) - 2


def test_an_exercise_has_no_calls_and_marks_its_blanks():
    for path in ROOT.glob("exercises/*/*.ipynb"):
        found = Counter()
        for cell in codes(path):
            kind, source = article.part(cell), "".join(cell["source"])
            found[kind] += 1
            article.fit(cell)
            tags = cell["metadata"]["tags"]
            assert ("course-turn" in tags) == any(tag.startswith("answer:") for tag in tags), source
            assert "course-turn" in tags or "NotImplementedError" not in source
            assert ("remove-input" in tags) == source.startswith("check."), source
            long = "print(" in source and len(source.splitlines()) > 5 and "course-turn" not in tags
            assert ("hide-input" in tags) == (long or kind == "tools"), source
            said = "".join(map(article._html, cell["outputs"]))
            assert bool(said) == (source.startswith("check.") and ".progress(" not in source), source
        assert found["turn"] > 3 < found["check"] and found["tools"] == 1, path.name


def test_each_part_is_there_and_a_lesson_has_what_its_template_asks():
    for path in ROOT.glob("notebooks/[0-9]*.ipynb"):
        found = Counter(article.part(cell) for cell in codes(path))
        assert {"toy", "question", "answer", "turn", "claims", "code"} <= found.keys(), path.name


def test_what_is_measured_after_an_answer_is_folded_under_its_own_words():
    """A second measurement would say what the first has found; both are closed."""

    def words(source):
        cell = {"source": source, "cell_type": "code", "outputs": [], "metadata": {"tags": ["reveal"]}}
        article.fit(cell)
        return cell["metadata"]["mystnb"]["code_prompt_show"]

    assert (
        words("# Run this cell: it measures the answer.\nlesson.reveal('02.fusion', 1)") == "Show the answer"
    )
    assert words("# Run this cell: once more, with RoPE.\nlesson.again()") == "Once more, with RoPE"


def test_what_defines_something_is_read_as_it_stands():
    drawn = [{"output_type": "display_data", "metadata": {}, "data": {"image/png": "", "text/html": ""}}]
    cell = {"source": ["plots.show(fig)"], "metadata": {}, "outputs": drawn}
    assert article.part(cell) == "figure"
    assert (
        article.part(cell | {"source": ["def rotate(x):\n", "    return x\n", "plots.show(fig)"]}) == "code"
    )


def test_claims_are_cards_with_all_that_the_table_says():
    seen = 0
    for path in NOTEBOOKS:
        for cell in codes(path):
            if article.part(cell) == "claims":
                shown = copy.deepcopy(cell)
                article.fit(shown)
                after = bare(
                    "".join(article._html(output) for output in shown["outputs"][: len(cell["outputs"])])
                )
                for said in re.findall(
                    "<td[^>]*>(.*?)</td>", "".join(map(article._html, cell["outputs"])), re.S
                ):
                    assert bare(said) in after, (path.name, said)
                seen += after.count("Measuredhere:")
                for sign, asked in re.findall(
                    r'data-sign="(.)".*? data-check="(.*?)"', article._html(shown["outputs"][0])
                ):
                    right = [name for name, _, this, _ in json.loads(html.unescape(asked))["choices"] if this]
                    assert right == [SAID[sign]], "before the record is shown, one verdict is right"
    assert seen > 50


def test_a_blank_does_not_say_what_became_of_code_that_nobody_wrote():
    for path in NOTEBOOKS:
        for cell in codes(path):
            if article.part(cell) == "turn":
                shown = copy.deepcopy(cell)
                article.fit(shown)
                after, before = ("".join(map(article._html, each["outputs"])) for each in (shown, cell))
                assert "Not written yet" in before and "Not written yet" not in after
                assert after.count("<summary>") == before.count("<summary>") > 0


def test_claims_of_an_english_run_can_be_judged_on_a_page_in_another_language(monkeypatch):
    monkeypatch.setattr(article, "_", lambda text: f"~{text}")
    (cell,) = [one for one in codes(ROOT / "notebooks/06_rope.ipynb") if article.part(one) == "claims"]
    shown = article.claims("".join(map(article._html, cell["outputs"])))
    asked = re.findall('data-check="(.*?)"', shown)
    rights = [[right for *_words, right, _ in json.loads(html.unescape(one))["choices"]] for one in asked]
    assert len(rights) > 2 and all(each.count(True) == 1 for each in rights)
