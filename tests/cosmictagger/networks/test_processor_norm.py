"""The CPU's normalisation against float64: statistics, values and gradients."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.networks.plane_norm import normalize_planes

EPS = 1e-5
DIGIT = torch.finfo(torch.float32).eps


def stack(shape, *, offset, seed, kind=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64) + offset
    return x.to(kind).contiguous(memory_format=torch.channels_last)


def arguments(shape, *, offset, residual, seed, kind=torch.float32):
    x = stack(shape, offset=offset, seed=seed, kind=kind)
    weight, bias = torch.randn(2, shape[1], generator=torch.Generator().manual_seed(seed + 1))
    added = stack(shape, offset=0, seed=seed + 2, kind=kind) if residual else None
    return x, weight, bias, added, stack(shape, offset=1, seed=seed + 3, kind=kind)


def ours(x, weight, bias, residual, upstream, planes, slope):
    leaves = [each.clone().requires_grad_() for each in (x, weight, bias, residual) if each is not None]
    added = leaves[3] if residual is not None else None
    y, mean, variance, _ = normalize_planes(leaves[0], None, leaves[1], leaves[2], added, planes, slope, EPS)
    return [mean, variance, y.detach(), *torch.autograd.grad(y, leaves, upstream)]


def expected(x, weight, bias, residual, upstream, planes, slope, result, kind=torch.float64):
    """The same by torch, contiguous; our result decides the sign for the activation, as zero may be off by a digit."""
    leaves = [each.to(kind).contiguous().requires_grad_() for each in (x, weight, bias, residual) if each is not None]
    parts = leaves[0].unflatten(0, (planes, -1))
    mean, variance = parts.mean((1, 3, 4)), parts.var((1, 3, 4), correction=0)
    normed = [F.batch_norm(part, None, None, leaves[1], leaves[2], True, 0.0, EPS) for part in leaves[0].chunk(planes)]
    y = torch.cat(normed) if residual is None else torch.cat(normed) + leaves[3]
    y = torch.where(result > 0, y, y * slope)
    return [
        mean.detach(),
        variance.detach(),
        y.detach(),
        *torch.autograd.grad(y, leaves, upstream.to(kind).contiguous()),
    ]


def off_by(found, truth):
    return float((found.double() - truth).norm() / truth.norm().clamp_min(1e-30))


NAMES = ("mean", "variance", "values", "gradient of x", "of weight", "of bias", "of the residual")


@settings(max_examples=60, deadline=None)
@given(
    planes=st.sampled_from([1, 3]),
    events=st.integers(1, 2),
    channels=st.integers(2, 20),
    height=st.integers(2, 40),
    width=st.integers(2, 40),
    offset=st.sampled_from([0.0, 1.0, -30.0, 1000.0]),
    residual=st.booleans(),
    slope=st.sampled_from([0.01, 0.0, 1.0]),
    seed=st.integers(0, 1000),
)
def test_digits_are_lost_only_if_the_mean_dominates(
    planes, events, channels, height, width, offset, residual, slope, seed
):
    x, *others = arguments((planes * events, channels, height, width), offset=offset, residual=residual, seed=seed)
    found = ours(x, *others, planes, slope)
    truth = expected(x, *others, planes, slope, found[2])
    for name, one, other in zip(NAMES, found, truth, strict=False):
        # Terms of the gradients of weight and bias may cancel, so errors are relative to the size of the terms.
        added = math.sqrt(x.numel()) if name in ("of weight", "of bias") else 1.0
        assert float((one.double() - other).norm()) <= 30 * DIGIT * (1 + abs(offset)) * max(
            float(other.norm()), added
        ), name


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_a_large_image_is_normalised_as_accurately_as_if_it_were_contiguous(offset):
    values = arguments((3, 8, 320, 512), offset=offset, residual=False, seed=0)
    found = ours(*values, 3, 1.0)
    truth = expected(*values, 3, 1.0, found[2])
    plain = expected(*values, 3, 1.0, found[2], torch.float32)
    assert max(map(off_by, found[1:3], truth[1:3])) < 2 * DIGIT
    for name, one, other, exact in zip(NAMES[3:], found[3:], plain[3:], truth[3:], strict=False):
        assert off_by(one, exact) <= 2 * off_by(other, exact) + DIGIT, name


def test_the_number_of_threads_changes_only_rounding():
    values = arguments((3, 8, 320, 512), offset=5.0, residual=True, seed=0)
    threads, results = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append(ours(*values, 3, 0.01))
    torch.set_num_threads(threads)
    for one, other in zip(*results, strict=True):
        assert off_by(one, other.double()) < 1e-6


def test_bfloat16_is_rounded_once():
    values = arguments((3, 8, 64, 96), offset=2.0, residual=True, seed=0, kind=torch.bfloat16)
    found = ours(*values, 3, 0.01)
    truth = expected(*values, 3, 0.01, found[2])
    assert [each.dtype for each in found[2:4]] == [torch.bfloat16] * 2
    assert max(map(off_by, found[:2], truth[:2])) < 1e-6
    # Half of bfloat16's last digit is a relative 2e-3.
    assert max(map(off_by, found[2:], truth[2:])) < 3e-3


def test_partial_blocks_are_counted_to_the_last_pixel():
    x, weight, bias, _, upstream = arguments((3, 2, 701, 503), offset=3.0, residual=False, seed=0)
    found = ours(x, weight, bias, None, upstream, 3, 0.01)
    truth = expected(x, weight, bias, None, upstream, 3, 0.01, found[2])
    assert max(map(off_by, found[:4], truth[:4])) < 1e-6
