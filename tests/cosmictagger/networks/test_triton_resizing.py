"""Halving and doubling in Triton's interpreter, against torch."""

import subprocess
import sys

import pytest

pytest.importorskip("triton")

PROGRAM = """
import torch
import torch.nn.functional as F
from cosmictagger.networks import triton_resizing
torch.manual_seed(0)
for channels in (8, 24):
    whole = torch.randint(-2, 2, (2, channels, 6, 10)).float().contiguous(memory_format=torch.channels_last)
    doubled = lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")
    for ours, back, theirs in (
        (triton_resizing.halve, triton_resizing.halve_backward, lambda x: F.max_pool2d(x, 2)),
        (triton_resizing.double, lambda g, x: triton_resizing.double_backward(g), doubled),
    ):
        x = whole.clone().requires_grad_()
        wanted = theirs(x)
        gradient = torch.randn_like(wanted)
        wanted.backward(gradient)
        torch.testing.assert_close(ours(whole), wanted)
        for layout in (torch.channels_last, torch.contiguous_format):
            torch.testing.assert_close(back(gradient, whole.contiguous(memory_format=layout)), x.grad)
"""


@pytest.mark.slow
def test_the_kernels_agree_with_the_cpu(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
