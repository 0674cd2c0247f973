"""The mutants are what they say: one line each, and what comes out is not what the right code says."""

import pytest
import torch

from .mutants import BUGS, CLASSES, EQUIVALENT, HARMLESS, MUTATIONS, RIGHT, load


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


def outputs(module):
    """All that a module of its kind says to a few small inputs: a list of tensors."""
    with torch.no_grad():
        return list(RUNS[module.ABOUT["kind"]](module))


def rotated(module):
    x = random(2, 2, 5, 16)
    for positions in (torch.arange(5), torch.tensor([[0, 3, 4, 5, 9], [7, 8, 257, 1003, 2001]])):
        yield module.rotate(x, positions)
        yield module.rotate(x.bfloat16(), positions).float()


def attended(module):
    for heads, past in ((2, 3), (3, 5), (6, 4)):
        q, k, v = (random(2, heads, past + 4, 16).roll(n, -1) for n in range(3))
        yield module.attend(q, k, v)
        yield module.attend(q[:, :, past:], k, v, offset=past)
        yield module.attend(q, k, v, offset=1501)  # far from its keys


def decoded(module):
    decoder, tokens = module.Decoder(0), torch.arange(14).view(2, 7) * 5 % 23
    ascending = torch.tensor([[0, 2, 3, 4, 9, 10, 12], [1, 2, 5, 6, 7, 8, 120]])
    yield decoder.logits(tokens)
    yield decoder.logits(tokens, positions=ascending)
    if module.ABOUT["encoding"] != "learned":
        yield decoder.logits(tokens, positions=ascending * 101)
    cache = {}
    for part in tokens.split((3, 2, 1, 1), dim=1):
        yield decoder.logits(part, cache=cache)
    if "mask" in module.ABOUT["takes"]:
        mask = torch.arange(7) >= torch.tensor([[0], [3]])
        yield decoder.logits(tokens, mask=mask)[mask]
    if "documents" in module.ABOUT["takes"]:
        yield decoder.logits(tokens, documents=torch.tensor([[0, 0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 1, 1, 1]]))


RUNS = {
    "rotate": rotated,
    "rotate_2d": lambda m: [
        m.rotate(random(1, 2, 6, 16), torch.cartesian_prod(torch.arange(2), torch.arange(3)))
    ],
    "mrope": lambda m: [m.rotate(random(2, 2, 6, 16), torch.arange(36).view(3, 2, 6) % 11)],
    "indexer": lambda m: [f(random(1, 2, 4, 8), torch.arange(4)) for f in (m.rotate, m.index_rotate)],
    "bias": lambda m: [m.bias(24, 24), m.bias(3, 24), m.bias(1, 5)],
    "attend": attended,
    "decoder": decoded,
    "streaming": lambda m: [m.Decoder(0).logits(torch.arange(24).view(2, 12) % 23)],
    "sinusoid": lambda m: [m.table(300, 16)],
    "resize": lambda m: [m.resize(random(3, 4, 2), (6, 5))],
}


def weights(module):
    """What is left of a causal bias in attention."""
    for bias in outputs(module):
        Lq, Lk = bias.shape[1:]
        ahead = torch.ones(Lq, Lk, dtype=torch.bool).triu(Lk - Lq + 1)
        yield bias.masked_fill(ahead, -torch.inf).softmax(-1)


def same(some, others):
    """Up to rounding, which in angles of far positions is 1e-4 of what there is."""
    return all(
        torch.allclose(a, b, atol=1e-4 * b[b.isfinite()].abs().max().item(), rtol=0)
        for a, b in zip(some, others, strict=True)
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in RIGHT.glob("*.py")))
def test_each_mutation_is_one_line_and_shows(name):
    source, right = (RIGHT / f"{name}.py").read_text(), load(name)
    expected = outputs(right)
    assert not any(each.isnan().any() for each in expected)
    for slug, old, new in MUTATIONS[name]:
        assert source.count(old) == 1 and "\n" not in old + new, (slug, old)
        mutant = load(name, slug)
        got = outputs(mutant)
        assert [each.shape for each in got] == [each.shape for each in expected], slug
        assert same(got, expected) == ((name, slug) in EQUIVALENT), slug
        if right.ABOUT["kind"] == "bias" and right.ABOUT["causal"]:
            assert same(weights(mutant), weights(right)) == ((name, slug) in HARMLESS), slug


@pytest.mark.parametrize("name", [name for name in MUTATIONS if name.startswith("decoder_")])
def test_a_right_decoder_keeps_its_promises(name):
    """The same logits with a cache, behind padding, and packed behind another text."""
    module = load(name)
    decoder, tokens, cache = module.Decoder(1), torch.arange(20).view(2, 10), {}
    parts = [decoder.logits(part, cache=cache) for part in tokens.split((4, 3, 1, 1, 1), dim=1)]
    whole = decoder.logits(tokens)
    assert same([torch.cat(parts, 1)], [whole])
    longer = torch.cat((tokens.flip(1)[:, :3], tokens), dim=1)
    first = torch.arange(13).expand(2, -1) < 3
    for given in {"mask", "documents"} & set(module.ABOUT.get("takes", ())):
        assert same([decoder.logits(longer, **{given: ~first})[:, 3:]], [whole]), given


def test_each_bug_has_a_sentence_and_each_sentence_a_mutant():
    made = [(name, slug) for name, mutations in MUTATIONS.items() for slug, _, _ in mutations]
    assert len(set(made)) == len(made)
    assert {slug for _, slug in made} == set(BUGS)
    assert set(EQUIVALENT) | set(HARMLESS) <= set(made)
    assert all(members <= set(BUGS) for members, _ in CLASSES)
