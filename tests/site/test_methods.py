"""The pages of the methods: complete, taken from the library, and with the numbers of the records."""

import html
import importlib.util
import inspect
import json
import re
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

from course import verdicts
from course.experiments import scoreboard
from course.experiments.scoreboard import shown
from tutorial_lib import encodings
from tutorial_lib.encodings.registry import METHODS
from tutorial_lib.explorers.scoreboard import rows
from tutorial_lib.readability import alt_fault

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "workshop" / "site"))
spec = importlib.util.spec_from_file_location("site_methods", ROOT / "workshop" / "site" / "methods.py")
methods = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = methods
spec.loader.exec_module(methods)
import results  # noqa: E402

PAGES = list(methods.METHODS)
SMALL = {"d_model": 16, "layers": 1, "heads": 2, "length": 64}


def test_each_method_of_the_board_has_one_page_and_so_has_each_that_is_new():
    on_pages = [name for page in methods.METHODS.values() for name in methods.on_board(page)]
    new = [name for each in METHODS if each.title and not each.compared for name in each.names]
    assert sorted(on_pages) == sorted([*rows(), *new])


def test_what_has_no_page_gives_no_order():
    (without,) = (each for each in METHODS if not each.page and not each.joins)
    assert {scoreboard.exact(name, SMALL)["apart"] for name in without.names} == {1}


@pytest.mark.parametrize("name", PAGES)
def test_code_is_that_of_the_library_and_short(name):
    page = methods.METHODS[name]
    lines = [line for line in methods.code(page).splitlines() if line]
    source = "\n".join(
        inspect.getsource(importlib.import_module(f"tutorial_lib.encodings.{module}"))
        for module in methods.modules(page)
    ).splitlines()
    assert 5 <= len(lines) <= 32 and set(lines) <= set(source)
    assert '"""' not in "".join(lines)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(name):
    page = methods.METHODS[name]
    text = methods.text(name, "PICTURE OF IT")
    first = text.index("## The equation")
    assert ("data-live=" in text[:first]) == bool(page.live) != ("PICTURE OF IT" in text[:first])
    assert "<dt>Position enters</dt>" in text[:first]
    assert not (page.live and page.see), "an explorer, or what its picture shows"
    words = methods.equation(page)
    assert "```{math}" in words and re.search(rf"\*.*\b{page.year or '20..'}\b.*\*", words)
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings == [
        "The equation",
        "The code",
        "Costs and users",
        "Good at, bad at",
        "Go on",
    ]
    assert all(f'<a id="{name}"></a>' in text for name in ("what-it-costs", "who-uses-it")), "once headings"
    labels = re.findall("<dt>(.*?)</dt>", text[first:])
    assert {"Lesson", "Exercise", "Read", "Library"} <= {*labels} and len(labels) == len({*labels})
    assert not re.search(r"^[A-Z]+$", text, re.M) and not alt_fault(methods.alt(page))


@pytest.mark.parametrize("name", PAGES)
def test_the_head_of_a_page_says_in_two_short_lines_what_needs_no_formula(name):
    said = re.findall("<dd>(.*?)</dd>", methods.facts(methods.METHODS[name]))
    assert not [its for its in said if len(its) > 36 or methods.letters(its)[1:] or re.search(r"[$·^]", its)]


def mean(record, name, key):
    """The mean over the seeds, from the file itself."""
    runs = json.loads((ROOT / "results" / f"{record}-full.json").read_text(encoding="utf-8"))["runs"]
    return statistics.fmean(run["values"][key] for run in runs if run["cell"] == {"encoding": name})


@pytest.mark.parametrize("name", PAGES)
def test_numbers_are_those_of_the_record(name):
    page = methods.METHODS[name]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in methods.board(page).splitlines()
        if line.startswith("|")
    ]
    assert table[0] == ["", *methods.on_board(page)]
    if not page.compared:
        return
    found = {line[0]: line[1:] for line in table[2:]}
    for n, encoding in enumerate(table[0][1:]):
        if " + " in encoding:
            continue  # RoPE with scaled angles: measured for its lengths only
        for key, words in (
            ("time", "times as long as no position"),
            ("parameters", "parameters"),
            ("apart", "places told apart"),
            ("shift", "shift error"),
        ):
            value = shown(key, mean("scoreboard", encoding, key))
            assert found[words][n].startswith(f"{value} ("), (encoding, key)


