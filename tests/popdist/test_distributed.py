from __future__ import annotations

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from popdist.distributed import all_gather, all_reduce, barrier, broadcast

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("op", ["sum", "mean", "min", "max"])
@given(st.floats(allow_nan=False) | st.integers(-(2**40), 2**40))
def test_alone_every_reduction_gives_the_value_itself(op, value):
    assert all_reduce(value, op) == value


def test_arrays_and_tensors_are_left_as_they_were():
    array, tensor = numpy.arange(3.0), torch.arange(4.0, requires_grad=True)
    assert all_reduce(array) is not array
    assert numpy.array_equal(all_reduce(array), array)
    reduced = all_reduce(tensor)
    assert not reduced.requires_grad
    assert torch.equal(reduced, tensor)


def test_alone_one_hears_oneself():
    barrier()
    assert all_gather("x") == ["x"]
    assert broadcast("x") == "x"


def test_what_is_not_there_is_refused_with_what_is():
    with pytest.raises(ValueError, match="Choose one of: sum, mean, min, max"):
        all_reduce(1, "product")
    with pytest.raises(ValueError, match=r"one of the instances \[0\]"):
        broadcast(1, source=2)
