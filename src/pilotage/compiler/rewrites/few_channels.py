"""Convolutions with a stride that see few channels, such as the first one of a network that looks at pictures.

Hardware for matrices works on eight channels at once or more. Where there are three, and the convolution takes every second point,
neighbours that always go together become channels: 7 x 7 points of 3 channels at stride 2 are 4 x 4 points of 12 at stride 1, filled
up to 16. The same products are summed, and some with zeros. Zeros keep infinite points from staying where they were, so this is for
training alone, where those end a run anyway. Whether it pays is measured.
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

from pilotage.compiler.benchmarking import best_seconds
from pilotage.compiler.rewrites.folding import Folding, stored_like
from pilotage.compiler.rewrites.insertion import insert_call

aten = torch.ops.aten

FEW = 4
"""Channels that are worth looking at."""

_GAIN = 0.9
"""The share of the time that has to be enough."""

Worth = Callable[[Folding, Tensor, Tensor], bool]


def fold_few_channels(graph: GraphModule, device: torch.device, worth: Worth | None = None) -> None:
    """Rewrite such convolutions, with the gradients of their weights, where that pays on a device."""
    worth = worth or (lambda *convolution: _elsewhere(is_faster, *convolution, device))
    pairs: dict[tuple[Node, Node], list[Node]] = defaultdict(list)
    for node in graph.graph.nodes:
        if node.target is aten.convolution.default:
            pairs[node.args[0], node.args[1]].append(node)
        elif node.target is aten.convolution_backward.default:
            pairs[node.args[1], node.args[2]].append(node)
    for (pictures, weight), nodes in pairs.items():
        folding = _folding(pictures, weight, nodes)
        if folding is not None and worth(folding, pictures.meta["val"], weight.meta["val"]):
            _fold(graph, folding, pictures, weight, nodes)


def _folding(pictures: Node, weight: Node, nodes: Sequence[Node]) -> Folding | None:
    """How to fold; None for other convolutions, for other layouts, without a gradient of the weight or with one of the pictures."""
    forward, *backward = nodes
    given: Any = forward.args
    if not backward or forward.target is not aten.convolution.default:
        return None
    # Folded, the result lies channels last; another layout may be what the rest of the graph was captured for.
    if stored_like(forward.meta["val"]) is not torch.channels_last or not all(
        _belongs(node, given) for node in backward
    ):
        return None
    stride, padding, dilation, transposed, _, groups = given[3:9]
    shape, kernel = pictures.meta["val"].shape, weight.meta["val"].shape
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
    """Whether a node is the gradient of a convolution's weight, and not of the pictures."""
    given: Any = node.args
    return node.target is aten.convolution_backward.default and given[4:10] == forward[3:9] and not given[10][0]


def _fold(graph: GraphModule, folding: Folding, pictures: Node, weight: Node, nodes: Sequence[Node]) -> None:
    forward, *backward = nodes
    plain: tuple[Any, ...] = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    with graph.graph.inserting_before(forward):
        folded, weights = folding.pictures(graph, pictures), folding.weight(graph, weight)
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


def _elsewhere(function: Callable[..., bool], *arguments: Any) -> bool:
    """Call a function in a thread of its own: in this one every new tensor is a fake one, without data, while the compiler works."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result()


def is_faster(folding: Folding, pictures: Tensor, weight: Tensor, device: torch.device) -> bool:
    """Whether the convolution and the gradient of its weight take less time when folded, the copy of the pictures included."""

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
    plain = made(pictures.shape, pictures), made(weight.shape, weight), folding.stride, folding.padding
    folded = (
        made((len(pictures), channels, height, width), pictures),
        made((len(weight), channels, above, beside), weight),
    )
    ways = {"plain": partial(run, *plain, copies=False), "folded": partial(run, *folded, (1, 1), (0, 0), copies=True)}
    seconds = best_seconds(ways, device)
    return seconds["folded"] < _GAIN * seconds["plain"]