def test_strengths_are_the_differences_of_the_record_with_their_intervals():
    """Worked out here from the file: against ALiBi, at the length of training and at 16 times that."""
    runs = json.loads((ROOT / "results/lengths-full.json").read_text(encoding="utf-8"))["runs"]

    def values(encoding, what, place):
        found = [run for run in runs if run["cell"] == {"encoding": encoding}]
        return [run["values"][what][place] for run in sorted(found, key=lambda run: run["seed"])]

    for what, place in (("mean", 0), ("tail", -1)):
        each = [
            a - b for a, b in zip(values("rotary", what, place), values("alibi", what, place), strict=True)
        ]
        half = 2.776 * statistics.stdev(each) / len(each) ** 0.5
        (its,) = [one.its for one in methods.beside("alibi")[what] if one.name == "rotary"]
        assert (its.low, its.high) == pytest.approx(
            (statistics.fmean(each) - half, statistics.fmean(each) + half), abs=1e-3
        )
    assert not methods.beside("swin")["mean"] and not methods.forest(methods.METHODS["swin"])
    assert not [one for one in methods.beside("alibi")["tail"] if one.name == "table"], "it ends at L"
    table = methods.forest(methods.METHODS["alibi"])
    heads, body = re.search("<thead>(.*?)</thead>(.*?)<tfoot>", table).groups()
    assert re.findall("<b>(.*?)</b>", heads) == ["At the trained length L", "At 16 L"]
    assert body.count('<th scope="row">') == len(methods.beside("alibi")["mean"]) + 1 > 15
    near, far = re.findall("<td[^>]*>([^<]+)</td>", re.search(r'"row">RoPE</th>.*?</tr>', body)[0])
    assert near != far == f"{its.mean:+.2f}"
    assert re.search(r'"row">Table of offsets</th>.*?</tr>', body)[0].count("<td>–</td>") == 1, "none at 16 L"
    lines = {kind for kind in re.findall(r'<tr class="c-(\w+)"(?! data-own)', table)}
    assert lines == {*re.findall('<li class="c-(.*?)">', table)}, "each colour is explained"


def test_claims_have_the_verdicts_of_the_record_and_one_link_for_those_of_one_record():
    known = {
        (slug, claim.text): claim.verdict
        for slug, record in results.records().items()
        for claim in record.claims
    }
    for page in methods.METHODS.values():
        for group in re.findall("<div><ul>.*?</a></div>", methods.claims(page)):
            (slug,) = re.findall(r'<a href="\.\./results/(.*?)\.html">', group)
            for sign, its, claim in re.findall("<b>(.) (.*?)</b> <span>(.*?)</span>", group):
                assert known[slug, html.unescape(claim)] == its and verdicts.SIGNS[its] == sign
    text = methods.claims(methods.METHODS["transformer-xl"])
    assert text.count("<li") > text.count("<a href") == 1


@pytest.mark.parametrize("name", PAGES)
def test_no_formula_is_lost_where_a_block_is_broken_into_lines(name):
    def signs(text):
        return re.sub(r"\\(begin|end)\{aligned\}|\\q?quad|\\\\|[\s&,]", "", text)

    page = methods.METHODS[name]
    said = methods.equation(page)
    found = methods.equations(page)[0]
    worded = sum(bool(words) for _block, words in found) * (not page.formula)
    assert said.count("```{eval-rst}") == worded + bool(page.where)
    for block, words in found:
        lines = methods.in_lines(block)
        assert signs("".join(lines)) == signs(block)
        assert all(line.count("{") == line.count("}") for line in lines)
        assert page.formula or words[-6:] in said
        assert not words.endswith("**:")


GREEK = "alpha α beta β gamma γ delta δ zeta ζ theta θ lambda λ mu μ sigma σ tau τ psi ψ omega ω".split()


@pytest.mark.parametrize("name", PAGES)
def test_each_letter_of_the_first_equation_is_named_in_words(name):
    page = methods.METHODS[name]
    first, words = re.match(r"(.*?)(```\{eval-rst\}.*)", methods.equation(page), re.S).groups()
    first = re.sub(r"\\(?:mathrm|text|begin|end|mathbb|hspace)\{[^}]*\}|\[.5em\]|\{math\}|PE", "", first)
    for command, letter in zip(GREEK[::2], GREEK[1::2], strict=True):
        first = re.sub(rf"\\{command}(?![a-z])", letter, first)
    letters = set(re.findall(r"[^\W\d_]", re.sub(r"\\[a-zA-Z]+|<.*?>", "", first)))
    words = re.sub(r"```\{math\}.*?```", "", words, flags=re.S).replace("Ã", "A")
    missing = {its for its in letters if not re.search(rf"(?<![^\W\d_]){its}(?![^\W\d_])", words)}
    assert not missing, missing


