"""Indices that kernels use unchecked must come from operations that check them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

from pilotage.errors import ProgramFileError
from pilotage.program.graphs.fake_kernels import every_shape
from pilotage.program.specification import TensorSpec
from pilotage.storage.permission import is_allowed
from pilotage.storage.program_check import _Run

A = torch.ops.aten
CLASSES = torch.zeros(4, dtype=torch.long)


def check(function, *inputs):
    """Capture a function and check its graph as that of a file."""
    with FakeTensorMode() as mode:
        graph = make_fx(lambda *given: [*function(*given)])(*map(mode.from_tensor, inputs))
    with every_shape(), torch.no_grad():
        _Run(graph, [TensorSpec.of(each) for each in inputs], len(inputs)).peak_bytes()


def gradient_of(loss):
    def function(scores, classes):
        scores = scores.detach().requires_grad_()
        return torch.autograd.grad(loss(scores, classes), scores)

    return function


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_classes_checked_by_forward_are_accepted(reduction):
    def loss(scores, classes):
        return functional.cross_entropy(scores, torch.where(classes > 2, -100, classes), reduction=reduction).sum()

    check(gradient_of(loss), torch.randn(4, 3), CLASSES)
    check(gradient_of(loss), torch.randn(4, 3, 5, 5), CLASSES.reshape(4, 1, 1).repeat(1, 5, 5))


@pytest.mark.parametrize("wide", [torch.int64, torch.int32])
def test_rows_checked_by_forward_are_accepted(wide):
    def loss(table, rows):
        return functional.embedding(rows.to(wide), table, scale_grad_by_freq=True).sum()

    check(gradient_of(loss), torch.randn(5, 3), CLASSES)


def test_classes_from_elsewhere_are_refused():
    def none(scores, classes):
        A.nll_loss_forward(scores, classes, None, 0, -100)
        return A.nll_loss_backward(scores[:, 0], scores, classes + 10**10, None, 0, -100, scores[0, 0])

    def other_shape(scores, classes):
        A.nll_loss_forward(scores.repeat(1, 9), classes, None, 0, -100)
        return A.nll_loss_backward(scores[:, 0], scores, classes, None, 0, -100, scores[0, 0])

    def other_ignored(scores, classes):
        A.nll_loss_forward(scores, classes, None, 0, 10**10)
        return A.nll_loss_backward(scores[:, 0], scores, classes, None, 0, -100, scores[0, 0])

    def written(scores, classes):
        classes = classes.clone()
        A.nll_loss_forward(scores, classes, None, 0, -100)
        classes.fill_(10**10)
        return A.nll_loss_backward(scores[:, 0], scores, classes, None, 0, -100, scores[0, 0])

    def pictures(scores, classes):
        of_pixels = classes.reshape(1, 2, 2)
        return A.nll_loss2d_backward(
            scores[0, 0].expand(1, 2, 2),
            scores[0].reshape(1, 3, 1, 1).expand(1, 3, 2, 2),
            of_pixels,
            None,
            0,
            -100,
            scores[0, 0],
        )

    for function in (none, other_shape, other_ignored, written, pictures):
        with pytest.raises(ProgramFileError, match="uses target without a check"):
            check(function, torch.randn(4, 3), CLASSES)


def test_rows_from_elsewhere_are_refused():
    def elsewhere(gradient, rows):
        return A.embedding_dense_backward(gradient, rows, 5, -1, True)

    def narrower(gradient, rows):
        A.embedding(gradient.new_zeros(5, 3), rows.to(torch.int32))
        return A.embedding_dense_backward(gradient, rows, 5, -1, True)

    for function in (elsewhere, narrower):
        with pytest.raises(ProgramFileError, match="uses indices without a check"):
            check(function, torch.randn(4, 3), CLASSES)


def pooled(change):
    def function(picture):
        indices = A.max_pool2d_with_indices(picture, [2, 2])[1]
        gradient = picture[:, :, ::2, ::2]
        return A.max_pool2d_with_indices_backward(
            gradient, picture, [2, 2], [2, 2], [0, 0], [1, 1], False, change(indices)
        )

    return function


def test_indices_modified_after_the_check_are_refused():
    picture = torch.randn(1, 1, 32, 32)
    check(pooled(lambda indices: indices.clone()), picture)
    changes = (
        # 200 becomes -56.
        lambda indices: indices.to(torch.int8).to(torch.int64),
        lambda indices: indices.view(torch.float64).to(torch.int64),
        lambda indices: indices.fill_(2**40).clone(),
    )
    for change in changes:
        with pytest.raises(ProgramFileError, match="uses indices without a check"):
            check(pooled(change), picture)


def test_a_recurrent_layer_passes_and_one_of_other_sizes_does_not():
    layer = nn.LSTM(5, 7)

    def gradients(sequence):
        return torch.autograd.grad(layer(sequence)[0].sum(), [*layer.parameters()])

    with FakeTensorMode(allow_non_fake_inputs=True):
        graph = make_fx(gradients)(torch.randn(2, 3, 5))
    calls = [node for node in graph.graph.nodes if "mkldnn_rnn_layer" in str(node.target)]
    assert len(calls) == 2
    for call, place in ((calls[0], 10), (calls[1], 15)):
        kept = call.args
        for size in (7, 4000):
            call.args = (*kept[:place], size, *kept[place + 1 :])
            with every_shape(), torch.no_grad():
                run = _Run(graph, [TensorSpec.of(torch.randn(2, 3, 5))], 1)
                if size == 7:
                    run.peak_bytes()
                else:
                    with pytest.raises(ProgramFileError, match="instead of"):
                        run.peak_bytes()
        call.args = kept
    calls[1].args = (*calls[1].args[:-1], graph.graph.find_nodes(op="placeholder")[0])
    with every_shape(), torch.no_grad(), pytest.raises(ProgramFileError, match="workspace"):
        _Run(graph, [TensorSpec.of(torch.randn(2, 3, 5))], 1).peak_bytes()


@pytest.mark.parametrize(
    "operation",
    [A.repeat_interleave.Tensor, A.binomial.default, A.special_chebyshev_polynomial_t.default],
    ids=str,
)
def test_kernels_that_trust_values_are_not_allowed(operation):
    assert not is_allowed(operation)
