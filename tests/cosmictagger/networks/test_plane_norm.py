"""The normalisation against torch's, plane by plane."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from cosmictagger.networks import processor_norm, triton_support
from cosmictagger.networks.plane_norm import normalize_planes, normalize_planes_backward

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


class ChannelsLastKernels:
    """In place of a card's kernels: all they read and write is channels last, whatever the layout of their input."""

    def prepare(self, *_):
        pass

    def prepare_backward(self, *_):
        pass

    def normalize(self, x, weight, bias, residual, planes, slope, eps):
        y, mean, _, inverse = processor_norm.normalize(last(x), weight, bias, residual, planes, slope, eps)
        return y, mean, inverse

    def normalize_backward(self, gradient, x, y, weight, bias, statistics, slope, residual):
        assert gradient.is_contiguous(memory_format=torch.channels_last)
        if y is None:
            y, _, _ = self.normalize(x, weight, bias, None, statistics.shape[1], slope, 1e-5)
        return processor_norm.normalize_backward(gradient, last(x), y, weight, statistics, slope, residual)


def last(x):
    return x.contiguous(memory_format=torch.channels_last)


@pytest.fixture
def on_a_card(monkeypatch):
    monkeypatch.setattr(triton_support, "supports", lambda x: x.dim() == 4)
    monkeypatch.setattr(triton_support, "norm_kernels", ChannelsLastKernels)


LAYOUTS = pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format], ids=str)


@LAYOUTS
@pytest.mark.parametrize("residual", [False, True])
def test_results_on_a_card_have_the_promised_layout(on_a_card, layout, residual):
    """A compiler reads memory by the layout that capture promised."""
    x, shift, weight, bias, added = inputs(3, residual=residual, kind=torch.float32)
    x = x.detach().contiguous(memory_format=layout).requires_grad_()
    checks = torch.library.opcheck(normalize_planes, (x, shift, weight, bias, added, 3, 0.01, 1e-5))
    assert set(checks.values()) == {"SUCCESS"}
    given = [each.detach() for each in (x, weight, bias)]
    y, _, _, statistics = normalize_planes(given[0], None, *given[1:], None, 3, 0.01, 1e-5)
    gradient = torch.randn_like(x, memory_format=torch.contiguous_format)
    wanted = (gradient, given[0], y if residual else None, *given[1:], statistics, 0.01, 1e-5, residual)
    assert set(torch.library.opcheck(normalize_planes_backward, wanted).values()) == {"SUCCESS"}


@LAYOUTS
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")
def test_a_compiled_normalisation_on_a_card_has_the_gradient_of_torchs(on_a_card, layout):
    x, shift, weight, bias, _ = inputs(3, residual=False, kind=torch.float32)
    x = x.detach().contiguous(memory_format=layout)

    def loss(normalize):
        y = normalize(2.0 * x)
        return (y * x).square().sum()

    found = torch.compile(loss)(lambda x: normalize_planes(x, shift, weight, bias, None, 3, 0.01, 1e-5)[0])
    wanted = loss(lambda x: expected(x, shift, weight, bias, None, 3, 0.01))
    gradients = (torch.autograd.grad(each, (weight, bias)) for each in (found, wanted))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-3)
