"""What the course reads: a real corpus, two real pretrained models, and synthetic tasks.

Everything comes from installed packages; nothing is downloaded at run time.
"""

from .corpus import Corpus, kjv
from .images import digits, patches
from .pretrained import SMOLLM2, Pretrained, load_minilm_positions, load_smollm2
from .sources import SOURCES, Source
from .tasks import (
    bag_of_words_ceiling,
    copying,
    first_token,
    induction,
    order_sentences,
    order_task,
    set_task,
    slot_or_back,
    steps_back,
    translation,
)

__all__ = [
    "SMOLLM2",
    "SOURCES",
    "Corpus",
    "Pretrained",
    "Source",
    "bag_of_words_ceiling",
    "copying",
    "digits",
    "first_token",
    "induction",
    "kjv",
    "load_minilm_positions",
    "load_smollm2",
    "order_sentences",
    "order_task",
    "patches",
    "set_task",
    "slot_or_back",
    "steps_back",
    "translation",
]
