"""Speeds up strided convolutions with few input channels, such as the first one of an image network.

Matrix units work on at least eight channels at once. With three channels and a stride, neighbouring pixels become
channels (space to depth): a 7 x 7 kernel on 3 channels with stride 2 is a 4 x 4 kernel on 12 channels with stride 1,
padded to 16. The same products are summed, plus some with zeros. Products of zero and infinity are NaN, so this is only
for training, where infinities end a run anyway. It is used if it is faster in a measurement.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.compiler.rewrites.folding import Folding, stored_like
from pilotage.compiler.rewrites.insertion import insert_call
from pilotage.compiler.worker.benchmarking import best_seconds

aten = torch.ops.aten

FEW = 4
"""The largest number of channels to rewrite."""

_GAIN = 0.9
"""The rewrite must take less than this fraction of the time."""

Worth = Callable[[Folding, Tensor, Tensor], bool]


def fold_few_channels(graph: GraphModule, device: torch.device, worth: Worth | None = None) -> None:
    """Rewrite such convolutions and the gradients of their weights, if that is faster on a device."""
    worth = worth or (lambda *convolution: _in_another_thread(is_faster, *convolution, device))
    pairs: dict[tuple[Node, Node], list[Node]] = defaultdict(list)
    for node in graph.graph.nodes:
        if node.target is aten.convolution.default:
            pairs[node.args[0], node.args[1]].append(node)
        elif node.target is aten.convolution_backward.default:
            pairs[node.args[1], node.args[2]].append(node)
    for (images, weight), nodes in pairs.items():
        folding = _folding(images, weight, nodes)
        if folding is not None and worth(folding, images.meta["val"], weight.meta["val"]):
            _fold(graph, folding, images, weight, nodes)


def _folding(images: Node, weight: Node, nodes: Sequence[Node]) -> Folding | None:
    """How to fold a convolution; None if it is not suitable.

    It must be strided with few channels, in channels-last format, with a gradient of its weight but not of its images.
    """
    forward, *backward = nodes
    given: Any = forward.args
    if not backward or forward.target is not aten.convolution.default:
        return None
    # A folded result is channels-last, but the rest of the graph may have been captured for another layout.
    if stored_like(forward.meta["val"]) is not torch.channels_last or not all(
        _belongs(node, given) for node in backward
    ):
        return None
    stride, padding, dilation, transposed, _, groups = given[3:9]
    shape, kernel = images.meta["val"].shape, weight.meta["val"].shape
    fits = (
        len(shape) == 4
        and len(stride) == len(padding) == 2
        and not transposed
        and groups == 1
        and shape[1] <= FEW
        and list(dilation) == [1, 1]
    )
    if not fits or max(stride) == 1 or any(size < step for size, step in zip(kernel[2:], stride, strict=True)):
        return None
    return Folding(
        channels=shape[1],
        kernel=(kernel[2], kernel[3]),
        stride=(stride[0], stride[1]),
        padding=(padding[0], padding[1]),
        size=(shape[2], shape[3]),
        result=tuple(forward.meta["val"].shape[2:]),
    )


def _belongs(node: Node, forward: Any) -> bool:
    """Whether a node is the gradient of a convolution's weight, and not of its images."""
    given: Any = node.args
    return node.target is aten.convolution_backward.default and given[4:10] == forward[3:9] and not given[10][0]


def _fold(graph: GraphModule, folding: Folding, images: Node, weight: Node, nodes: Sequence[Node]) -> None:
    forward, *backward = nodes
    plain: tuple[Any, ...] = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    with graph.graph.inserting_before(forward):
        folded, weights = folding.images(graph, images), folding.weight(graph, weight)
        result = insert_call(graph, aten.convolution.default, folded, weights, forward.args[2], *plain)
    forward.replace_all_uses_with(result)
    graph.graph.erase_node(forward)
    for node in backward:
        given: Any = node.args
        with graph.graph.inserting_before(node):
            gradients = insert_call(graph, node.target, given[0], folded, weights, given[3], *plain, given[-1])
        for user in list(node.users):
            with graph.graph.inserting_before(user):
                gradient = insert_call(graph, operator.getitem, gradients, user.args[1])
                if user.args[1] == 1:
                    gradient = folding.gradient(graph, gradient, user.meta["val"])
            user.replace_all_uses_with(gradient)
            graph.graph.erase_node(user)
        graph.graph.erase_node(node)


def _in_another_thread(function: Callable[..., bool], *arguments: Any) -> bool:
    """Call a function in another thread: in this one, new tensors are fake while the compiler runs."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result()


def is_faster(folding: Folding, images: Tensor, weight: Tensor, device: torch.device) -> bool:
    """Whether the folded convolution and the gradient of its weight are faster, including the copy of the images."""

    def made(shape: Sequence[int], like: Tensor) -> Tensor:
        return torch.randn(shape, dtype=like.dtype, device=device).contiguous(memory_format=torch.channels_last)

    def run(
        given: Tensor, kernel: Tensor, stride: tuple[int, int], padding: tuple[int, int], *, copies: bool
    ) -> object:
        given = given.clone() if copies else given
        shared = (stride, padding, (1, 1), False, (0, 0), 1)
        result = aten.convolution(given, kernel, None, *shared)
        return aten.convolution_backward(result, given, kernel, None, *shared, (False, True, False))

    (above, beside), (down, across) = folding.blocks, folding.stride
    channels = folding.channels * down * across + folding.missing
    height, width = folding.result[0] - 1 + above, folding.result[1] - 1 + beside
    plain = made(images.shape, images), made(weight.shape, weight), folding.stride, folding.padding
    folded = (
        made((len(images), channels, height, width), images),
        made((len(weight), channels, above, beside), weight),
    )
    ways = {"plain": partial(run, *plain, copies=False), "folded": partial(run, *folded, (1, 1), (0, 0), copies=True)}
    seconds = best_seconds(ways, device)
    return seconds["folded"] < _GAIN * seconds["plain"]
