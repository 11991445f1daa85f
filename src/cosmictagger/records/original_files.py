"""Checkpoints of the original: names, orders and fields of its files, read and written.

In a file, the optimizer's state is listed by position: that of the parameter in the file's own ``state_dict``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor

from cosmictagger.errors import CheckpointError

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
"""Last words of a normalisation's buffers."""

OBSERVERS = ("weight_fake_quant", "activation_post_process")
"""Words of what torch's quantization-aware training adds to a file; ours measures its ranges again."""

ROUNDING = "rounding"
"""A word of our own ranges for quantization-aware training."""

NORM_NAMES = {"bn": "norm", "batch_norm": "norm"}
"""Names that releases of the original used for the normalisation of a block."""

VOLUME_NAMES = {"merger": "bottleneck", "splitter": "unbottleneck"}
"""The ends of the deepest block in 3D: the original's names and ours."""

DEEPEST = re.compile(r"((?:main_module\.)+)(bottleneck|unbottleneck)\.(?=conv|norm)")
FIRST_WEIGHT = "initial_convolution.conv.weight"


def our_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A ``state_dict`` under our names, in the file's order, without what torch's quantization adds."""
    return {our_name(name): tensor for name, tensor in state.items() if not set(OBSERVERS) & set(name.split("."))}


def our_name(name: str) -> str:
    """Our name of a weight: no distributed wrapper's prefix, one name for normalisation, 3D as in 2D."""
    words = [VOLUME_NAMES.get(word, NORM_NAMES.get(word, word)) for word in name.removeprefix("module.").split(".")]
    return ".".join(re.sub(r"^block_(\d+)$", r"blocks.\1", word) for word in words)


def original_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A ``state_dict`` under the original's names: only those of 3D networks differ from ours."""
    first = state.get(FIRST_WEIGHT)
    if first is None or first.dim() != 5:
        return dict(state)
    return {_volume_name(name): tensor for name, tensor in state.items()}


def _volume_name(name: str) -> str:
    theirs = {ours: original for original, ours in VOLUME_NAMES.items()}
    # Elsewhere, as in downsample.bottleneck, the original has our names.
    name = DEEPEST.sub(lambda found: f"{found[1]}{theirs[found[2]]}.", name)
    return re.sub(r"\bblocks\.(\d+)\b", r"block_\1", name)


def parameter_names(state: Iterable[str]) -> list[str]:
    """The names of a file's parameters in its own order, which is that of the optimizer's state."""
    return [name for name in state if name.rpartition(".")[2] not in STATISTICS and f".{ROUNDING}." not in f".{name}"]


def in_order(optimizer: Mapping[str, Any], names: Sequence[str], parameters: Mapping[str, Tensor]) -> dict[str, Any]:
    """An optimizer's state whose positions follow ``parameters``, from one that follows ``names``."""
    if not optimizer.get("state"):
        return dict(optimizer)
    places = {name: number for number, name in enumerate(names)}
    given: Mapping[int, Mapping[str, Any]] = {int(number): each for number, each in optimizer["state"].items()}
    found = {number: given[places[name]] for number, name in enumerate(parameters) if places.get(name) in given}
    for number, (name, parameter) in enumerate(parameters.items()):
        for slot, tensor in found.get(number, {}).items():
            if isinstance(tensor, Tensor) and tensor.dim() and tensor.shape != parameter.shape:
                raise CheckpointError(
                    f"The optimizer's state does not fit the network: {slot} of {name} has the shape "
                    f"{list(tensor.shape)} instead of {list(parameter.shape)}. Use another checkpoint."
                )
    groups = [dict(group) for group in optimizer["param_groups"]]
    return {**optimizer, "state": found, "param_groups": [{**groups[0], "params": list(range(len(parameters)))}]}


def plain_numbers(value: Any) -> Any:
    """A nested state with Python's numbers instead of numpy's, which the original stores as learning rate."""
    if isinstance(value, Mapping):
        return {key: plain_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain_numbers, value))
    return float(value) if isinstance(value, float) else value


def as_read(state: Mapping[str, Any]) -> dict[str, Any]:
    """A file's content under our names."""
    return {**plain_numbers(state), "state_dict": our_names(state["state_dict"])}


def as_written(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state as the original reads it: its names, and the fields that its optimizer and its schedule restore."""
    optimizer = dict(state.get("optimizer") or {})
    if optimizer:
        optimizer["param_groups"] = [{**group, "initial_lr": 1.0} for group in optimizer["param_groups"]]
    return {**state, "state_dict": original_names(state["state_dict"]), "optimizer": optimizer}


def schedule_fields(step: int, rate: float) -> dict[str, Any]:
    """The state of torch's LambdaLR after a number of updates, whose next rate is known."""
    return {
        "base_lrs": [1.0],
        "last_epoch": step,
        "_step_count": step + 1,
        "_is_initial": False,
        "_get_lr_called_within_step": False,
        "_last_lr": [float(rate)],
        "lr_lambdas": [None],
    }
