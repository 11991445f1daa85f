"""Preparing an NVIDIA card while Python builds the network."""

from __future__ import annotations

import threading
from contextlib import suppress

import torch

PROPOSALS = 3
"""Algorithms to try for each convolution: cuDNN lists likely ones first, and trying all takes long on full images."""


def prepare_card() -> None:
    """Let cuDNN benchmark its first proposals, and start loading its libraries in a thread."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = PROPOSALS
    threading.Thread(target=_use_libraries, name="loading of cuDNN", daemon=True).start()


def _use_libraries() -> None:
    """Run a small convolution and its backward, which loads everything that the large ones need."""
    # A failure here repeats in the first step, which reports it. That step waits for the same libraries, so this thread
    # ends long before the second step is recorded.
    with suppress(RuntimeError), torch.no_grad():
        shape = torch.empty(8, 8, 16, 16, dtype=torch.bfloat16, device="cuda")
        images = shape.to(memory_format=torch.channels_last)
        weights = torch.zeros(8, 8, 3, 3, dtype=torch.bfloat16, device="cuda").to(memory_format=torch.channels_last)
        result = torch.nn.functional.conv2d(images, weights, padding=1)
        ones, wanted = (1, 1), (True, True, False)
        torch.ops.aten.convolution_backward(result, images, weights, None, ones, ones, ones, False, (0, 0), 1, wanted)
