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
def test_reductions_of_a_single_instance_return_the_value(op, value):
    assert all_reduce(value, op) == value


def test_arrays_and_tensors_are_not_changed():
    array, tensor = numpy.arange(3.0), torch.arange(4.0, requires_grad=True)
    assert all_reduce(array) is not array
    assert numpy.array_equal(all_reduce(array), array)
    reduced = all_reduce(tensor)
    assert not reduced.requires_grad
    assert torch.equal(reduced, tensor)


def test_a_single_instance_gathers_its_own_value():
    barrier()
    assert all_gather("x") == ["x"]
    assert broadcast("x") == "x"


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="Choose one of: sum, mean, min, max"):
        all_reduce(1, "product")
    with pytest.raises(ValueError, match=r"one of the instances \[0\]"):
        broadcast(1, source=2)
