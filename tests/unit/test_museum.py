"""The bug museum: each exhibit is found by the checks that should find it, and by no other."""

import io
import re
import tokenize

import ipywidgets as widgets
import pytest
import torch

from course.lesson import museum
from course.lesson.museum import CHECKS, EXHIBITS, measured
from course.lesson.museum.checks import SAME, Check, elsewhere
from course.progress import read
from tutorial_lib import conformance
from tutorial_lib.training import seeded

FOUND = {
    "waves": "moved equation",
    "table": "resize",
    "gpt2": "padding",
    "packed": "packing",
    "keys": "equation",
    "buckets": "equation",
    "shift": "moved equation",
    "window": "equation gradient",
    "halves": "moved norm equation",
    "kernel": "mirror equation",
    "memory": "stepwise",
    "angles": "half",
    "streaming": "stepwise",
    "yarn": "equation",
    "converted": "equation",
    "config": "equation",
    "loaded": "mirror equation",
    "local": "equation",
    "indexer": "equation",
    "stretch": "stepwise",
    "slopes": "equation",
    "sign": "equation",
    "encoder": "mirror",
    "mask": "stepwise",
}
BLIND = {
    "waves": "mirror half",
    "table": "moved mirror equation half",
    "gpt2": "mirror equation half gradient",
    "packed": "mirror equation half padding gradient",
    "keys": "moved stepwise half gradient",
    "buckets": "moved mirror half gradient",
    "shift": "mirror half",
    "window": "mirror half",
    "halves": "stepwise half",
    "kernel": "moved norm half",
    "memory": "moved norm equation half",
    "angles": "moved norm stepwise equation",
    "streaming": "norm equation half",
    "yarn": "moved stepwise half",
    "converted": "moved norm stepwise half",
    "config": "moved norm stepwise half",
    "loaded": "moved norm half",
    "local": "moved norm stepwise half",
    "indexer": "moved norm stepwise half",
    "stretch": "norm equation half",
    "slopes": "moved stepwise half",
    "sign": "moved stepwise half",
    "encoder": "moved half",
    "mask": "moved equation half",
}


YARN = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}


@pytest.fixture(autouse=True)
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.json"))


@pytest.mark.parametrize("name", EXHIBITS)
def test_each_exhibit_is_found_by_some_checks_and_not_by_others(name):
    said = {
        found: " ".join(check for check in CHECKS if measured(name, check).found is found)
        for found in (True, False)
    }
    assert said == {True: FOUND[name], False: BLIND[name]}
    assert FOUND[name] and BLIND[name]  # so the choice matters


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_repair_passes_every_check_and_is_short(name):
    exhibit = EXHIBITS[name]
    repaired = exhibit.repaired
    assert {
        check: str(run(exhibit, repaired)) for check, run in CHECKS.items() if run(exhibit, repaired).found
    } == {}
    changed = museum.repaired_lines(exhibit).splitlines()
    assert {line[0] for line in changed} == {"-", "+"} and len(changed) <= 5


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_code_is_short_and_does_not_give_the_answer_away(name):
    exhibit = EXHIBITS[name]
    assert len(exhibit.code.splitlines()) <= 20
    kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(exhibit.code).readline)]
    assert tokenize.COMMENT not in kinds and '"""' not in exhibit.code
    assert not re.search("bug|broken|wrong|mistake|fix|todo", exhibit.code + exhibit.title, re.I)
    assert name not in exhibit.code.split("\n")[0]


def test_each_exhibit_names_its_source():
    assert len(EXHIBITS) >= 12
    for exhibit in EXHIBITS.values():
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", exhibit.source) and exhibit.said and exhibit.diagnosis
    assert len({exhibit.source for exhibit in EXHIBITS.values()}) == len(EXHIBITS)


def test_each_check_finds_something():
    assert set(" ".join(FOUND.values()).split()) == set(CHECKS)


def test_the_tool_knows_an_exhibit_by_the_name_that_is_shown():
    """Where it can be given as it is: a rotation."""
    declared = {"head_dim": 16, "layout": "half"}
    bases = {"config": 500_000.0}
    for name in ("halves", "memory", "config", "loaded", "local", "indexer", "converted"):
        subject = EXHIBITS[name].broken()

        def rotate(x, positions, subject=subject):
            if positions.ndim > 1 or len(positions) > 1 and not bool((positions.diff() == 1).all()):
                raise NotImplementedError("positions that do not count up")
            return subject.rotate(x, int(positions[0]))

        layout = {"layout": "interleaved"} if name == "halves" else {}
        report = conformance.check(rotate, axes="bld", base=bases.get(name, 10_000.0), **declared | layout)
        assert EXHIBITS[name].bug in report.named, (name, report)
    assert {exhibit.bug for exhibit in EXHIBITS.values()} - {""} <= conformance.BUGS.keys()


