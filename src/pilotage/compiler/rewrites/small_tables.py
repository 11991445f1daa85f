"""Computes gradients of small embedding tables as matrix products.

Inductor adds the gradient of each looked-up row to its place in the table with an atomic operation. If a table has few
rows and many look-ups, such as the buckets of relative positions, thousands of additions wait for each place. A product
with a matrix of zeros and ones sums the same terms. Products of zero and infinity are NaN, so all rows are NaN if the
gradient of one is infinite.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ROWS = 1024
"""The largest number of rows of a small table."""

LOOK_UPS_PER_ROW = 64
"""From this number of look-ups per row on, a table has many."""

_ELEMENTS = 2**27
"""The largest number of elements of the matrix of zeros and ones."""

Gradient = Callable[[Tensor, Tensor, int, int, bool], Tensor]


def with_products_for_small_tables(gradient: Gradient, is_wanted: Callable[[], bool]) -> Gradient:
    """A decomposition of the gradient of a table: a matrix product if that is faster, otherwise the given one."""

    def decomposed(
        grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
    ) -> Tensor:
        # With TensorFloat-32 a product would be rounded, but not the sum that it replaces.
        is_exact = grad_output.dtype != torch.float32 or torch.get_float32_matmul_precision() == "highest"
        if scale_grad_by_freq or not is_exact or not is_small(num_weights, indices.numel()) or not is_wanted():
            return gradient(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
        chosen = indices.reshape(1, -1) == torch.arange(num_weights, device=indices.device)[:, None]
        if 0 <= padding_idx < num_weights:
            chosen = chosen & (indices.reshape(1, -1) != padding_idx)
        return chosen.to(grad_output.dtype) @ grad_output.reshape(indices.numel(), -1)

    return decomposed


def is_small(rows: int, look_ups: int) -> bool:
    """Whether a table has few rows and many look-ups."""
    return rows <= ROWS and look_ups >= LOOK_UPS_PER_ROW * rows and rows * look_ups <= _ELEMENTS
