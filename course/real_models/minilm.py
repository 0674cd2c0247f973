"""MiniLM, a BERT, under the learner's measures: what it adds up, its table, and the scores of a head."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor

from tutorial_lib import plots
from tutorial_lib.data import SOURCES, load_minilm_positions
from tutorial_lib.language import _, joined

from .smollm2 import gently
from .souvenir import keep

FIRST, STEP = 1000, 100
"""Which words: every hundredth from number 1,000 on. Before it stand unused entries and single signs."""
HEADS, WIDTH = 12, 32
APART = range(1, 25)


def minilm_tables(words: int = 300) -> tuple[Tensor, Tensor]:
    """Vectors of some words ``[words, 384]`` and the trained rows of positions 1 … 509, ``[509, 384]``.

    all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0). Rows 0, 510 and 511 are special (notebook 03).
    """
    return weight("embeddings.word_embeddings.weight")[FIRST::STEP][:words], load_minilm_positions()[1:510]


def weight(name: str) -> Tensor:
    """A tensor of the released file, such as ``"encoder.layer.0.attention.self.key.bias"``, as float32."""
    with safe_open(SOURCES["minilm"].path(), framework="pt") as file:
        return file.get_tensor(name).float()


# ---- the table as a ruler ----
@gently
def ruler(sum_similarity: Callable, longer_table: Callable) -> None:
    """Measure what is hidden in MiniLM's sums, and draw its table's marks, as trained and made longer."""
    words, rows = minilm_tables()
    with_token, with_place = sum_similarity(words, rows[:200])
    parts = _("token {with_token:.2f}, position {with_place:.2f}").format(
        with_token=with_token, with_place=with_place
    )
    tables = {
        _("as it was trained"): rows,
        _("copied"): longer_table(rows, 2 * len(rows), "copy"),
        _("stretched"): longer_table(rows, 2 * len(rows), "interpolate"),
    }
    curves, marks = {}, []
    for name, table in tables.items():
        unit = F.normalize(table, dim=1)
        curves[name] = [(unit[r:] * unit[:-r]).sum(1).mean().item() for r in APART]
        tops = (r for r in APART[1:-1] if curves[name][r - 1] > max(curves[name][r - 2], curves[name][r]))
        marks.append(f"{name} {next(tops, '–')}")
    fig = plots.lines(
        APART,
        curves,
        size=(11, 4.2),
        xlabel=_("rows apart"),
        ylabel=_("mean cosine"),
        title=_("MiniLM's sums: cosine with the {parts}").format(parts=parts),
    )
    shared = " | ".join(marks)
    what = _("Three lines of the mean cosine of two rows over their distance, 1 to 24. First mark: {marks}.")
    keep(fig, what.format(marks=shared), f"MiniLM: {parts} | {shared}")


# ---- a head, term by term ----
def score_terms(sentence: str) -> tuple[list[str], dict[str, Tensor]]:
    """A sentence's tokens, and the terms whose sum the scores of the first layer are, ``[12, L, L]`` each.

    Words, places and what all tokens share are scaled by one LayerNorm, so the three parts of a token add up
    to its input, and the nine products of a query's and a key's parts to its scores.
    """
    from tokenizers import Tokenizer  # late: the other endings need none

    tokenizer = Tokenizer.from_file(str(SOURCES["minilm"].path().parent / "tokenizer.json"))
    tokenizer.no_padding()
    read = tokenizer.encode(sentence)
    word = weight("embeddings.word_embeddings.weight")[read.ids]
    place = load_minilm_positions()[: len(word)]
    rest = weight("embeddings.token_type_embeddings.weight")[0].expand_as(word)
    scale = (word + place + rest).var(-1, unbiased=False, keepdim=True).sqrt()
    norm = "embeddings.LayerNorm."
    parts = [weight(f"{norm}weight") * (x - x.mean(-1, keepdim=True)) / scale for x in (word, place, rest)]
    parts[2] = parts[2] + weight(f"{norm}bias")

    def projected(which: str) -> list[Tensor]:
        name = f"encoder.layer.0.attention.self.{which}."
        out = [x @ weight(f"{name}weight").T for x in parts]
        out[2] = out[2] + weight(f"{name}bias")
        return [x.unflatten(-1, (HEADS, WIDTH)).transpose(0, 1) for x in out]

    q, k = projected("query"), projected("key")
    products = {(i, j): q[i] @ k[j].mT / WIDTH**0.5 for i, j in itertools.product(range(3), repeat=2)}
    named = {
        "word · word": products.pop((0, 0)),
        "any · word": products.pop((2, 0)),
        "mixed": products.pop((0, 1)) + products.pop((1, 0)),
        "place · place": products.pop((1, 1)),
    }
    return read.tokens, named | {"the rest": sum(products.values())}


def share_moved(terms: Mapping[str, Tensor], name: str) -> Tensor:
    """The share of attention that goes elsewhere without one of the terms, ``[12]``: a mean of queries."""
    scores = torch.stack([*terms.values()]).sum(0)
    change = (scores - terms[name]).softmax(-1) - scores.softmax(-1)
    return change.clamp(min=0).sum(-1).mean(-1)


@gently
def term_by_term(sentence: str, heads: tuple[int, ...], moved_mass: Callable) -> None:
    """Draw two heads of MiniLM's first layer (1 … 12): their weights, and the terms of their scores.

    Above each term stands the learner's measure: how much attention moves if the term is taken away.
    """
    tokens, parts = score_terms(sentence)
    said = _("word · word"), _("any · word"), _("mixed"), _("place · place"), _("the rest")
    terms = dict(zip(said, parts.values(), strict=True))
    scores = torch.stack([*terms.values()]).sum(0)
    everywhere = torch.ones(scores.shape[1:], dtype=torch.bool)
    moved = {name: moved_mass(scores, -term, everywhere) for name, term in terms.items()}
    fig, axes = plots.panels(len(heads), len(terms) + 1, size=(14, 3.2 * len(heads)), squeeze=False)
    named = tokens if len(tokens) < 10 else [""] * len(tokens)  # or there is no room for them
    shared = []
    for row, head in zip(axes, heads, strict=True):
        plots.heat(
            scores[head - 1].softmax(-1),
            ax=row[0],
            title=_("head {n}: weights").format(n=head),
            xticks=[""] * len(tokens),
            yticks=[""] * len(tokens),
            limits=(0, 1),
            cmap="weights",
            colorbar="",
        )
        row[0].set_yticks(range(len(tokens)), named)  # words of the data, in every language
        for ax, (name, term) in zip(row[1:], terms.items(), strict=True):
            seen = term[head - 1] - term[head - 1].mean(-1, keepdim=True)
            last = _("score, in its row") if ax is row[-1] else None
            plots.heat(
                seen,
                ax=ax,
                title=f"{name}\n{moved[name][head - 1]:.2f}",
                xticks=[""] * len(tokens),
                yticks=[""] * len(tokens),
                limits=(-6, 6),
                colorbar=last,
            )
        most = max(terms, key=lambda name: moved[name][head - 1])
        shared.append(
            _("head {n}: {term} {moved:.2f}").format(n=head, term=most, moved=moved[most][head - 1])
        )
    ends = " | ".join(shared)
    what = _("Heat maps of weights, and of the five terms that their scores are the sum of.")
    keep(fig, joined([what, f"{ends}."]), f"“{sentence}” {ends}")