def test_an_interval_is_drawn_only_with_the_verdict_that_it_gives():
    found = [claim for record in results.records().values() for claim in record.claims]
    drawn = [any(rule for _line, rule in claim.judged) for claim in found]
    assert sum(drawn) > 0.7 * len(drawn)
    lines = "- Measured here: gain: t5 +0.50 (+0.49 to +0.51), shaw -0.10 (-0.30 to +0.10)\n"
    lines += "- Asked for: above 0\n"

    def claim(verdict):
        return results.Claim("", "", f"{lines}- **{verdict}**\n")

    both, one, none = (claim(verdict).judged for verdict in ("Not shown", "Holds", "Does not hold"))
    assert [(line.name, rule and rule.side) for line, rule in both] == [("t5", "above"), ("shaw", "above")]
    assert [line[2:5] for line, _rule in one] == [(0.5, 0.49, 0.51)], "if not all, the first that is named"
    assert [rule for _line, rule in none] == [None, None]
    row = re.search('"name">Shaw.*?"number">', results.family(results.families([claim("Not shown")])[0]))[0]
    start, end, limit = (
        float(re.search(rf'<{tag} style="{name}:([\d.]+)%', row)[1])
        for tag, name in (("i", "--at"), ("i", "--at:[\\d.]+%;--wide"), ("u", "--at"))
    )
    assert start < limit < start + end, "the interval has the limit in it"


def test_no_interval_of_a_record_is_left_out_of_its_row_and_no_word_out_of_its_page():
    """What "Measured here" says of a claim, counted here on its own: all of it, or the one that decides."""
    for slug, record in results.records().items():
        page = results.page(slug)
        setup = record.text.strip().split("\n\n")[1]
        assert all(page.count(said) == 1 for said in re.split(r"(?<=\.)\s(?=[A-Z])", setup)), slug
        rows = re.findall('<details class="course-row".*?</details>', page, re.S)
        for claim in record.claims:
            number = r"[-+]?[\d.,]+(?:e-\d+)?"
            here = claim.said("Measured here")
            given = re.findall(rf"({number})(?: ± {number})? \(({number}) to ({number})\)", here)
            (row,) = (row for row in rows if f"<b>{results.bound(html.escape(claim.text))}</b>" in row)
            plain = row.replace("\u00a0×\u00a010", "e").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
            shown = re.findall('class="number">([^ <]+) (.*?) ?<small>([^<]*)</small>', plain)
            assert len(shown) == (1 if claim.lone else len(given)), claim.text
            for (mean, _unit, ends), numbers in zip(shown, given, strict=False):
                told = [mean, *(ends.split(" to ") if " to " in ends else [mean, mean])]
                for one, other in zip(told, numbers, strict=True):
                    one, other = (float(each.replace(",", "").replace("−", "-")) for each in (one, other))
                    near = max(abs(float(each.replace(",", ""))) for each in numbers)
                    assert one == pytest.approx(other, abs=0.006 * near), claim.text
            assert '"name"></span>' not in row, claim.text
            other = re.findall(r"So it would be \*(.+?)\*", claim.lines)
            assert re.findall("At one rate for all: (.+?)</small>", row) == other, claim.text
            for title in ("Measured here", "At one rate for all"):
                words = results.minus(claim.said(title)).replace("\u00a0", " ")
                assert words in page.replace("\u00a0", " "), claim.text