def attend(q, k, v):
    """The attention of an exhibit that gives scores."""
    s = torch.stack([EXHIBITS["yarn"].broken().scores(*each) for each in zip(q, k, strict=True)])
    ahead = torch.ones(s.shape[-2:]).triu(s.shape[-1] - s.shape[-2] + 1).bool()
    return s.masked_fill(ahead, -torch.inf).softmax(-1) @ v


WORDS = torch.randn(50, 16, generator=torch.Generator().manual_seed(0))


def packed(tokens, documents=None):
    """A decoder of one layer, with a mask that keeps documents apart."""
    documents = torch.zeros_like(tokens) if documents is None else documents
    x = seeded(EXHIBITS["packed"].broken, 0).embed(WORDS[tokens], documents + 1)
    seen = (documents[:, :, None] == documents[:, None]).tril()
    return (x @ x.mT / 4).masked_fill(~seen, -torch.inf).softmax(-1) @ x


def streaming(tokens, cache=None):
    """A decoder of one layer and four equal heads, whose cache drops what is old."""
    cache, out = {} if cache is None else cache, []
    subject = cache.setdefault("keys", EXHIBITS["streaming"].broken())
    for x in WORDS[tokens[0]].view(-1, 1, 1, 16).expand(-1, 4, -1, -1):
        weights = subject.step(x, x).softmax(-1)
        cache["values"] = subject.kept(torch.cat([cache.get("values", torch.empty(4, 0, 16)), x], 1))
        out.append((weights @ cache["values"]).flatten())
    return torch.stack(out)[None]


@pytest.mark.parametrize(
    "name, function, declared",
    [
        ("yarn", attend, {"head_dim": 16, "n_heads": 4, "layout": "interleaved", "scaling": YARN}),
        ("packed", packed, {}),
        ("streaming", streaming, {"cache": dict, "window": 8}),
    ],
)
def test_the_tool_knows_an_exhibit_in_an_attention_by_its_name(name, function, declared):
    assert EXHIBITS[name].bug in conformance.check(function, **declared).named


def test_a_repair_that_fits_nowhere_is_an_error():
    from dataclasses import replace

    with pytest.raises(ValueError, match="'nowhere' stands 0 times in CausalAttention"):
        replace(EXHIBITS["mask"], repair=(("nowhere", ""),)).repaired_code  # noqa: B018


# ---- verdicts ----


