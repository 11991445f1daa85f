"""Shapes that kernels rely on without checking them."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pilotage.errors import ProgramFileError
from pilotage.storage.shape_checks import check_shapes

A = torch.ops.aten
CALLS = {
    A.native_batch_norm.default: ([(4, 6), (6,), (6,), (6,), (6,), True, 0.1, 1e-5], (1, 2, 3, 4)),
    A.native_batch_norm_backward.default: (
        [(4, 6), (4, 6), (6,), (6,), (6,), (6,), (6,), True, 1e-5, [True] * 3],
        (0, 2, 3, 4, 5, 6),
    ),
    A.native_layer_norm_backward.default: (
        [(2, 3, 4), (2, 3, 4), [4], (2, 3, 1), (2, 3, 1), (4,), (4,), [True] * 3],
        (0, 3, 4, 5, 6),
    ),
    A._log_softmax_backward_data.default: ([(4, 3), (4, 3), 1, torch.float32], (0, 1)),
    A._adaptive_avg_pool2d_backward.default: ([(2, 3, 2, 2), (2, 3, 8, 8)], (0,)),
    A._adaptive_avg_pool3d_backward.default: ([(2, 3, 2, 2, 2), (2, 3, 8, 8, 8)], (0,)),
    A.avg_pool3d_backward.default: (
        [(2, 3, 2, 2, 2), (2, 3, 4, 4, 4), [2] * 3, [2] * 3, [0] * 3, False, True, None],
        (0,),
    ),
    A.reflection_pad2d_backward.default: ([(2, 3, 6, 6), (2, 3, 4, 4), [1] * 4], (0,)),
    A.replication_pad1d_backward.default: ([(2, 3, 6), (2, 3, 4), [1] * 2], (0,)),
    A.grid_sampler_2d_backward.default: ([(2, 3, 5, 5), (2, 3, 4, 4), (2, 5, 5, 2), 0, 0, False, [True] * 2], (0,)),
    A._pdist_backward.default: ([(10,), (5, 3), 2.0, (10,)], (0, 3)),
    A._weight_norm_interface_backward.default: ([(4, 3), (4, 3), (4, 1), (4, 1), 0], (0, 2, 3)),
    A._scaled_dot_product_flash_attention_for_cpu.default: ([(2, 2, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8)], (0, 1, 2)),
}


def arguments(given, changed=None, shape=()):
    return [
        torch.empty(shape if position == changed else value) if isinstance(value, tuple) else value
        for position, value in enumerate(given)
    ]


@pytest.mark.parametrize("operation", CALLS, ids=str)
def test_shapes_that_fit_pass_and_others_do_not(operation):
    given, checked = CALLS[operation]
    with FakeTensorMode():
        check_shapes(operation, arguments(given), {})
        for position in checked:
            shape = (*given[position][:-1], given[position][-1] + 1)
            if len(shape) > 3:
                shape = (given[position][0] + 1, *given[position][1:])
            with pytest.raises(ProgramFileError, match=r"instead of|do not fit"):
                check_shapes(operation, arguments(given, position, shape), {})


def test_an_unbounded_order_is_refused():
    check_shapes(A.mvlgamma.default, [torch.ones(1), 3], {})
    with pytest.raises(ProgramFileError, match="mvlgamma with p = "):
        check_shapes(A.mvlgamma.default, [torch.ones(1), 2**40], {})