def test_claims_about_one_quantity_are_rows_over_one_axis_and_each_stands_once():
    for slug, record in results.records().items():
        families = results.families(record.claims)
        assert sorted(claim.text for its in families for claim in its.claims) == sorted(
            claim.text for claim in record.claims
        )
        for its in families:
            drawn = results.family(its)
            kinds = {line.measure for claim in its.claims for line, _rule in claim.judged}
            assert drawn.count("<summary>") == len(its.claims) and drawn.count('class="axis"') >= len(kinds)
            assert len(its.claims) == 1 or drawn.count('class="axis"') == 1 == len(kinds)
            several = [line for claim in its.claims for line, _rule in claim.judged]
            assert drawn.count("<em") < max(len(several), 1), slug
        for kind in {its.claims[0].measure for its in families} - {""}:
            axes = {its.axis: its.title.count("finer") for its in families if its.claims[0].measure == kind}
            assert list(axes.values()).count(0) == 1, f"{slug}: one axis for {kind}, unless it says so"
    by_slug = {slug: results.families(record.claims) for slug, record in results.records().items()}
    first = by_slug["train-short-test-long"][0]
    assert len(first.claims) == 9 and {claim.measure for claim in first.claims} == {"nats"}
    drawn = results.family(first)
    assert drawn.count("loss at\u00a016\u00a0L minus loss at\u00a0L") == 1, "said once for all rows"
    limits = re.findall('class="limit[^>]*>([^<]+)<', drawn)
    assert len(limits) == 9 and set(limits) == {"true\u00a0above\u00a00.05", "true\u00a0below\u00a00.05"}
    drawn = "".join(map(results.family, by_slug["the-scoreboard"]))
    (beyond,) = re.findall("<em>→</em>.*?</small>", drawn)
    assert beyond.endswith('"number">3.07  <small>3.02 to 3.11</small>'), "an arrow beside its number"


def test_what_one_rate_for_all_costs_is_drawn_for_each_search():
    drawn = results.gains()
    said = re.search(r"in (\d+) of (\d+) searches", results.records()["a-rate-for-each"].text)
    several = [tuple(map(int, its)) for its in re.findall(r'"number">(\d+) of (\d+) ', drawn)]
    assert tuple(map(sum, zip(*several, strict=True))) == tuple(map(int, said.groups()))
    assert drawn.count("<b style") == int(said[2])


def test_each_record_has_a_question_and_what_was_found_rests_on_verdicts_that_stand():
    assert list(results.about()) == list(results.records())
    for slug, words in results.about().items():
        assert set(words) == {"asks", "found", "rests"} and words["found"].endswith(".")
        assert len(words["asks"]) < 60
        claims = [f"{claim.sign} {claim.text}" for claim in results.records()[slug].claims]
        lost = [its for its in words["rests"] if not any(claim.startswith(its) for claim in claims)]
        assert words["rests"] and not lost, f"{slug}: does what was found still say what was measured?"


def test_the_index_has_a_row_for_each_record_in_a_group_and_its_legend_all_verdicts():
    assert sorted(slug for group in results.GROUPS.values() for slug in group) == sorted(results.records())
    index = results.index((ROOT / "docs/results.md").read_text(encoding="utf-8"))
    whole, *each = map(int, re.findall(r"(?:<p><b>|<dt>. )(\d+) ", index))
    assert whole == sum(each) and len(each) == len(verdicts.SIGNS)
    for slug, words in results.about().items():
        row = re.sub("<.*?>", "", results.listing(slug))
        assert html.escape(words["found"]) in row, slug


def test_the_method_itself_has_a_row_and_its_nearest_stand_open():
    page = methods.METHODS["ntk"]
    table = methods.forest(page)
    (own,) = re.findall('<tr class="[^>]*data-own.*?</tr>', table)
    assert "RoPE + NTK-aware" in own
    for n, what in enumerate(("mean", "tail")):
        zero = re.findall(r"--zero:([\d.]+%)", own)[n]
        assert f'<b style="--at:{zero}">' in own
        rows = re.findall('<tr class="c-.*?</tr>', table.replace(own, ""))
        near = [row for row in rows if not re.search(f'data-far="[^"]*{what}', row)]
        numbers = {row: re.findall(r">([−+\d.]+|–)</td>", row)[n].replace("−", "-") for row in rows}
        found = methods.beside(methods.on_board(page)[0])[what]
        ahead = [methods.called(one.name) for one in found if one.its.high < 0][-2:]
        ahead = [row for row in near if re.search('"row">(.*?)<', row)[1] in ahead]
        values = [float(numbers[row]) for row in near if row not in ahead]
        others = [float(numbers[row]) for row in rows if row not in near and numbers[row] != "–"]
        assert len(ahead) == methods.BETTER == 2 and len(values) == methods.NEAREST
        assert max(map(abs, values)) <= min(map(abs, others))
        start, times = (float(re.search(rf"--{what}-{one}:([\d.]+)", table)[1]) for one in ("from", "times"))
        finer = [times * (float(re.findall(r'<b style="--at:([\d.]+)', row)[n]) - start) for row in near]
        assert min(finer) > 0 and max(finer) < 100 and max(finer) - min(finer) > 50, "they fill their axis"


