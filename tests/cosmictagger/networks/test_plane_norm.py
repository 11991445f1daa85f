"""The normalisation against torch's, plane by plane."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from cosmictagger.networks.plane_norm import normalize_planes

pytestmark = pytest.mark.slow

CHANNELS = 5


def inputs(planes, *, residual, kind=torch.float64):
    torch.manual_seed(0)
    x = torch.randn(planes * 2, CHANNELS, 6, 4, dtype=kind).contiguous(memory_format=torch.channels_last)
    weight, bias, shift = (torch.randn(CHANNELS, dtype=kind, requires_grad=True) for _ in range(3))
    added = torch.randn_like(x).requires_grad_() if residual else None
    return x.requires_grad_(), shift, weight, bias, added


def expected(x, shift, weight, bias, residual, planes, slope):
    parts = [
        F.batch_norm(part + shift.view(-1, 1, 1), None, None, weight, bias, True, 0.0, 1e-5) for part in x.chunk(planes)
    ]
    y = torch.cat(parts)
    return F.leaky_relu(y if residual is None else y + residual, slope)


@pytest.mark.parametrize("planes", [1, 3])
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("slope", [0.01, 0.0, 1.0])
def test_each_plane_is_normalised_separately(planes, residual, slope):
    given = inputs(planes, residual=residual)
    leaves = [tensor for tensor in given if tensor is not None]
    y, mean, variance, _ = normalize_planes(*given, planes, slope, 1e-5)
    other = expected(*given, planes, slope)
    torch.testing.assert_close(y, other)
    weights = torch.randn_like(y)
    for one, two in zip(
        torch.autograd.grad((y * weights).sum(), leaves),
        torch.autograd.grad((other * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, two, atol=1e-9, rtol=1e-7)
    shifted = (given[0] + given[1].view(-1, 1, 1)).unflatten(0, (planes, 2))
    torch.testing.assert_close(mean, shifted.mean((1, 3, 4)))
    torch.testing.assert_close(variance, shifted.var((1, 3, 4), correction=0))


def test_the_operation_passes_torchs_checks():
    given = inputs(3, residual=True, kind=torch.float32)
    checks = torch.library.opcheck(normalize_planes, (*given, 3, 0.01, 1e-5))
    assert set(checks.values()) == {"SUCCESS"}
