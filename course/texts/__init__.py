"""A text in Chinese, in which the Chinese edition finds again what its lessons measure in an English one.

``honglou.txt`` holds the first twenty chapters of *Dream of the Red Chamber* (红楼梦, Cao Xueqin, printed
1791), a chapter a line, from the repository ybdesire/baby_gpt_hongloumeng. Punctuation is the work of later
editors, so it is left out: the first prints had none. The text is in the public domain.
"""

from __future__ import annotations

import functools
from pathlib import Path

from tutorial_lib.data.corpus import Corpus


@functools.cache
def honglou() -> Corpus:
    """The text as the bytes of UTF-8, three to a character: 332,573 of them, of 71 kinds, each a symbol.

    So a tokeniser reads Chinese that it has no words for. Whole characters would be 3,237 symbols, and in a
    short training a small model hardly gets to their order.
    """
    return Corpus.of(Path(__file__).with_name("honglou.txt").read_bytes().decode("latin-1"))
