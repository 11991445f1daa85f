"""Checks the indices that some kernels of torch use without bounds checks.

The backward of a pooling writes at its indices. In a captured program, forward computed them, so they are in bounds. In
a file they could be anything, so they must come from the forward operation. The backward of a loss over classes and of
an embedding writes at its classes and rows: they must be those of forward, whose kernel checks each of them.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch.fx import Node

from pilotage.errors import ProgramFileError
from pilotage.storage.shape_checks import named_arguments
from pilotage.torch_private import OpOverload, schema_of, storage_address

_POOLINGS: Mapping[str, str] = {
    "aten::max_pool2d_with_indices_backward": "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices_backward": "aten::max_pool3d_with_indices",
    "aten::adaptive_max_pool2d_backward": "aten::adaptive_max_pool2d",
    "aten::adaptive_max_pool3d_backward": "aten::adaptive_max_pool3d",
}
_BAGS = ("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
_RESULTS_OF_BAGS = {"offset2bag": 1, "bag_size": 2, "maximum_indices": 3}
_BAGS_BACKWARD = ("aten::_embedding_bag_backward", "aten::_embedding_bag_per_sample_weights_backward")
_CHECKED_BY: Mapping[str, tuple[str, str, str]] = {
    "aten::nll_loss_backward": ("aten::nll_loss_forward", "target", "self"),
    "aten::nll_loss2d_backward": ("aten::nll_loss2d_forward", "target", "self"),
    "aten::embedding_dense_backward": ("aten::embedding", "indices", "weight"),
}
"""For each kernel: the forward that checks the same numbers, their argument, and the tensor they point into."""
_LAYER, _LAYER_BACKWARD = "aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"
_SAME_NUMBERS = ("aten::_to_copy", "aten::alias", "aten::clone", "aten::detach", "aten::reshape", "aten::view")


def check_sources(
    node: Node, values: Mapping[Node, Any], inputs: Collection[Node], written: Mapping[int, Node]
) -> None:
    """Raise if an operation would use unchecked indices.

    ``inputs`` are the arguments of a call, and ``written`` the storages that were written to after their creation, each
    with the last operation that wrote to it.
    """
    name = _name(node)
    if name in _CHECKED_BY:
        _check_as_forward_did(node, name, values, written)
    elif name in _POOLINGS:
        _check_pooling(node, name, values, written)
    elif name in _BAGS:
        offsets = _arguments(node)["offsets"]
        source = _source(offsets, values)
        if not (source in inputs or _name(source) == "aten::arange") or _is_written(offsets, values, written):
            raise _refused(node, "offsets", "an input of the program, or the result of aten::arange")
    elif name in _BAGS_BACKWARD:
        _check_bags(node, values, written)
    elif name == _LAYER_BACKWARD:
        _check_workspace(node, values, written)


def _check_as_forward_did(node: Node, name: str, values: Mapping[Node, Any], written: Mapping[int, Node]) -> None:
    arguments = _arguments(node)
    if arguments.get("reduction", 0) != 0:
        # These kernels look at each class themselves.
        return
    forward_name, numbers, table = _CHECKED_BY[name]
    rows = arguments["num_weights"] if "num_weights" in arguments else values[arguments[table]].shape
    for forward in values:
        if _name(forward) != forward_name:
            continue
        of_forward = _arguments(forward)
        there = values[of_forward[table]].shape
        if (
            _same(arguments[numbers], of_forward[numbers], values)
            and rows == (there[0] if "num_weights" in arguments else there)
            and arguments.get("ignore_index") == of_forward.get("ignore_index")
            and not _is_written(arguments[numbers], values, written, after=forward)
            and not _is_written(of_forward[numbers], values, written, after=forward)
        ):
            return
    raise _refused(node, numbers, f"those of a call of {forward_name} on a tensor of the same shape")


def _check_pooling(node: Node, name: str, values: Mapping[Node, Any], written: Mapping[int, Node]) -> None:
    arguments = _arguments(node)
    indices = arguments["indices"]
    forward = _made_by(indices, 1, values)
    if (
        _name(forward) != _POOLINGS[name]
        or values[_arguments(forward)["self"]].shape != values[arguments["self"]].shape
        or _is_written(indices, values, written)
    ):
        raise _refused(node, "indices", f"the result of {_POOLINGS[name]} on a tensor of the same shape")


def _check_bags(node: Node, values: Mapping[Node, Any], written: Mapping[int, Node]) -> None:
    arguments = _arguments(node)
    forward = _made_by(arguments["offset2bag"], 1, values)
    if _name(forward) not in _BAGS:
        raise _refused(node, "offset2bag", f"the result of {_BAGS[0]}")
    of_forward = _arguments(forward)
    table = values[of_forward["weight"]]
    fits = (
        all(
            _made_by(arguments[each], place, values) is forward
            for each, place in _RESULTS_OF_BAGS.items()
            if each in arguments
        )
        and all(_same(arguments[each], of_forward[each], values) for each in ("indices", "offsets"))
        and arguments.get("num_weights", table.shape[0]) == table.shape[0]
        and ("weight" not in arguments or values[arguments["weight"]].shape == table.shape)
        and arguments["mode"] == of_forward["mode"]
        and values[arguments["grad"]].shape == values[forward][0].shape
    )
    followed = [arguments[each] for each in ("indices", "offsets", *_RESULTS_OF_BAGS) if each in arguments]
    if not fits or any(_is_written(each, values, written) for each in followed):
        raise _refused(node, "indices and offsets", f"those of {_BAGS[0]}, and its results")


def _check_workspace(node: Node, values: Mapping[Node, Any], written: Mapping[int, Node]) -> None:
    """What forward has left in memory is laid out by oneDNN, and only by the sizes of forward."""
    arguments = _arguments(node)
    forward = _made_by(arguments["workspace"], 3, values)
    of_forward = _arguments(forward) if _name(forward) == _LAYER else {}
    if (
        not (of_forward and of_forward["train"] and arguments["train"])
        or any(of_forward[each] != arguments[each] for each in ("hidden_size", "has_biases"))
        or values[of_forward["input"]].shape != values[arguments["input"]].shape
        or values[of_forward["input"]].dtype != values[arguments["input"]].dtype
        or _is_written(arguments["workspace"], values, written)
    ):
        raise _refused(node, "its workspace", f"the result of {_LAYER} on a tensor of the same shape")


def _refused(node: Node, what: str, expected: str) -> ProgramFileError:
    return ProgramFileError(
        f"The program calls {node.target}, whose kernel uses {what} without a check. They must be {expected}. The "
        "file was modified or is damaged; trusted=True loads it anyway."
    )


def _name(node: Any) -> str:
    is_call = isinstance(node, Node) and isinstance(node.target, OpOverload)
    return schema_of(node.target).name if is_call else ""


def _arguments(node: Node) -> dict[str, Any]:
    assert isinstance(node.target, OpOverload)
    return named_arguments(node.target, node.args, node.kwargs)


def _made_by(value: Any, place: int, values: Mapping[Node, Any]) -> Any:
    """The node of which a value is the result at this position, or None."""
    source = _source(value, values)
    is_result = isinstance(source, Node) and source.target is operator.getitem and source.args[1] == place
    return source.args[0] if is_result else None


def _source(value: Any, values: Mapping[Node, Any]) -> Any:
    """The node that computes a value, looking through views and copies."""
    return _way_back(value, values)[-1]


def _way_back(value: Any, values: Mapping[Node, Any]) -> list[Any]:
    """A value, what it was copied from, and so on."""
    way = [value]
    while _name(value) in _SAME_NUMBERS and _keeps_numbers(values[value.args[0]].dtype, values[value].dtype):
        value = value.args[0]
        way.append(value)
    return way


def _keeps_numbers(before: torch.dtype, after: torch.dtype) -> bool:
    """Whether a copy in another type has the same whole numbers; in a narrower one, 200 becomes -56."""
    is_whole = not (after.is_floating_point or after.is_complex or before is torch.bool)
    return before is after or (
        is_whole and before.itemsize < after.itemsize and torch.promote_types(before, after) is after
    )


def _same(one: Any, other: Any, values: Mapping[Node, Any]) -> bool:
    return _source(one, values) is _source(other, values)


def _is_written(value: Any, values: Mapping[Node, Any], written: Mapping[int, Node], after: Node | None = None) -> bool:
    """Whether a value, or what it was copied from, was changed by an operation, or by one after a node."""
    writers = (written.get(_storage(values[each])) for each in _way_back(value, values))
    return any(writer is not None and (after is None or after < writer) for writer in writers)


def _storage(value: Any) -> int:
    storage: int = storage_address(value.untyped_storage())
    return storage
