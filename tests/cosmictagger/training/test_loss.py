"""The loss against its formula."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.training.loss import BalancedLoss

EVENTS, HEIGHT, WIDTH = 2, 5, 7


def scores_and_labels(classes=3, kind=torch.float32):
    torch.manual_seed(0)
    scores = torch.randn(3 * EVENTS, 3, HEIGHT, WIDTH, dtype=kind, requires_grad=True)
    return scores, torch.randint(0, classes, (3 * EVENTS, HEIGHT, WIDTH), dtype=torch.uint8)


def by_formula(scheme, scores, labels):
    total = 0.0
    for plane in range(3):
        part = slice(plane * EVENTS, (plane + 1) * EVENTS)
        z, y = scores[part], labels[part].long()
        entropy = F.cross_entropy(z, y, reduction="none")
        with torch.no_grad():
            one_hot = F.one_hot(y, 3).permute(0, 3, 1, 2).to(z.dtype)
            match scheme:
                case LossBalanceScheme.none:
                    weight = torch.ones_like(entropy)
                case LossBalanceScheme.light:
                    weight = torch.tensor([1.0, 1.5, 10.0], dtype=z.dtype)[y]
                case LossBalanceScheme.even:
                    weight = (0.3333 / (torch.bincount(y.flatten(), minlength=3).to(z.dtype) + 1))[y]
                case LossBalanceScheme.focal:
                    weight = (((1 - z.softmax(1)) ** 2) * one_hot).mean(1)
        total = total + (weight * entropy).sum() / weight.sum()
    return total


@pytest.mark.parametrize("scheme", LossBalanceScheme)
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_loss_and_gradient_follow_the_formula(scheme, classes):
    scores, labels = scores_and_labels(classes)
    found, wanted = BalancedLoss(scheme)(scores, labels), by_formula(scheme, scores, labels)
    torch.testing.assert_close(found, wanted)
    (one,), (other,) = torch.autograd.grad(3 * found, scores), torch.autograd.grad(3 * wanted, scores)
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("scheme", LossBalanceScheme)
def test_scores_in_float64_are_weighted_in_float64(scheme):
    scores, labels = scores_and_labels(kind=torch.float64)
    found, wanted = BalancedLoss(scheme)(scores, labels), by_formula(scheme, scores, labels)
    torch.testing.assert_close(found, wanted, rtol=1e-14, atol=0.0)
    (one,), (other,) = torch.autograd.grad(found, scores), torch.autograd.grad(wanted, scores)
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-16)


def test_scores_in_bfloat16_are_weighted_in_float32():
    scores, labels = scores_and_labels()
    half = scores.detach().bfloat16()
    loss = BalancedLoss(LossBalanceScheme.focal)
    assert loss(half, labels).dtype is torch.float32
    torch.testing.assert_close(loss(half, labels), loss(half.float(), labels))
