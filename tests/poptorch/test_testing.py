import torch
from hypothesis import given
from hypothesis import strategies as st

from poptorch.testing import allclose

numbers = st.floats(-100, 100).map(torch.tensor)
nested = st.recursive(
    numbers, lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple), max_leaves=8
)


def shifted(value, by):
    if isinstance(value, torch.Tensor):
        return value + by
    return type(value)(shifted(item, by) for item in value)


def has_tensors(value):
    return isinstance(value, torch.Tensor) or any(map(has_tensors, value))


@given(nested)
def test_equal_values_are_close(value):
    assert allclose(value, shifted(value, 0.0))
    assert allclose(value, shifted(value, 1e-9))


@given(nested)
def test_shifted_values_are_not_close(value):
    assert allclose(value, shifted(value, 1.0)) is not has_tensors(value)


def test_the_structure_has_to_be_the_same():
    x = torch.ones(2)
    assert not allclose([x], (x,))
    assert not allclose((x, x), (x,))
    assert not allclose(x, [x])
    assert not allclose(x, torch.ones(2, 1))
    assert allclose((x, [x, 3]), (x, [x, 3]))
    assert not allclose((x, "a"), (x, "b"))


def test_tolerances_can_be_given():
    assert allclose(torch.ones(1), torch.full((1,), 1.1), rtol=0.2)
    assert allclose([torch.tensor(float("nan"))], [torch.tensor(float("nan"))], equal_nan=True)
