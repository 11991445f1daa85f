"""Getting an NVIDIA card ready while Python is still building the network."""

from __future__ import annotations

import threading
from contextlib import suppress

import torch

PROPOSALS = 3
"""Algorithms tried for each convolution: cuDNN names the likely ones first, and trying all of them on whole images takes long."""


def prepare_card() -> None:
    """Let cuDNN choose among its first proposals by trying them, and begin to load its libraries beside whatever comes next."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = PROPOSALS
    threading.Thread(target=_use_libraries, name="loading of cuDNN", daemon=True).start()


def _use_libraries() -> None:
    """Do a small convolution and its backward, for which everything has to be loaded that the large ones will need."""
    # What fails here fails again in the first step, where it can be told. That step waits for the same libraries, so this is
    # over long before the second one is recorded.
    with suppress(RuntimeError), torch.no_grad():
        shape = torch.empty(8, 8, 16, 16, dtype=torch.bfloat16, device="cuda")
        images = shape.to(memory_format=torch.channels_last)
        weights = torch.zeros(8, 8, 3, 3, dtype=torch.bfloat16, device="cuda").to(memory_format=torch.channels_last)
        result = torch.nn.functional.conv2d(images, weights, padding=1)
        ones, wanted = (1, 1), (True, True, False)
        torch.ops.aten.convolution_backward(result, images, weights, None, ones, ones, ones, False, (0, 0), 1, wanted)
