"""Fake kernels for shapes that torch considers data-dependent."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
from torch.nn import functional

from pilotage.program.graphs.fake_kernels import known_shapes

SHAPES = [
    ((4, 3), (4, 2)),
    ((3, 4), (3, 2)),
    ((3, 3), (3,)),
    ((2, 4, 3), (2, 4, 2)),
    ((2, 3, 3), (2, 3)),
    ((2, 3, 5), (2, 3, 1)),
]

DRIVERS = [None, "gels", "gelsy", "gelsd", "gelss"]


def fake(*tensors):
    mode = FakeTensorMode()
    return mode, [mode.from_tensor(tensor) for tensor in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize(("shapes", "driver"), list(itertools.product(SHAPES, DRIVERS)))
def test_least_squares_have_the_shapes_and_types_of_the_real_ones(shapes, driver, dtype):
    torch.manual_seed(0)
    matrix, right = (torch.randn(shape, dtype=dtype) for shape in shapes)
    rows, columns = shapes[0][-2:]
    mode, given = fake(matrix, right)
    with known_shapes(), mode:
        if driver in ("gelsd", "gelss") and rows > columns:
            with pytest.raises(DynamicOutputShapeException):
                torch.linalg.lstsq(*given, driver=driver)
            return
        found = torch.linalg.lstsq(*given, driver=driver)
    wanted = torch.linalg.lstsq(matrix, right, driver=driver)
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in wanted]


def test_the_loss_of_sequences_has_one_value_for_each():
    scores = torch.randn(6, 3, 4).log_softmax(-1)
    targets, lengths, target_lengths = (
        torch.ones(3, 2, dtype=torch.int64),
        torch.tensor([6, 6, 5]),
        torch.tensor([2, 1, 2]),
    )
    mode, given = fake(scores, targets, lengths, target_lengths)
    with known_shapes(), mode:
        assert functional.ctc_loss(*given, reduction="none").shape == (3,)


def test_torch_is_unchanged_afterwards():
    mode, given = fake(torch.eye(3), torch.eye(3))
    with known_shapes():
        pass
    with mode, pytest.raises(DynamicOutputShapeException):
        torch.linalg.lstsq(*given)
