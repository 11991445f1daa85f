"""The Triton kernels, in Triton's interpreter or on a card, against the CPU's operations."""

import subprocess
import sys

import pytest

pytest.importorskip("triton")

PROGRAM = """
import torch
from cosmictagger.networks import plane_norm, triton_norm
torch.manual_seed(0)
for channels in (8, 24):
    for given in (None, torch.randn(6, channels, 6, 8)):
        x = (3 * torch.randn(6, channels, 6, 8) + 1).contiguous(memory_format=torch.channels_last)
        residual = None if given is None else given.contiguous(memory_format=torch.channels_last)
        weight, bias = torch.rand(channels) + 0.5, torch.randn(channels)
        found = triton_norm.normalize(x, weight, bias, residual, 3, 0.01, 1e-5)
        wanted = plane_norm._normalize(x, weight, bias, residual, 3, 0.01, 1e-5)
        for one, other in zip(found, wanted):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
        gradient, statistics = torch.randn_like(x), torch.stack(wanted[1:])
        given = gradient, x, wanted[0], weight, bias, statistics, 0.01, 1e-5, residual is not None
        wanted = plane_norm.normalize_planes_backward(*given)
        y = None if residual is None else found[0]
        found = triton_norm.normalize_backward(gradient, x, y, weight, bias, statistics, 0.01, residual is not None)
        for one, other in zip(found, wanted):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
"""


@pytest.mark.slow
def test_the_kernels_agree_with_the_cpu(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
