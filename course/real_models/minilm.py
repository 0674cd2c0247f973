"""The two tables of MiniLM, a BERT: what a real model adds up."""

from __future__ import annotations

from safetensors import safe_open
from torch import Tensor

from tutorial_lib.data import SOURCES, load_minilm_positions

FIRST, STEP = 1000, 100
"""Which words: every hundredth from number 1,000 on. Before it stand unused entries and single signs."""


def minilm_tables(words: int = 300) -> tuple[Tensor, Tensor]:
    """Vectors of some words ``[words, 384]`` and the trained rows of positions 1 … 509, ``[509, 384]``.

    all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0). Rows 0, 510 and 511 are special (notebook 03).
    """
    with safe_open(SOURCES["minilm"].path(), framework="pt") as file:
        tokens = file.get_tensor("embeddings.word_embeddings.weight").float()
    return tokens[FIRST::STEP][:words], load_minilm_positions()[1:510]
