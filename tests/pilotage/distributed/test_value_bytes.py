from __future__ import annotations

import contextlib
import json
import os
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.value_bytes import from_bytes, to_bytes
from pilotage.errors import DistributedError

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.text() | st.integers() | st.tuples(st.text(), st.integers()) | st.none()
VALUES = st.recursive(
    LEAVES | st.complex_numbers(allow_nan=False) | st.frozensets(KEYS),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner) | st.sets(KEYS),
    max_leaves=20,
)


@given(VALUES)
def test_values_are_restored_with_the_same_types(value):
    found = from_bytes(to_bytes(value))
    assert found == value
    assert repr(found) == repr(value) or isinstance(value, set | frozenset | dict | list | tuple)
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3).t(),
        torch.tensor(1.5, dtype=torch.bfloat16),
        torch.tensor([1 + 2j]).conj(),
        torch.empty(0, 3, dtype=torch.int64),
        torch.tensor([True, False]),
        torch.ones(3).to(torch.float8_e4m3fn),
        torch.nn.Parameter(torch.tensor([float("nan"), -0.0])),
        torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    ],
)
def test_tensors_are_restored_bit_by_bit(tensor):
    found = from_bytes(to_bytes({"x": [tensor, 1]}))["x"][0]
    assert (found.dtype, found.shape, found.device.type) == (tensor.dtype, tensor.shape, "cpu")
    plain = tensor.detach().resolve_conj().contiguous()
    assert found.reshape(-1).view(torch.uint8).tolist() == plain.reshape(-1).view(torch.uint8).tolist()


def test_other_plain_types_are_restored():
    array = numpy.arange(6, dtype=">i4").reshape(2, 3)
    value = [torch.bfloat16, array, numpy.float32(0.1), OrderedDict(b=1, a=2), torch.ones(2, 3).shape, bytearray(b"x")]
    dtype, again, number, ordered, shape, raw = from_bytes(to_bytes(value))
    assert dtype is torch.bfloat16
    assert again.dtype == array.dtype
    assert again.tolist() == array.tolist()
    assert again.flags.writeable
    assert (type(number), number) == (numpy.float32, numpy.float32(0.1))
    assert (type(ordered), [*ordered]) == (OrderedDict, ["b", "a"])
    assert shape == (2, 3)
    assert (type(raw), raw) == (bytearray, b"x")


@dataclass
class Own:
    number: int = 1


@pytest.mark.parametrize(
    "value",
    [Own(), [Own()], {"x": os.system}, Path("x"), torch.ones(2).to_sparse(), numpy.array([Own()]), lambda: 1, slice(1)],
)
def test_the_sender_refuses_values_that_need_pickle(value):
    with pytest.raises(DistributedError, match="cannot be sent to other processes"):
        to_bytes(value)


def test_a_value_that_contains_itself_is_refused():
    value: list[object] = []
    value.append(value)
    with pytest.raises(DistributedError, match="nested more than"):
        to_bytes(value)


class Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_a_pickle_is_not_read(tmp_path):
    marker = tmp_path / "executed"
    data = pickle.dumps(Evil(marker))
    for message in (data, len(data).to_bytes(8, "little") + data):
        with pytest.raises(DistributedError, match="cannot be read"):
            from_bytes(torch.frombuffer(bytearray(message), dtype=torch.uint8))
    assert not marker.exists()


@given(st.data())
def test_damaged_messages_are_refused_or_read_as_plain_values(data):
    value = {"a": [1, (2.5, None)], "t": torch.arange(4), "n": numpy.eye(2), "b": b"xyz"}
    message = bytearray(to_bytes(value).numpy().tobytes())
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    message = message[: data.draw(st.integers(0, len(message)))]
    with contextlib.suppress(DistributedError):
        from_bytes(torch.frombuffer(message, dtype=torch.uint8) if message else torch.empty(0, dtype=torch.uint8))


@pytest.mark.parametrize(
    "tree",
    [
        ["tensor", 0, "torch.float32", [1 << 40]],
        ["tensor", 0, "torch.float32", [-1]],
        ["tensor", 5, "torch.float32", [2]],
        ["tensor", 0, "os.system", [2]],
        ["array", 0, "O", [1]],
        ["array", 0, "V8", [1]],
        ["eval", "1"],
        [[], 1],
        [],
        {"a": 1},
        ["dict", [["list"]], [1]],
        ["dict", [1, 2], [1]],
    ],
)
def test_texts_that_no_sender_writes_are_refused(tree):
    text = json.dumps([tree, [8]]).encode()
    message = bytearray(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(DistributedError, match="cannot be read"):
        from_bytes(torch.frombuffer(message, dtype=torch.uint8))


def test_nesting_that_would_exhaust_the_stack_is_refused():
    text = b"[" * 100_000
    message = bytearray(len(text).to_bytes(8, "little") + text)
    with pytest.raises(DistributedError, match="cannot be read"):
        from_bytes(torch.frombuffer(message, dtype=torch.uint8))
