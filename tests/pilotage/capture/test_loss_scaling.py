import pytest
import torch

from pilotage.capture.loss_scaling import HIGHEST, LARGE, adjust_loss_scale


def adjusted(factor, scale, *gradients):
    factor = torch.tensor(factor, dtype=torch.float64)
    kept = adjust_loss_scale(factor, scale * factor, {str(i): gradient for i, gradient in enumerate(gradients)})
    return factor.item(), list(kept.values())


def test_the_factor_doubles_as_long_as_gradients_are_small():
    gradients = torch.tensor([1.0, -2.0]), torch.tensor([LARGE])
    factor, kept = adjusted(4.0, 2.0, *gradients)
    assert factor == 8.0
    assert all(torch.equal(a, b) for a, b in zip(kept, gradients, strict=True))


def test_the_factor_halves_if_a_gradient_is_large():
    assert adjusted(4.0, 2.0, torch.tensor([1.0, LARGE * 1.01]))[0] == 2.0


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_gradients_that_overflowed_become_zero(bad):
    factor, kept = adjusted(4.0, 2.0, torch.tensor([1.0, bad]), torch.tensor([3.0]))
    assert factor == 2.0
    assert [gradient.tolist() for gradient in kept] == [[0.0, 0.0], [0.0]]


def test_the_loss_scale_stays_within_its_limits():
    assert adjusted(HIGHEST / 2, 2.0, torch.ones(1))[0] == HIGHEST / 2
    assert adjusted(0.5, 2.0, torch.tensor([float("inf")]))[0] == 0.5