def test_what_goes_elsewhere_is_a_share_of_the_attention():
    a = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]]])
    b = torch.tensor([[[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [0.25, 0.75]]])
    assert elsewhere(a, b).tolist() == [1, 0.25]


def test_the_first_word_that_differs_is_named():
    assert "first at word 258 of 512" in str(measured("keys", "equation"))  # 257 back there is no row
    assert "first at word 131 of 512" in str(measured("buckets", "equation"))  # 129 and 130: too little
    assert "first at word 258 of 512" in str(measured("angles", "half"))  # position 257 becomes 256
    assert "first at word 2 of 24" in str(measured("memory", "stepwise"))


def test_verdicts_in_words():
    assert str(measured("window", "gradient")) == "62 of 105 rows of the table get no gradient → FOUND"
    assert str(measured("keys", "gradient")).endswith("no gradient: this check sees nothing")
    assert str(measured("mask", "norm")) == "does not apply: it turns no vectors"
    assert str(measured("table", "resize")).startswith("it stops with RuntimeError: size mismatch for pe")


def test_a_constant_per_query_is_no_mistake():
    class Shifted(EXHIBITS["sign"].repaired):
        def scores(self, q, k):
            return super().scores(q, k) + torch.arange(q.shape[1])[:, None]

    for check in ("moved", "equation", "stepwise"):
        assert CHECKS[check](EXHIBITS["sign"], Shifted).found is False


def test_what_was_read_before_does_not_excuse_what_is_read_now():
    class Sharper(EXHIBITS["mask"].repaired):
        calls = 0

        def scores(self, q, k):
            self.calls += 1
            return super().scores(q, k) * min(self.calls, 2)

    assert CHECKS["stepwise"](EXHIBITS["mask"], Sharper).found


def test_a_check_leaves_the_random_numbers_alone():
    state = torch.get_rng_state()
    verdict = CHECKS["equation"](EXHIBITS["sign"])
    assert torch.equal(torch.get_rng_state(), state)
    assert verdict == CHECKS["equation"](EXHIBITS["sign"]) and SAME < 0.01


def test_a_mistake_in_a_check_is_not_a_finding():
    broken = Check("", lambda _: True, "", lambda *_: {}["nothing"])
    with pytest.raises(KeyError):
        broken(EXHIBITS["mask"])


# ---- the widgets ----


def test_a_visit_says_what_was_measured():
    visit = museum.visit("mask")
    visit.buttons["moved"].click()
    assert "sees nothing" in visit.status.value and "pytorch/pytorch" not in visit.status.value
    assert visit.buttons["moved"].icon == "times"
    visit.buttons["norm"].click()
    assert "does not apply: it turns no vectors." in visit.status.value
    assert visit.asks_line.layout.display == "none"
    visit.buttons["stepwise"].click()
    assert visit.buttons["stepwise"].icon == "check" and "FOUND" in visit.status.value
    entry = {"choice": "stepwise", "right": True, "tried": ["moved", "norm", "stepwise"]}
    assert read() == {"09.museum.mask": entry}
    visit.choose("moved")
    assert read() == {"09.museum.mask": entry}
    assert all(button.description for button in visit.buttons.values())


def test_the_line_is_named_before_it_is_told():
    visit = museum.visit("mask")
    assert len(visit.lines) == len(EXHIBITS["mask"].code.splitlines())
    visit.choose("stepwise")
    assert visit.asks_line.layout.display == "" and not visit.told.value
    assert EXHIBITS["mask"].diagnosis[:20] not in visit.status.value
    visit.lines[4].click()
    assert visit.lines[4].icon == "times" and "Not line 4: it is line 3." in visit.told.value
    assert 'href="https://github.com/pytorch/pytorch/issues/103082"' in visit.told.value
    assert "\n+         mask = torch.ones(q.shape[1], k.shape[1]" in visit.told.value
    visit.lines[3].click()
    assert visit.lines[3].icon == "check" and "You have named it." in visit.told.value
    entry = read()["09.museum.mask"]
    assert (entry["line"], entry["named"], entry["right"]) == (4, False, True)  # the first one counts


def test_a_line_in_which_it_can_be_mended_as_well_is_right():
    visit = museum.visit("halves")
    visit.name_line(6)
    assert "You have named it. It can be mended there, too." in visit.told.value
    assert read()["09.museum.halves"]["named"] is True


@pytest.mark.parametrize("name", EXHIBITS)
def test_each_mistake_stands_in_few_lines(name):
    for part in EXHIBITS[name].also:
        at = [n for n, line in enumerate(EXHIBITS[name].code.splitlines(), 1) if part in line]
        assert len(at) == 1 and at[0] not in museum.wrong_lines(EXHIBITS[name])
    lines, code = museum.wrong_lines(EXHIBITS[name]), EXHIBITS[name].code.splitlines()
    assert 1 <= len(lines) <= 2
    assert [f"- {code[n - 1]}" for n in lines] == [
        line for line in museum.repaired_lines(EXHIBITS[name]).splitlines() if line[0] == "-"
    ]


def test_weights_with_words_in_front():
    """Of all that promise it, and as the check has them."""
    pairs = museum.in_front()
    assert [*pairs] == [name for name in EXHIBITS if measured(name, "moved").found is not None]
    found = {name for name, (late, early) in pairs.items() if elsewhere(late, early).max() > SAME}
    assert found == {name for name in EXHIBITS if measured(name, "moved").found}


def test_the_stored_visit_has_the_code_and_not_the_answer():
    data, _ = museum.visit("waves")._repr_mimebundle_()
    plain = re.sub("<.*?>", "", data["text/html"])
    for text in (plain, data["text/plain"]):
        assert "class PositionalEncoder(nn.Module):" in text and "Which check finds it?" in text
        assert "SamLynnEvans" not in text and EXHIBITS["waves"].diagnosis[:20] not in text
    assert data["text/html"].count("<li>") == len(CHECKS)


def test_the_gallery_shows_what_the_menu_names():
    gallery = museum.gallery("waves", "mask")
    assert gallery.menu.texts[0] == EXHIBITS["table"].title and len(gallery.menu.texts) == len(EXHIBITS) - 2
    assert gallery.visit.name == "table"
    gallery.menu.index = 1
    assert gallery.children == (gallery.menu, gallery.visit) and gallery.visit.name == "gpt2"
    assert "class GPT2Embedding" in gallery._repr_mimebundle_()[0]["text/plain"]


def test_a_gallery_sends_fewer_messages_than_may_wait_in_line(monkeypatch):
    """ZeroMQ keeps a thousand for a page that is slow to read, and drops what comes after them."""
    made = []
    monkeypatch.setattr(widgets.Widget, "_widget_construction_callback", made.append)
    museum.gallery("halves", "kernel", "memory", "keys")._repr_mimebundle_()
    assert 20 < len(made) < 200


def test_the_tour_counts():
    rows = museum.tour().rows()
    assert len(rows) == len(EXHIBITS) + 1 and {len(row) for row in rows} == {len(CHECKS) + 1}
    assert dict(zip(CHECKS, rows[-1][1:], strict=True))["equation"] == "15 of 23"
    assert "✔ FOUND (62 of 105)" in repr(museum.tour())
    page = museum.tour()._repr_html_()
    assert page.count("<tr>") == len(EXHIBITS) + 2 and page.startswith("<details><summary>")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: museum.visit("wave"), "no exhibit 'wave'; there are waves, table"),
        (lambda: museum.gallery("wave"), "no exhibit 'wave'"),
        (lambda: measured("waves", "shift"), "no check 'shift'; there are moved, norm"),
    ],
)
def test_unknown_names(call, words):
    with pytest.raises(KeyError, match=words):
        call()