def test_a_method_has_a_card_at_its_place_and_the_place_an_anchor():
    text = methods.listed()
    assert text.count('class="map"') == len(methods.METHODS)
    for anchor in re.findall('href="#(position-[a-z-]+)"', text):
        assert text.count(f'<a id="{anchor}"></a>') == 1
    assert {"position-stays-out", "position-enters-the-raw-scores"} <= set(re.findall('<a id="(.*?)"', text))


def test_who_uses_a_method_is_counted_in_the_atlas():
    types = [its for its in json.loads((ROOT / "results/atlas.json").read_text(encoding="utf-8"))["rows"]]
    built = [its for its in types if "runs" in its]
    without = sorted(
        its["type"] for its in built if {"none", "sharp"} & {kind for _n, kind, *_rest in its["runs"]}
    )
    said = methods.in_atlas(methods.METHODS["nope"])
    assert f"**{len(without)} of the {len(built)}**" in said and all(name in said for name in without)
    assert not methods.in_atlas(methods.METHODS["shaw"])


def test_a_place_on_the_board_counts_those_that_are_better(monkeypatch):
    board = {"a": {"time": 1.0, "won": 3}, "b": {"time": 1.5, "won": 3}, "c": {"time": 1.5, "won": 5}}
    board["d"] = {}
    monkeypatch.setattr(methods, "rows", lambda: board)
    assert [methods.place_on_board("time", name) for name in "abc"] == ["1st of 3", "2nd of 3", "2nd of 3"]
    assert [methods.place_on_board("won", name) for name in "abc"] == ["2nd of 3", "2nd of 3", "1st of 3"]


def test_without_its_record_a_method_has_no_page(monkeypatch):
    left = {name: row for name, row in rows().items() if name != "alibi"}
    monkeypatch.setattr(methods, "rows", lambda: left)
    with pytest.raises(KeyError, match="alibi"):
        methods.text("alibi", "")


@pytest.mark.parametrize("name", PAGES)
def test_the_picture_is_what_the_alternative_text_says(name):
    z = methods.equal_scores(methods.METHODS[name])
    assert z.shape == (methods.HEADS, methods.LENGTH, methods.LENGTH) and z.isfinite().all()
    words = methods.alt(methods.METHODS[name])
    assert ("changes none of them" in words) == (name == "nope")
    relative = all(methods.row(one).get("shift", 0) == 0 for one in methods.on_board(methods.METHODS[name]))
    if name not in ("nope", "swin", "two-axes"):  # two axes have no diagonals; fire hardly changes along them
        assert ("they are the same" in words) == (relative or name == "fire")


@pytest.mark.parametrize("name", ["shaw", "deberta", "query-bias"])
def test_from_where_a_page_says_all_distances_are_one(name):
    page = methods.METHODS[name]
    heads = methods.to_see(page)[:, -1, ::-1]
    far = [min(k for k in range(methods.LENGTH) if np.ptp(head[k:]) < 1e-5) for head in heads]
    said = (
        re.search(r"(\d+)\)$", page.make) if name == "deberta" else re.search(r"[Ff]rom (\d+) back", page.see)
    )
    assert set(far) == {int(said[1])}


@pytest.mark.parametrize("name", PAGES)
def test_keys_ahead_are_hidden_where_the_module_says_causal_only(name):
    page = methods.METHODS[name]
    module = inspect.getdoc(sys.modules[page.code[0].__module__])
    hidden = name in methods.HIDDEN
    assert hidden or "**Causal only" not in module
    assert (methods.shares(page, 18)[0, 1:] == 0).all() == hidden
    assert ("hidden from it" in methods.picture(name)) == hidden


@pytest.mark.parametrize("name", methods.ideas.IDEAS)
def test_an_idea_has_a_finding_and_says_what_it_shows(name):
    its = methods.ideas.IDEAS[name]()
    assert methods.METHODS[name].see and len(its.panels) == 2 and not alt_fault(its.alt)
    assert its.said in methods.picture(name) and f'aria-label="{html.escape(its.alt)}"' in methods.picture(
        name
    )
    assert len(re.findall(r' id="', methods.picture(name))) == len(
        set(re.findall(r' id="(\w+)"', methods.picture(name)))
    )


