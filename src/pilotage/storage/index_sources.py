"""Checks the indices that some kernels of torch use without bounds checks.

The backward of a pooling writes at its indices. In a captured program, forward computed them, so they are in bounds. In
a file they could be anything, so they must come from the forward operation.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch.fx import Node

from pilotage.errors import ProgramFileError
from pilotage.storage.shape_checks import named_arguments

_POOLINGS: Mapping[str, str] = {
    "aten::max_pool2d_with_indices_backward": "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices_backward": "aten::max_pool3d_with_indices",
    "aten::adaptive_max_pool2d_backward": "aten::adaptive_max_pool2d",
    "aten::adaptive_max_pool3d_backward": "aten::adaptive_max_pool3d",
}
_BAGS = ("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
_RESULTS_OF_BAGS = {"offset2bag": 1, "bag_size": 2, "maximum_indices": 3}
_BAGS_BACKWARD = ("aten::_embedding_bag_backward", "aten::_embedding_bag_per_sample_weights_backward")
_SAME_NUMBERS = ("aten::_to_copy", "aten::alias", "aten::clone", "aten::detach", "aten::reshape", "aten::view")


def check_sources(node: Node, values: Mapping[Node, Any], inputs: Collection[Node], written: Collection[int]) -> None:
    """Raise if an operation would use unchecked indices.

    ``inputs`` are the arguments of a call, and ``written`` the storages that were written to after their creation.
    """
    name = _name(node)
    if name in _POOLINGS:
        _check_pooling(node, name, values, written)
    elif name in _BAGS:
        offsets = _arguments(node)["offsets"]
        source = _source(offsets)
        if not (source in inputs or _name(source) == "aten::arange") or _storage(values[source]) in written:
            raise _refused(node, "offsets", "an input of the program, or the result of aten::arange")
    elif name in _BAGS_BACKWARD:
        _check_bags(node, values, written)


def _check_pooling(node: Node, name: str, values: Mapping[Node, Any], written: Collection[int]) -> None:
    arguments = _arguments(node)
    indices = arguments["indices"]
    forward = _made_by(indices, 1)
    if (
        _name(forward) != _POOLINGS[name]
        or values[_arguments(forward)["self"]].shape != values[arguments["self"]].shape
        or _storage(values[indices]) in written
    ):
        raise _refused(node, "indices", f"the result of {_POOLINGS[name]} on a tensor of the same shape")


def _check_bags(node: Node, values: Mapping[Node, Any], written: Collection[int]) -> None:
    arguments = _arguments(node)
    forward = _made_by(arguments["offset2bag"], 1)
    if _name(forward) not in _BAGS:
        raise _refused(node, "offset2bag", f"the result of {_BAGS[0]}")
    of_forward = _arguments(forward)
    table = values[of_forward["weight"]]
    fits = (
        all(
            _made_by(arguments[each], place) is forward for each, place in _RESULTS_OF_BAGS.items() if each in arguments
        )
        and all(_same(arguments[each], of_forward[each]) for each in ("indices", "offsets"))
        and arguments.get("num_weights", table.shape[0]) == table.shape[0]
        and ("weight" not in arguments or values[arguments["weight"]].shape == table.shape)
        and arguments["mode"] == of_forward["mode"]
        and values[arguments["grad"]].shape == values[forward][0].shape
    )
    followed = [arguments[each] for each in ("indices", "offsets", *_RESULTS_OF_BAGS) if each in arguments]
    if not fits or any(_storage(values[each]) in written for each in followed):
        raise _refused(node, "indices and offsets", f"those of {_BAGS[0]}, and its results")


def _refused(node: Node, what: str, expected: str) -> ProgramFileError:
    return ProgramFileError(
        f"The program calls {node.target}, whose kernel uses {what} without a check. They must be {expected}. The "
        "file was modified or is damaged; trusted=True loads it anyway."
    )


def _name(node: Any) -> str:
    is_call = isinstance(node, Node) and isinstance(node.target, torch._ops.OpOverload)
    return node.target._schema.name if is_call else ""


def _arguments(node: Node) -> dict[str, Any]:
    assert isinstance(node.target, torch._ops.OpOverload)
    return named_arguments(node.target, node.args, node.kwargs)


def _made_by(value: Any, place: int) -> Any:
    """The node of which a value is the result at this position, or None."""
    source = _source(value)
    is_result = isinstance(source, Node) and source.target is operator.getitem and source.args[1] == place
    return source.args[0] if is_result else None


def _source(value: Any) -> Any:
    """The node that computes a value, looking through views and copies."""
    while _name(value) in _SAME_NUMBERS:
        value = value.args[0]
    return value


def _same(one: Any, other: Any) -> bool:
    return _source(one) is _source(other)


def _storage(value: Any) -> int:
    storage: int = value.untyped_storage()._cdata
    return storage
