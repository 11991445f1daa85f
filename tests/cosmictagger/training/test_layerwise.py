"""LAMB and LARS, against their formulas computed by hand."""

import pytest
import torch

from cosmictagger.training.layerwise import Lamb, Lars


def stepped(kind, weight, gradients, **settings):
    parameter = torch.nn.Parameter(torch.tensor(weight))
    optimizer = kind([parameter], **settings)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
    return parameter.detach()


def test_lamb_steps_as_far_as_the_weight_is_long():
    first, second, weight = torch.zeros(2), torch.zeros(2), torch.tensor([3.0, 4.0])
    for gradient in ([1.0, -2.0], [0.5, 0.5]):
        given = torch.tensor(gradient)
        first, second = 0.9 * first + 0.1 * given, 0.999 * second + 0.001 * given**2
        direction = first / (second.sqrt() + 1e-6)
        weight = weight - 0.01 * direction * weight.norm() / direction.norm()
    found = stepped(Lamb, [3.0, 4.0], ([1.0, -2.0], [0.5, 0.5]), lr=0.01)
    assert found.tolist() == pytest.approx(weight.tolist(), rel=1e-6)


def test_lambs_weight_norm_is_limited():
    found = stepped(Lamb, [300.0, 400.0], ([1.0, 0.0],), lr=1.0)
    assert found.tolist() == pytest.approx([290.0, 400.0])


def test_lars_steps_a_thousandth_of_the_weight():
    found = stepped(Lars, [3.0, 4.0], ([0.0, 10.0],), lr=1.0)
    assert found.tolist() == pytest.approx([3.0, 4.0 - 0.005])


@pytest.mark.parametrize("kind", [Lamb, Lars])
def test_a_weight_of_zeros_still_moves(kind):
    assert stepped(kind, [0.0], ([1.0],), lr=0.1).item() < 0
