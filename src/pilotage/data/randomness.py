"""The state of the generators that data sets, samplers and transforms draw from, as plain data."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

__all__ = ["random_state", "restore_random_state"]


def random_state(generators: Sequence[torch.Generator] = ()) -> dict[str, Any]:
    """The present state of torch's, Python's and NumPy's own generators on the host, and of these others."""
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "torch": [_written(torch.default_generator), *map(_written, generators)],
        "python": [version, list(numbers), gauss],
        "numpy": [name, np.asarray(keys).tolist(), position, has_gauss, cached],
    }


def restore_random_state(state: Mapping[str, Any], generators: Sequence[torch.Generator] = ()) -> None:
    """Go back to a state; the other generators are the same ones in the same order."""
    for generator, text in zip((torch.default_generator, *generators), state["torch"], strict=True):
        generator.set_state(torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8))
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, np.array(keys, dtype=np.uint32), position, has_gauss, cached))


def _written(generator: torch.Generator) -> str:
    return base64.b64encode(generator.get_state().numpy().tobytes()).decode()