def test_ideas_show_what_the_equations_say():
    """Worked out here by hand: offsets of a window, sentences counted back, what gates keep, four fusions."""
    ideas = methods.ideas.IDEAS
    window, table = methods.ideas.swin().panels.values()
    assert re.findall('mid ink">([^<]+)<', window)[:2] == ["−2 −3", "−2 −2"]
    assert table.count('class="colour"') == (2 * methods.ideas.M - 1) ** 2
    counts = re.findall(r'font-weight="700">(\d+)<', [*methods.ideas.cope().panels.values()][0])
    assert counts == ["2", "2", "2", "1", "1", "1", "1", "1", "0", "0"]
    kept = re.findall(r">(\d+) %<", [*methods.ideas.forgetting().panels.values()][0])
    gates = [0.3 if word == "." else 0.97 for word in methods.ideas.STORY]
    assert kept == [f"{100 * np.prod(gates[n + 1 :]):.0f}" for n in range(len(gates))]
    words, places = methods.ideas.tupe().panels.values()
    both = [[*map(float, re.findall('"colour" opacity="([^"]+)"', its))] for its in (words, places)]
    assert max(both[0]) == max(both[1]) == 1 and min(both[0]) == 0.06 < min(both[1]), "added: one scale"
    assert "linearGradient" not in words and re.findall(r">(2\.8|0)<", places[-90:]) == ["2.8", "0"]
    said = methods.ideas.fusion().alt
    assert "multiply: all at once; concatenate: word with word, place with place; matrix" in said
    along = [*methods.ideas.fire().panels.values()][1]
    first, *others = (
        np.fromstring(its.replace(",", " "), sep=" ") for its in re.findall('points="(.*?)"', along)
    )
    assert len(others) == 2 and all(np.allclose(first, its, atol=0.2) for its in others), "one at any length"
    curves = [*methods.ideas.query_bias().panels.values()][1]
    assert curves.count('class="colour"') < 3 * 32, "nothing is added from there"
    asked, told = (
        re.findall(r'height="([^"]+)" class="colour"', its) for its in ideas["shaw"]().panels.values()
    )
    assert [len(set(its[12:])) for its in (asked[:21], asked[21:])] == [1, 1], "from 12 back, all are one"
    assert len(set(told)) == 12 == len(told[:12]) and len(set(told[11:])) == 1
    row, column = (
        np.array(re.findall(r'"colour" opacity="([^"]+)"', its), float).reshape(8, 8)
        for its in ideas["deberta"]().panels.values()
    )
    assert [*zip(*np.nonzero(row > 0.5), strict=True)] == [(1, 0), (4, 3), (7, 6)], (
        "a noun, and the word before"
    )
    assert set(np.nonzero(column > 0.1)[1]) == {2} and column[2, 2] == column.max(), "one key"
    level, fading = (
        np.array(re.findall(r",([\d.]+)", re.search('points="(.*?)"', its)[1]), float)
        for its in ideas["xpos"]().panels.values()
    )
    assert np.ptp(level[100:]) > 0.99 * np.ptp(level) and np.ptp(fading[100:]) < 0.2 * np.ptp(fading)


def test_names_of_lines_have_a_gap_and_each_line_has_one():
    for name in ("kerple", "sandwich", "nope"):
        drawn = methods.picture(name).rpartition("<svg")[2]
        at = sorted(float(y) for y in re.findall(r'y="([^"]+)">head', drawn))
        assert len(at) == drawn.count("<polyline") == methods.HEADS
        assert min(b - a for a, b in zip(at, at[1:], strict=False)) > 16


def test_a_word_of_the_search_means_one_method():
    words = [word for page in methods.METHODS.values() for word in page.words]
    assert len(words) == len(set(words)) and all(word == word.lower() for word in words)
    for lesson, page in methods.search_words().values():
        assert (ROOT / f"{lesson}.ipynb").exists() and page in methods.NAMES


def test_each_page_says_how_its_method_is_built():
    for name, page in methods.METHODS.items():
        assert isinstance(methods.made(page), encodings.PositionalEncoding), name
        assert f"`{page.make}`" in methods.text(name, "")
