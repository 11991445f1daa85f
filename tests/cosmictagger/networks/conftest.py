"""The original's networks, which process plane after plane."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint

from cosmictagger.configuration.choices import Connection, ConvMode, DownSampling, UpSampling
from cosmictagger.networks.uresnet import UResNet


class Plain:
    """The original's network, using our modules only for their weights."""

    def __init__(self, network: UResNet, options, *, recomputes: bool = False) -> None:
        self.net, self.options, self.recomputes = network, options, recomputes
        self.volume = options.conv_mode is ConvMode.conv_3D

    def planes(self, image):
        if self.volume:
            return [image.unsqueeze(1)]
        return list(image.chunk(3, dim=1))

    def __call__(self, image):
        planes = [self.block(self.net.initial_convolution, x) for x in self.planes(image)]
        planes = self.level(self.net.net_core, planes)
        planes = [self.conv(self.net.bottleneck, self.series(self.net.final_layer, x)) for x in planes]
        return [planes[0][:, :, p] for p in range(3)] if self.volume else planes

    def conv(self, conv, x):
        kind = F.conv3d if self.volume else F.conv2d
        return kind(x, conv.weight, conv.bias, conv.stride, conv.padding)

    def block(self, block, x, activate=True):
        if self.recomputes:
            return checkpoint(self._block, block, x, activate, use_reentrant=False)
        return self._block(block, x, activate)

    def _block(self, block, x, activate):
        if isinstance(block.conv, nn.ConvTranspose2d | nn.ConvTranspose3d):
            kind = F.conv_transpose3d if self.volume else F.conv_transpose2d
            x = kind(x, block.conv.weight, block.conv.bias, block.conv.stride)
        else:
            x = self.conv(block.conv, x)
        if isinstance(block.norm, nn.LayerNorm):
            x = block.norm(x.movedim(1, -1)).movedim(-1, 1)
        elif block.norm is not None:
            x = block.norm(x)
        return F.leaky_relu(x, block.slope) if activate else x

    def series(self, series, x):
        for block in series.blocks:
            if self.options.residual:
                x = F.leaky_relu(self.block(block.convolution_2, self.block(block.convolution_1, x), False) + x, 0.01)
            else:
                x = self.block(block, x)
        return x

    def down(self, module, x):
        if self.options.downsampling is DownSampling.convolutional:
            return self.block(module, x)
        return self.block(module.bottleneck, F.max_pool3d(x, (1, 2, 2)) if self.volume else F.max_pool2d(x, 2))

    def up(self, module, x):
        if self.options.upsampling is UpSampling.convolutional:
            return self.block(module, x)
        if self.volume:
            return self.block(module.bottleneck, F.interpolate(x, scale_factor=(1, 2, 2), mode="nearest"))
        return self.block(module.bottleneck, F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False))

    def connect(self, module, x, skip):
        match self.options.connections:
            case Connection.sum:
                return x + skip
            case Connection.none:
                return x
            case Connection.concat:
                return self.block(module.bottleneck, torch.cat((x, skip), 1))

    def level(self, core, planes):
        if core.down_blocks is None:
            return self.deepest(core.main_module, planes)
        early, planes = planes, [self.series(core.down_blocks, x) for x in planes]
        late, planes = planes, [self.down(core.downsample, x) for x in planes]
        planes = [self.up(core.upsample, x) for x in self.level(core.main_module, planes)]
        if self.volume:
            planes = [self.series(core.up_blocks, x) for x in planes]
            return [self.connect(core.connection, x, skip) for x, skip in zip(planes, late, strict=True)]
        planes = [self.connect(core.connection, x, skip) for x, skip in zip(planes, early, strict=True)]
        return [self.series(core.up_blocks, x) for x in planes]

    def deepest(self, deepest, planes):
        def through(x):
            return self.block(deepest.unbottleneck, self.series(deepest.blocks, self.block(deepest.bottleneck, x)))

        if self.volume:
            return [through(planes[0])]
        if self.options.block_concat:
            narrow = [self.block(deepest.bottleneck, x) for x in planes]
            return [self.block(deepest.unbottleneck, self.series(deepest.blocks, x)) for x in narrow]
        return torch.chunk(through(torch.cat(planes, 1)), 3, 1)


@pytest.fixture
def plain_network() -> type[Plain]:
    """The class of the original's network."""
    return Plain
