"""What is unpacked once and mapped afterwards: the same numbers, one copy, and a torn file is noticed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tutorial_lib.data import SOURCES, load_smollm2, mapped, pretrained
from tutorial_lib.model import Transformer

MAPS = Path("/proc/self/maps")


class Kept:
    """A source in a folder of its own, and how often it was unpacked."""

    def __init__(self, folder: Path):
        self.source = folder / "package" / "model.bin"
        self.source.parent.mkdir()
        self.source.write_bytes(b"first version")
        self.cache, self.times = folder / "cache" / "transformer-order", 0

    def unpack(self):
        self.times += 1
        return {"weights": {"a": torch.arange(100_000.0) * self.source.stat().st_size}, "tokenizer": "{}"}

    def load(self):
        return mapped.mapped(self.source, self.unpack)["weights"]["a"]

    def files(self, folder=None):
        return sorted((folder or self.source.parent).glob("*.mapped*"))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    one = Kept(tmp_path)
    monkeypatch.setattr(mapped, "cache_folder", lambda: one.cache)
    return one


def mapping(tensor) -> str:
    """The line of the system's list of mappings that holds a tensor's memory."""
    for line in MAPS.read_text().splitlines():
        first, last = (int(end, 16) for end in line.split()[0].split("-"))
        if first <= tensor.data_ptr() < last:
            return line
    return ""


def test_it_is_unpacked_once_and_the_numbers_are_the_same(kept):
    fresh, first, second = kept.unpack()["weights"]["a"], kept.load(), kept.load()
    assert torch.equal(first, fresh) and torch.equal(second, fresh)
    assert kept.times == 2 and len(kept.files()) == 1 and not kept.cache.exists()


@pytest.mark.skipif(not MAPS.exists(), reason="only Linux lists the mappings of a process")
def test_even_the_first_who_loads_maps_and_a_writer_has_a_copy(kept):
    loaded = kept.load()
    (file,) = kept.files()
    _, rights, *_, path = mapping(loaded).split()
    assert path == str(file) and rights.endswith("p"), "mapped, private: written pages are copied"
    before = hashlib.sha256(file.read_bytes()).digest()
    loaded.fill_(7)
    assert hashlib.sha256(file.read_bytes()).digest() == before
    assert kept.load()[1] == kept.source.stat().st_size


def test_the_file_can_be_read_by_everybody_who_may_read_the_source(kept):
    kept.load()
    (file,) = kept.files()
    assert os.name == "nt" or file.stat().st_mode == kept.source.stat().st_mode


def test_another_version_of_the_source_is_unpacked_anew(kept):
    kept.load()
    kept.source.write_bytes(b"secnd version")  # same size, same second
    kept.load()
    assert kept.times == 2 and len(kept.files()) == 1, "the old one has gone"


def test_another_layout_is_unpacked_anew(kept, monkeypatch):
    kept.load()
    monkeypatch.setattr(mapped, "LAYOUT", "next")
    kept.load()
    assert kept.times == 2


@pytest.mark.parametrize("torn", [0, 1000, -1, "of another program"])
def test_a_torn_file_is_made_again(kept, torn):
    right = kept.load().clone()
    (file,) = kept.files()
    file.write_bytes(b"something else" if isinstance(torn, str) else file.read_bytes()[:torn])
    assert torch.equal(kept.load(), right) and torch.equal(kept.load(), right)
    assert kept.times == 2 and len(kept.files()) == 1


def refuse(monkeypatch, *folders):
    """Nothing can be written below these folders, whoever runs the tests."""
    opened = Path.open

    def open_(path, mode="r", *args, **more):
        if "x" in mode and any(folder in path.parents for folder in folders):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, mode, *args, **more)

    monkeypatch.setattr(Path, "open", open_)


def test_where_the_package_is_read_only_the_cache_is_taken(kept, monkeypatch):
    refuse(monkeypatch, kept.source.parent)
    kept.load(), kept.load()
    assert kept.times == 1 and not kept.files() and len(kept.files(kept.cache)) == 1


def test_where_nothing_can_be_written_it_is_as_ever(kept, monkeypatch):
    refuse(monkeypatch, kept.source.parent, kept.cache)
    assert kept.load()[1] == kept.source.stat().st_size
    assert not kept.files() and not kept.files(kept.cache)


def test_a_disk_that_is_nearly_full_is_left_alone(kept, monkeypatch):
    monkeypatch.setattr(mapped.shutil, "disk_usage", lambda _: SimpleNamespace(free=1e9))
    kept.load(), kept.load()
    assert kept.times == 2 and not kept.files() and not kept.files(kept.cache)


def test_a_write_that_fails_leaves_nothing_behind(kept, monkeypatch):
    def full(made, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mapped.torch, "save", full)
    assert kept.load()[1] == kept.source.stat().st_size
    assert not kept.files() and not kept.files(kept.cache)


# ---- SmolLM2 ----
@pytest.fixture(scope="module")
def unpacked():
    """SmolLM2 as its package gives it: without any file of ours."""
    return pretrained._unpack(SOURCES["smollm2"].path())


def test_smollm2_is_the_same_to_the_last_bit(unpacked):
    smollm2 = load_smollm2()
    weights = unpacked["weights"] | {"head.weight": unpacked["weights"]["tokens.weight"]}
    assert smollm2.tokenizer.to_str() == unpacked["tokenizer"]
    kept = smollm2.model.state_dict()
    assert kept.keys() == weights.keys() and all(torch.equal(kept[name], weights[name]) for name in weights)
    with torch.device("meta"):
        fresh = Transformer(pretrained.SMOLLM2, smollm2.model.encoding)
    fresh.load_state_dict(weights, assign=True)
    tokens = smollm2.encode("In 2026, the cat chased the dog. 猫追狗")
    with torch.no_grad():
        assert torch.equal(fresh.eval()(tokens), smollm2.model(tokens))


PRIVATE = """
import re
from pathlib import Path
from tutorial_lib.data import load_smollm2
def private():
    text = Path("/proc/self/smaps").read_text()
    return sum(map(int, re.findall(r"^Private_Dirty: *(\\d+) kB", text, re.M)))
import tokenizers
before = private()
smollm2 = load_smollm2()
smollm2.losses(smollm2.encode("The capital of France is Paris."))
print((private() - before) // 1000)
"""


@pytest.mark.skipif(not MAPS.exists(), reason="only Linux says which memory is shared")
def test_a_second_process_keeps_no_weights_of_its_own():
    load_smollm2()  # the file is there
    done = subprocess.run([sys.executable, "-c", PRIVATE], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 250, "megabytes; the weights alone are 538"
