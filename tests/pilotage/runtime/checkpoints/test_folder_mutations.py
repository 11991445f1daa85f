"""A modified checkpoint is refused by name, or restored exactly as saved."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import ProgramFileError

MEMORY = 2**30
"""The memory limit for reading a small modified file; it limits addresses, including mappings."""

OLD = Path(__file__).with_name("format_1") / "checkpoint-00000003-0000.pilotage"


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.4), nn.Linear(6, 2))

    def forward(self, x, y):
        output = self.layers(x)
        return output, nn.functional.cross_entropy(output, y)


def flip(data, chance):
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ chance.randrange(1, 256)]) + data[place + 1 :]


def cut(data, chance):
    return data[: chance.randrange(len(data))]


def behead(data, chance):
    return data[chance.randrange(1, len(data)) :]


def insert(data, chance):
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.randbytes(chance.choice([1, 2, 8, 64, 5000])) + data[place:]


def remove(data, chance):
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.choice([1, 2, 8, 64, 5000]) :]


def swap(data, chance):
    a, b, c, d = sorted(chance.randrange(len(data) + 1) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def blank(data, chance):
    start, size = chance.randrange(len(data)), chance.choice([1, 8, 512, 4096])
    return data[:start] + bytes(len(data[start : start + size])) + data[start + size :]


def digit(data, chance):
    """Change a number in the plain data: a length, a shape, an offset."""
    places = [place for place, byte in enumerate(data[:8000]) if chr(byte).isdigit()]
    place = chance.choice(places)
    return (
        data[:place] + chance.choice([b"9", b"0", b"-1", b"99999999999999999999", b"1e9", b"[[[["]) + data[place + 1 :]
    )


MUTATIONS = (flip, flip, cut, behead, insert, remove, swap, blank, digit)


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(1)
    module = Network()
    step = pilotage.training(
        module, torch.optim.Adam(module.parameters(), lr=0.05), tier="graph", broadcast_buffers=False
    )
    step(torch.randn(16, 4), torch.randint(2, (16,)))
    step.compile(torch.randn(16, 4), torch.randint(2, (16,)))
    path = step.save_checkpoint(tmp_path / "checkpoints", 3, position={"epoch": 1, "batch": 2})
    return module, step, path


def state_of(module, step):
    tensors = [*module.state_dict().values(), *step.optimizer_state_dict()["slots"].values()]
    return [tensor.clone() for tensor in tensors]


@pytest.fixture
def limited():
    """Limit the address space, so that a file that needs more raises MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def restored(step, folder):
    """The restored checkpoint, or the error."""
    try:
        return step.restore_checkpoint(folder)
    except ProgramFileError as error:
        return str(error)


def refuses_or_restores(saved, mutated, found, expected) -> bool:
    """Whether a file is refused, leaving the model unchanged; otherwise the model is as saved."""
    module, step, path = saved
    step(torch.randn(16, 4), torch.randint(2, (16,)))
    before = state_of(module, step)
    assert not all(map(torch.equal, before, expected))
    path.write_bytes(mutated)
    start = time.perf_counter()
    again = restored(step, path.parent)
    assert time.perf_counter() - start < 10
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    is_refused = isinstance(again, str)
    assert path.name in again if is_refused else again == found
    assert all(map(torch.equal, state_of(module, step), before if is_refused else expected))
    return is_refused


def try_mutations(saved, chance, count):
    module, step, path = saved
    refused = 0
    for original in (path.read_bytes(), OLD.read_bytes()):
        path.write_bytes(original)
        found = step.restore_checkpoint(path.parent)
        expected = state_of(module, step)
        for _ in range(count // 2):
            mutated = chance.choice(MUTATIONS)(original, chance)
            refused += refuses_or_restores(saved, mutated, found, expected)
    assert refused > 0.9 * count


def test_modified_checkpoints_are_refused_by_name_or_harmless(saved, limited):
    try_mutations(saved, random.Random(5), 100)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_two_thousand_modified_checkpoints_are_refused_or_harmless(saved, limited, seed):
    try_mutations(saved, random.Random(seed), 500)


@pytest.mark.parametrize("original", ["safetensors", "zip"])
def test_every_byte_of_a_checkpoint_is_checked(saved, original):
    """Change every 97th byte: the file is refused, or read as written."""
    module, step, path = saved
    data = path.read_bytes() if original == "safetensors" else OLD.read_bytes()
    path.write_bytes(data)
    found = step.restore_checkpoint(path.parent)
    expected = state_of(module, step)
    for place in range(0, len(data), 97):
        refuses_or_restores(saved, data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], found, expected)
