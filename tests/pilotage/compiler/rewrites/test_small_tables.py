"""Gradients of small embedding tables as matrix products."""

from __future__ import annotations

import pytest
import torch

from pilotage.compiler.changes import SMALL_TABLES, Changes
from pilotage.compiler.inductor import decomposition_rules
from pilotage.compiler.rewrites.small_tables import is_small

GRADIENT = torch.ops.aten.embedding_dense_backward.default


def rule(changes=None):
    return decomposition_rules(torch.device("cuda"), changes or Changes())[GRADIENT]


@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("shape", [(640,), (16, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_gives_the_gradient_of_torch(padding, shape, dtype):
    indices = torch.randint(0, 5, shape)
    gradient = torch.randn(*shape, 3, dtype=dtype)
    changes = Changes()
    found = rule(changes)(gradient, indices, 5, padding, False)
    torch.testing.assert_close(found, GRADIENT(gradient, indices, 5, padding, False))
    assert changes.made == [SMALL_TABLES]


@pytest.mark.parametrize(("rows", "look_ups"), [(5000, 10**6), (32, 100), (1000, 10**7)])
def test_large_tables_and_few_look_ups_stay_as_they_are(rows, look_ups):
    assert not is_small(rows, look_ups)


@pytest.mark.parametrize("excluded", [Changes(frozenset({SMALL_TABLES})), None])
def test_other_gradients_take_the_usual_rule(excluded):
    changes = excluded or Changes()
    indices = torch.randint(0, 5, (20,) if excluded is None else (640,))
    gradient = torch.randn(*indices.shape, 3)
    found = rule(changes)(gradient, indices, 5, -1, False)
    torch.testing.assert_close(found, GRADIENT(gradient, indices, 5, -1, False))
    assert not changes.made


def test_tf32_is_not_used_for_a_sum():
    changes = Changes()
    torch.set_float32_matmul_precision("high")
    try:
        rule(changes)(torch.randn(640, 3), torch.randint(0, 5, (640,)), 5, -1, False)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert not changes.made


def test_gradients_scaled_by_frequency_take_the_usual_rule():
    indices, gradient = torch.randint(0, 5, (640,)), torch.randn(640, 3)
    changes = Changes()
    found = rule(changes)(gradient, indices, 5, -1, True)
    torch.testing.assert_close(found, GRADIENT(gradient, indices, 5, -1, True))
    assert not changes.made
