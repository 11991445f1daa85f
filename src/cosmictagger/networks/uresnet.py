"""CosmicTagger's U-shaped residual network, in 2D and 3D."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cosmictagger.configuration.network import Network
from cosmictagger.networks.blocks import PLANES, Block, Style
from cosmictagger.networks.convolutions import convolve
from cosmictagger.networks.heads import VERTEX_LEVEL, EventClassifier, VertexFinder
from cosmictagger.networks.levels import Core
from cosmictagger.networks.series import BlockSeries

CLASSES = 3


class Outputs(NamedTuple):
    """The outputs for a batch."""

    scores: Tensor
    """Scores of each pixel's class, stacked plane by plane: (3 N, 3 classes, H, W)."""

    event: Tensor | None = None
    """Scores of each event's class, (N, 4)."""

    vertex: Tensor | None = None
    """Logits of the vertex's presence and offset, (3 N, 3, h, w)."""


class UResNet(nn.Module):
    """Three planes of charge in, three planes of class scores out."""

    def __init__(
        self, network: Network, compute_type: torch.dtype = torch.float32, *, quantization_aware: bool = False
    ) -> None:
        super().__init__()
        style = Style(
            conv_mode=network.conv_mode,
            normalization=network.normalization,
            bias=network.bias,
            rounded=quantization_aware,
        )
        filters = network.n_initial_filters
        self.compute_type = compute_type
        """The type of activations; the weights keep theirs."""
        self.initial_convolution = Block(style, 1, filters, size=5, padding=2)
        self.net_core = Core(network, style, network.depth, filters)
        self.final_layer = BlockSeries(style, filters, network.blocks_final, residual=network.residual)
        self.bottleneck = style.convolution(filters, CLASSES, 1)
        self.event_classifier = EventClassifier(network, style) if network.event_label else None
        self.vertex_finder = VertexFinder(network, style) if network.vertex else None
        if not style.is_volume:
            initialize(self)

    def outputs(self, image: Tensor) -> Outputs:
        """All outputs for images (N, 3 planes, H, W)."""
        event, vertex = self.event_classifier, self.vertex_finder
        levels: list[Tensor] | None = None if event is None and vertex is None else []
        x = self.net_core(self.initial_convolution(stack_planes(image.to(self.compute_type))), levels)
        x = self.final_layer(x)
        scores = convolve(self.bottleneck, x, self.bottleneck.bias)
        if levels is None:
            return Outputs(scores)
        return Outputs(
            scores,
            None if event is None else event(levels[0]),
            None if vertex is None else vertex(levels[VERTEX_LEVEL]),
        )

    def stacked(self, image: Tensor) -> Tensor:
        """Scores of all planes, plane by plane along the batch: (3 N, 3 classes, H, W)."""
        return self.outputs(image).scores

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor] | dict[str, Any]:
        """Scores of each plane, (N, 3 classes, H, W); with heads, a dictionary of these and the heads' outputs."""
        outputs = self.outputs(image)
        first, second, third = outputs.scores.chunk(PLANES)
        if outputs.event is None and outputs.vertex is None:
            return first, second, third
        heads = {
            "event_label": outputs.event,
            "vertex": None if outputs.vertex is None else outputs.vertex.sigmoid().chunk(PLANES),
        }
        return {
            "segmentation": (first, second, third),
            **{name: each for name, each in heads.items() if each is not None},
        }


def stack_planes(image: Tensor) -> Tensor:
    """(N, 3, H, W) as (3 N, 1, H, W), plane by plane."""
    events, planes, height, width = image.shape
    return image.transpose(0, 1).reshape(planes * events, 1, height, width)


@torch.no_grad()
def initialize(network: nn.Module) -> None:
    """Initialize convolutions like the original: Xavier-uniform weights, zero bias."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def build(network: Network, compute_type: torch.dtype = torch.float32, *, quantization_aware: bool = False) -> UResNet:
    """Build the network in channels-last layout, which is fastest on all devices."""
    built = UResNet(network, compute_type, quantization_aware=quantization_aware)
    for module in built.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return built


def parameter_count(network: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
