import torch
import torch.nn as nn


class Block(nn.Module):

    def __init__(self, inplanes, outplanes, kernel=3, padding=1):
        nn.Module.__init__(self)
        self.conv = nn.Conv2d(inplanes, outplanes, kernel, padding=padding)
        self.norm = nn.BatchNorm2d(outplanes)
        self.activation = nn.LeakyReLU()

    def forward(self, x):
        return self.activation(self.norm(self.conv(x)))


class UNetCore(nn.Module):

    def __init__(self, depth, filters):
        nn.Module.__init__(self)
        self.depth = depth
        if depth == 0:
            self.bottleneck = Block(3 * filters, 3 * filters, 1, 0)
        else:
            self.down_block = Block(filters, filters)
            self.downsample = nn.Sequential(nn.MaxPool2d(2), Block(filters, 2 * filters, 1, 0))
            self.inner = UNetCore(depth - 1, 2 * filters)
            self.upsample = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), Block(2 * filters, filters, 1, 0))
            self.up_block = Block(filters, filters)

    def forward(self, x):
        if self.depth == 0:
            return torch.chunk(self.bottleneck(torch.cat(x, dim=1)), chunks=3, dim=1)
        residual = x
        x = tuple(self.downsample(self.down_block(_x)) for _x in x)
        x = self.inner(x)
        return tuple(self.up_block(self.upsample(_x) + _r) for _x, _r in zip(x, residual))


class UResNet(nn.Module):

    def __init__(self, params):
        nn.Module.__init__(self)
        self.initial = Block(1, params.n_initial_filters, 5, 2)
        self.net_core = UNetCore(params.depth, params.n_initial_filters)
        self.bottleneck = nn.Conv2d(params.n_initial_filters, 3, 1)

    def forward(self, input_tensor):
        # Each plane goes through the same layers; only the deepest ones see all three.
        x = torch.chunk(input_tensor, chunks=3, dim=1)
        x = tuple(self.initial(_x) for _x in x)
        x = self.net_core(x)
        x = tuple(self.bottleneck(_x) for _x in x)
        return x
