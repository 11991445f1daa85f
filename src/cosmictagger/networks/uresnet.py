"""The U-shaped residual network of CosmicTagger, for pictures (2D) and volumes (3D)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cosmictagger.configuration.network import Network
from cosmictagger.networks.blocks import PLANES, Block, Style
from cosmictagger.networks.convolutions import convolve
from cosmictagger.networks.levels import Core
from cosmictagger.networks.series import BlockSeries

CLASSES = 3


class UResNet(nn.Module):
    """Three planes of charge in, three planes of class scores out."""

    def __init__(self, network: Network, compute_type: torch.dtype = torch.float32) -> None:
        super().__init__()
        style = Style(conv_mode=network.conv_mode, normalization=network.normalization, bias=network.bias)
        filters = network.n_initial_filters
        self.compute_type = compute_type
        """What activations are computed in; the weights stay as they are."""
        self.initial_convolution = Block(style, 1, filters, size=5, padding=2)
        self.net_core = Core(network, style, network.depth, filters)
        self.final_layer = BlockSeries(style, filters, network.blocks_final, residual=network.residual)
        self.bottleneck = style.convolution(filters, CLASSES, 1)
        if not style.is_volume:
            initialize(self)

    def stacked(self, image: Tensor) -> Tensor:
        """Scores of all planes, plane by plane along the batch: (3 N, 3 classes, H, W)."""
        x = stack_planes(image.to(self.compute_type))
        x = self.final_layer(self.net_core(self.initial_convolution(x)))
        return convolve(self.bottleneck, x, self.bottleneck.bias)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of each plane, (N, 3 classes, H, W), from images (N, 3 planes, H, W)."""
        first, second, third = self.stacked(image).chunk(PLANES)
        return first, second, third


def stack_planes(image: Tensor) -> Tensor:
    """(N, 3, H, W) as (3 N, 1, H, W), plane by plane."""
    events, planes, height, width = image.shape
    return image.transpose(0, 1).reshape(planes * events, 1, height, width)


@torch.no_grad()
def initialize(network: nn.Module) -> None:
    """Xavier's uniform weights and no bias for each convolution, as the original starts."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def build(network: Network, compute_type: torch.dtype = torch.float32) -> UResNet:
    """The network in the layout that is fastest everywhere: channels last."""
    built = UResNet(network, compute_type)
    for module in built.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return built


def parameter_count(network: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)
