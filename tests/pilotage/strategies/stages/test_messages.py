from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.program.specification import TensorSpec
from pilotage.strategies.stages.messages import Message

CPU = torch.device("cpu")
TYPES = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex128,
)


@st.composite
def tensors(draw):
    shape = draw(st.lists(st.integers(1, 4), max_size=3))
    tensor = torch.randint(0, 2, shape).to(draw(st.sampled_from(TYPES)))
    return tensor.permute(draw(st.permutations(range(tensor.dim()))))


@settings(deadline=None)
@given(st.lists(tensors(), max_size=5), st.integers(0, 300))
def test_messages_preserve_types_and_layouts(values, size):
    message = Message([TensorSpec.of(value).dense for value in values])
    carrier = message.pack(values, CPU, size)
    assert carrier.numel() == max(size, message.size)
    for value, again in zip(values, message.unpack(carrier.clone()), strict=True):
        assert (again.dtype, again.shape) == (value.dtype, value.shape)
        assert torch.equal(again, value)
        assert TensorSpec.of(again) == TensorSpec.of(value).dense


def test_messages_preserve_every_bit():
    bits = torch.tensor([0x7F800001, 0x7FC12345, 0x00000001, -1], dtype=torch.int32)
    message = Message([TensorSpec.of(bits)])
    (again,) = message.unpack(message.pack([bits], CPU).clone())
    assert torch.equal(again, bits)


def test_an_empty_message_has_no_size():
    message = Message([])
    assert message.size == 0
    assert message.unpack(message.pack([], CPU, 1)) == []
