from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.program.specification import TensorSpec, contiguous_strides

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(shapes, st.sampled_from([torch.float32, torch.int64, torch.bool]))
def test_a_tensor_made_from_a_specification_matches_it(shape, dtype):
    specification = TensorSpec.of(torch.zeros(shape, dtype=dtype))
    made = specification.empty(torch.device("cpu"))
    assert (made.shape, made.stride(), made.dtype) == (shape, torch.zeros(shape).stride(), dtype)
    assert specification.elements == made.numel()
    assert specification.bytes == made.numel() * made.element_size()


@given(shapes)
def test_contiguous_strides_equal_torchs(shape):
    assert contiguous_strides(shape) == torch.zeros(shape).stride()


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(3, 4).t(),
        torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.zeros(4, 6)[:, ::2],
        torch.zeros(1, 3).expand(4, 3),
        torch.zeros(()),
    ],
)
def test_dense_means_neither_gaps_nor_overlaps(tensor):
    dense = TensorSpec.of(tensor).dense
    assert dense.empty(torch.device("cpu")).untyped_storage().nbytes() == dense.bytes
    if TensorSpec.of(tensor.clone()).stride == tensor.stride():
        assert dense == TensorSpec.of(tensor)


def test_a_specification_reads_as_type_and_shape():
    assert str(TensorSpec.of(torch.zeros(2, 3, dtype=torch.float16))) == "float16[2, 3]"


@given(shapes)
def test_a_contiguous_specification_is_dense(shape):
    specification = TensorSpec.of(torch.zeros(shape))
    assert specification.dense is specification
