import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import poptorch
from poptorch.poptorch_core import Error

X = torch.arange(60.0).reshape(3, 4, 5)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_dynamic_slice_is_a_slice(data):
    dim = data.draw(st.integers(-3, 2))
    length = X.shape[dim]
    size = data.draw(st.integers(1, length))
    step = data.draw(st.integers(1, 3))
    start = data.draw(st.integers(0, length - size))
    index = [slice(None)] * 3
    index[dim] = slice(start, start + size, step)
    assert torch.equal(poptorch.dynamic_slice(X, dim, torch.tensor([start]), size, step), X[tuple(index)])


def test_the_start_of_a_slice_is_only_known_at_run_time(compiled, tier):
    run = compiled(lambda x, start: poptorch.dynamic_slice(x, 1, start, 2, 1), tier=tier)
    for start in range(3):
        assert torch.equal(run(X, torch.tensor([start])), X[:, start : start + 2])


def test_gradients_flow_through_a_slice_and_an_update():
    x, src = X.clone().requires_grad_(), torch.ones(3, 2, 5, requires_grad=True)
    poptorch.dynamic_update(x, src, 1, torch.tensor(1), 2).square().sum().backward()
    expected = 2 * X
    expected[:, 1:3] = 0
    assert torch.equal(x.grad, expected)
    assert torch.equal(src.grad, torch.full_like(src, 2))
    y = X.clone().requires_grad_()
    poptorch.dynamic_slice(y, 0, torch.tensor(1), 2, 1).sum().backward()
    assert torch.equal(y.grad, torch.stack([torch.zeros(4, 5), torch.ones(4, 5), torch.ones(4, 5)]))


def test_the_position_of_an_update_is_only_known_at_run_time(compiled, tier):
    src = -torch.ones(3, 2, 5)
    run = compiled(lambda x, src, start: poptorch.dynamic_update(x, src, 1, start, 2), tier=tier)
    for start in range(3):
        expected = X.clone()
        expected[:, start : start + 2] = -1
        assert torch.equal(run(X, src, torch.tensor([start])), expected)
    assert torch.equal(X, torch.arange(60.0).reshape(3, 4, 5))


START = torch.tensor(0)


@pytest.mark.parametrize(
    "arguments",
    [
        ([X], 0, START, 1, 1),
        (X, "0", START, 1, 1),
        (X, 0, 0, 1, 1),
        (X, 0, START, START, 1),
        (X, 0, START, 1, 1.0),
        (X, 0, START, 1, 0),
        (X, 0, torch.tensor([0, 1]), 1, 1),
        (X, 0, torch.tensor(0.0), 1, 1),
    ],
)
def test_a_slice_checks_its_arguments(arguments):
    with pytest.raises(Error, match=r"poptorch\.dynamic_slice takes"):
        poptorch.dynamic_slice(*arguments)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_a_start_has_16_32_or_64_bits(dtype):
    start = torch.tensor([1], dtype=dtype)
    assert torch.equal(poptorch.dynamic_slice(X, 0, start, 1, 1), X[1:2])
    assert torch.equal(poptorch.dynamic_update(X, X[:1], 0, start, 1)[1], X[0])


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.float32])
def test_starts_of_other_types_are_refused(dtype):
    start = torch.tensor([1]).to(dtype)
    with pytest.raises(Error, match=f"int16, int32 or int64 as start, not a tensor of 1 of {dtype}"):
        poptorch.dynamic_slice(X, 0, start, 1, 1)
    with pytest.raises(Error, match="int16, int32 or int64"):
        poptorch.dynamic_update(X, X[:1], 0, start, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        (3, X, 0, START, 1),
        (X, 3, 0, START, 1),
        (X, X, 0.0, START, 1),
        (X, X, 0, 0, 1),
        (X, X, 0, START, None),
        (X, X, 0, START, 0),
        (X, X, 0, START, 2),
    ],
)
def test_an_update_checks_its_arguments(arguments):
    with pytest.raises(Error, match=r"poptorch\.dynamic_update takes"):
        poptorch.dynamic_update(*arguments)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, r"The start and end of a slice must be different\."),
        (-1, r"Taking a slice of a tensor with the end less than the start is not supported\."),
    ],
)
def test_empty_and_backward_slices_are_refused_in_poptorchs_words(size, said):
    with pytest.raises(poptorch.Error, match=said):
        poptorch.dynamic_slice(torch.ones(8), 0, torch.tensor([0]), size, 1)


def test_updates_of_other_shapes_and_types_are_refused_in_poptorchs_words():
    start = torch.tensor([0])
    with pytest.raises(poptorch.Error, match=r"input and src tensors must have same dimensionality\. \(2\) vs \(1\)"):
        poptorch.dynamic_update(torch.ones(2, 2), torch.ones(1), 0, start, 1)
    with pytest.raises(
        poptorch.Error, match=r"input and src tensor must have same dtype\. \(torch\.float32 vs torch\.int32\)"
    ):
        poptorch.dynamic_update(torch.ones(2), torch.ones(1, dtype=torch.int32), 0, start, 1)


def test_a_size_need_not_divide_the_dimension():
    assert poptorch.dynamic_slice(torch.arange(8), 0, torch.tensor([1]), 7, 1).tolist() == list(range(1, 8))
