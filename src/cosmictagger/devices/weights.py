"""Loading weights from checkpoints, ours and the original's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from cosmictagger.errors import CheckpointError
from cosmictagger.records.original_files import our_names

ROUNDING = ".rounding."
"""Part of the names of a quantization-aware network's ranges."""


def load_weights(network: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load weights of this network; an error names the first difference."""
    wanted = network.state_dict()
    # Training without quantization can continue with it: the ranges are measured again.
    unknown = {name: tensor for name, tensor in wanted.items() if ROUNDING in name}
    given = unknown | our_names(state)
    problems = [f"{name} is missing" for name in wanted if name not in given]
    problems += [f"{name} is not part of the network" for name in given if name not in wanted]
    problems += [
        f"{name} has the shape {list(given[name].shape)} instead of {list(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in given and given[name].shape != tensor.shape
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        rounded = any(ROUNDING in name for name in given) and not unknown
        options = "mode.quantization_aware=true, as it was trained" if rounded else "the same network options"
        raise CheckpointError(f"The checkpoint belongs to another network: {problems[0]}{more}. Use {options}.")
    network.load_state_dict(given)


def on_host(state: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a nested state with its tensors detached and on the host."""
    return {key: _on_host(value) for key, value in state.items()}


def _on_host(value: object) -> object:
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return on_host(value)
    if isinstance(value, list | tuple):
        return [_on_host(part) for part in value]
    return value
