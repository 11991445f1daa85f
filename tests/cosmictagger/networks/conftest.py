"""The original's networks, which process plane after plane, and their reference values."""

import json
import math
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint

from cosmictagger.configuration.choices import Connection, ConvMode, DownSampling, UpSampling
from cosmictagger.configuration.network import PRESETS
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.records.original_files import our_name


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


MASK = np.uint64(0xFFFFFFFF)


def hashed(name, count):
    """Numbers in (-1, 1) that depend only on a name and the position."""
    bits = (np.arange(count, dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()))) & MASK
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        bits ^= bits >> np.uint64(shift)
        bits = (bits * np.uint64(factor)) & MASK
    bits ^= bits >> np.uint64(16)
    return (bits + 0.5) / 2**31 - 1


def weight(name, shape):
    values = hashed(name, math.prod(shape)).reshape(shape)
    if len(shape) > 1:
        return values * math.sqrt(3 / math.prod(shape[1:]))
    return 1 + 0.25 * values if name.endswith("norm.weight") else 0.1 * values


class ReferenceCase:
    """One network of the original."""

    def __init__(self, values):
        self.values = values
        self.options = replace(PRESETS[values["preset"]], **values["changed_fields"])
        self.names = [row[1] for row in values["parameters"]]
        """The original's names, in the order of its optimizer."""
        self.weights = {name: torch.from_numpy(weight(name, shape)) for _, name, shape, *_ in values["parameters"]}

    def network(self, kind):
        """Our network with the original's weights."""
        network = build(self.options, kind).to(kind)
        given = {our_name(name): tensor.to(kind) for name, tensor in self.weights.items()}
        missing, unexpected = network.load_state_dict(given, strict=False)
        assert not unexpected
        assert not [name for name in missing if "running" not in name and "tracked" not in name]
        return network


@pytest.fixture(scope="session", name="hashed")
def hash_function():
    """The formula behind the reference's weights."""
    return hashed


@pytest.fixture(scope="module")
def reference():
    """Reference values of the original, if present; the repository does not hold them."""
    place = Path(os.environ.get("COSMICTAGGER_PARITY_FILE", ""))
    if not place.is_file():
        pytest.skip("COSMICTAGGER_PARITY_FILE names no file")
    return json.loads(place.read_text())


@pytest.fixture(scope="module")
def events(reference):
    """The images and labels behind the reference values."""
    place = Path(os.environ.get("COSMICTAGGER_REAL_FILE", ""))
    if not place.is_file():
        pytest.skip("COSMICTAGGER_REAL_FILE names no file")
    pytest.importorskip("h5py")
    from cosmictagger.data.larcv.event_file import EventFile

    wanted = reference["recipe"]["input"]
    with EventFile(place) as file:
        batch = file.dense_batch(wanted["events"], wanted["downsample"])
    return torch.from_numpy(batch.image), torch.from_numpy(batch.label)


@pytest.fixture(scope="module")
def case(reference, request):
    return ReferenceCase(reference["cases"][request.param])
