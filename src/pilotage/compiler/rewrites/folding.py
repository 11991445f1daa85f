"""Space to depth: turns neighbouring pixels into channels, and a strided convolution into one with stride 1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.compiler.rewrites.insertion import insert_call

aten = torch.ops.aten

_TOGETHER = 8
"""Channels that matrix units process at once."""


@dataclass(frozen=True)
class Folding:
    """A convolution with few channels, and its folded form."""

    channels: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    size: tuple[int, int]
    result: tuple[int, int]

    @property
    def blocks(self) -> tuple[int, int]:
        """The size of the folded kernel."""
        return -(-self.kernel[0] // self.stride[0]), -(-self.kernel[1] // self.stride[1])

    @property
    def missing(self) -> int:
        """The number of zero channels to add as padding."""
        return -(self.channels * self.stride[0] * self.stride[1]) % _TOGETHER

    def images(self, graph: GraphModule, images: Node) -> Node:
        """Fold images."""
        after = [
            stride * (result - 1 + blocks) - size - before
            for stride, result, blocks, size, before in zip(
                self.stride, self.result, self.blocks, self.size, self.padding, strict=True
            )
        ]
        sides = [self.padding[1], after[1], self.padding[0], after[0]]
        return self._folded(graph, insert_call(graph, aten.constant_pad_nd.default, images, sides, 0.0))

    def weight(self, graph: GraphModule, weight: Node) -> Node:
        """Fold the weight."""
        (above, beside), (down, across) = self.blocks, self.stride
        sides = [0, beside * across - self.kernel[1], 0, above * down - self.kernel[0]]
        return self._folded(graph, insert_call(graph, aten.constant_pad_nd.default, weight, sides, 0.0))

    def gradient(self, graph: GraphModule, gradient: Node, like: Tensor) -> Node:
        """The gradient of the original weight from that of the folded weight."""
        (above, beside), (down, across) = self.blocks, self.stride
        kept = insert_call(graph, aten.slice.Tensor, gradient, 1, 0, self.channels * down * across)
        count = like.shape[0]
        kept = insert_call(graph, aten.clone.default, kept, memory_format=torch.contiguous_format)
        parts = insert_call(graph, aten.view.default, kept, [count, down, across, self.channels, above, beside])
        parts = insert_call(graph, aten.permute.default, parts, [0, 3, 4, 1, 5, 2])
        parts = insert_call(graph, aten.clone.default, parts, memory_format=torch.contiguous_format)
        whole = insert_call(graph, aten.view.default, parts, [count, self.channels, above * down, beside * across])
        whole = insert_call(graph, aten.slice.Tensor, whole, 2, 0, self.kernel[0])
        whole = insert_call(graph, aten.slice.Tensor, whole, 3, 0, self.kernel[1])
        return insert_call(graph, aten.clone.default, whole, memory_format=stored_like(like))

    def _folded(self, graph: GraphModule, padded: Node) -> Node:
        count, channels, height, width = padded.meta["val"].shape
        down, across = self.stride
        parts = insert_call(
            graph, aten.view.default, padded, [count, channels, height // down, down, width // across, across]
        )
        parts = insert_call(graph, aten.permute.default, parts, [0, 3, 5, 1, 2, 4])
        parts = insert_call(graph, aten.clone.default, parts, memory_format=torch.contiguous_format)
        size = [count, channels * down * across, height // down, width // across]
        whole = insert_call(graph, aten.view.default, parts, size)
        whole = insert_call(graph, aten.constant_pad_nd.default, whole, [0, 0, 0, 0, 0, self.missing], 0.0)
        return insert_call(graph, aten.clone.default, whole, memory_format=torch.channels_last)


def stored_like(like: Tensor) -> torch.memory_format:
    """The memory format of an image."""
    stored = like.dim() == 4 and like.is_contiguous(memory_format=torch.channels_last) and not like.is_contiguous()
    return torch.channels_last if stored else torch.contiguous_format
