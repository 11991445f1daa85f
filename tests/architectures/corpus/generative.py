"""Networks that make pictures."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.attention import Attention
from corpus.case import ADAM, ADAMW, RMSPROP, Case


def double(given: int, result: int) -> nn.Sequential:
    """Two convolutions with normalisation and SiLU; the biases of the convolutions stay, as many people leave them."""
    return nn.Sequential(
        nn.Conv2d(given, result, 3, padding=1), nn.BatchNorm2d(result), nn.SiLU(),
        nn.Conv2d(result, result, 3, padding=1), nn.BatchNorm2d(result), nn.SiLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Down by pooling, up by transposed convolutions, with skips."""

    def __init__(self, widths: tuple[int, ...] = (4, 8), channels: int = 3) -> None:
        super().__init__()
        inputs = (channels, *widths)
        self.down = nn.ModuleList(double(*pair) for pair in zip(inputs, widths, strict=False))
        pairs = list(itertools.pairwise(widths))[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, stride=2) for narrow, wide in pairs)
        self.merged = nn.ModuleList(double(2 * narrow, narrow) for narrow, _ in pairs)
        self.last = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """The loss of each pixel."""
        skips: list[Tensor] = []
        for number, layer in enumerate(self.down):
            x = layer(functional.max_pool2d(x, 2) if number else x)
            skips.append(x)
        skips.pop()
        for up, merged in zip(self.up, self.merged, strict=True):
            x = merged(torch.cat([skips.pop(), up(x)], 1))
        return functional.binary_cross_entropy_with_logits(self.last(x).float(), mask)


class DiffusionBlock(nn.Module):
    """Group norm, SiLU, convolution, and a shift and scale from the time."""

    def __init__(self, given: int, result: int) -> None:
        super().__init__()
        self.first, self.second = nn.GroupNorm(2, given), nn.GroupNorm(2, result)
        self.one, self.other = nn.Conv2d(given, result, 3, padding=1), nn.Conv2d(result, result, 3, padding=1)
        self.time, self.same = nn.Linear(16, 2 * result), nn.Conv2d(given, result, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """The block's result."""
        h = self.one(functional.silu(self.first(x)))
        scale, shift = self.time(time)[:, :, None, None].chunk(2, 1)
        h = self.second(h) * (1 + scale) + shift
        return self.same(x) + self.other(functional.dropout(functional.silu(h), 0.1, self.training))


class Diffusion(nn.Module):
    """A diffusion model: predicts the noise in a picture at a random time."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.time = nn.Conv2d(3, 8, 3, padding=1), nn.Sequential(nn.Linear(16, 16), nn.SiLU())
        self.down, self.middle, self.up = DiffusionBlock(8, 8), DiffusionBlock(8, 8), DiffusionBlock(16, 8)
        self.smaller, self.attention = nn.Conv2d(8, 8, 3, 2, 1), Attention(8)
        self.larger, self.last = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)
        self.register_buffer("kept", torch.linspace(0.999, 0.01, 10))

    def forward(self, pictures: Tensor) -> Tensor:
        """The loss of the predicted noise."""
        step = torch.randint(0, 10, (len(pictures),), device=pictures.device)
        noise = torch.randn_like(pictures)
        kept = self.kept[step][:, None, None, None]
        x = kept.sqrt() * pictures + (1 - kept).sqrt() * noise
        angles = step[:, None] * torch.exp(-math.log(10000) * torch.arange(8, device=step.device) / 8)
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        skip = self.down(self.stem(x), time)
        h = self.middle(self.smaller(skip), time)
        h = h + self.attention(h.flatten(2).transpose(1, 2)).transpose(1, 2).view_as(h)
        h = self.larger(functional.interpolate(h, scale_factor=2.0, mode="nearest"))
        return functional.mse_loss(self.last(self.up(torch.cat([h, skip], 1), time)), noise)


class VariationalAutoencoder(nn.Module):
    """Encoder, a draw, and decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.LeakyReLU(), nn.Flatten(), nn.Linear(64, 8))
        self.decoder = nn.Sequential(
            nn.Linear(4, 64), nn.ReLU(), nn.Unflatten(1, (4, 4, 4)), nn.ConvTranspose2d(4, 1, 4, 2, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        """Reconstruction and divergence."""
        mean, spread = self.encoder(x).chunk(2, 1)
        found = self.decoder(mean + torch.randn_like(mean) * (0.5 * spread).exp())
        divergence = -0.5 * (1 + spread - mean.square() - spread.exp()).sum()
        return functional.binary_cross_entropy(found, x, reduction="sum") + divergence


class Quantized(nn.Module):
    """VQ-VAE: the nearest code in place of each vector, with a straight-through gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Conv2d(1, 4, 4, 4), nn.ConvTranspose2d(4, 1, 4, 4)
        self.codes = nn.Parameter(torch.randn(16, 4))

    def forward(self, x: Tensor) -> Tensor:
        """Reconstruction, codes, and commitment."""
        found = self.encoder(x).permute(0, 2, 3, 1)
        nearest = torch.cdist(found.flatten(0, 2).detach(), self.codes.detach()).argmin(-1)
        codes = self.codes[nearest].view_as(found)
        lost = functional.mse_loss(codes, found.detach()) + 0.25 * functional.mse_loss(found, codes.detach())
        passed = found + (codes - found).detach()
        return lost + functional.mse_loss(self.decoder(passed.permute(0, 3, 1, 2)), x)


class Adversary(nn.Module):
    """DCGAN's generator against a critic that stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.ConvTranspose2d(8, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
            nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(True),
            nn.ConvTranspose2d(4, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip
        self.critic = nn.Sequential(
            nn.Conv2d(3, 4, 4, 2, 1),
            nn.InstanceNorm2d(4, affine=True),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(256, 1),
        ).requires_grad_(False)

    def forward(self, noise: Tensor) -> Tensor:
        """The generator's loss."""
        return functional.softplus(-self.critic(self.generator(noise))).mean()


class Modulated(nn.Module):
    """StyleGAN's convolution: weights scaled by a style and normalised, one group for each picture."""

    def __init__(self) -> None:
        super().__init__()
        self.style = nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 4))
        self.start, self.weight = nn.Parameter(torch.randn(4, 4, 4)), nn.Parameter(torch.randn(6, 4, 3, 3))
        self.strength, self.last = nn.Parameter(torch.full((1,), 0.1)), nn.Conv2d(6, 3, 1)

    def forward(self, code: Tensor, pictures: Tensor) -> Tensor:
        """The loss."""
        weight = self.weight[None] * self.style(code)[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        count = len(code)
        x = functional.interpolate(self.start.expand(count, -1, -1, -1), scale_factor=2, mode="bilinear")
        x = functional.conv2d(x.reshape(1, -1, 8, 8), weight.flatten(0, 1), padding=1, groups=count).view(
            count, 6, 8, 8
        )
        x = functional.leaky_relu(x + self.strength * torch.randn(count, 1, 8, 8), 0.2)
        return functional.l1_loss(self.last(x), pictures)


class Flow(nn.Module):
    """Affine couplings and a triangular mixing: a density with a known determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.networks = nn.ModuleList(nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 6)) for _ in range(2))
        self.mixing = nn.Parameter(torch.eye(6) + 0.1 * torch.randn(6, 6).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        """The negative likelihood."""
        volume = torch.zeros(len(x))
        for network in self.networks:
            kept, changed = x.chunk(2, 1)
            scale, shift = network(kept).chunk(2, 1)
            x = torch.cat([changed * scale.tanh().exp() + shift, kept], 1) @ self.mixing
            volume = volume + scale.tanh().sum(1) + torch.linalg.slogdet(self.mixing)[1]
        return (0.5 * x.square().sum(1) - volume).mean()


class SuperResolution(nn.Module):
    """Channels become pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2)
        )

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return functional.huber_loss(self.layers(x) + functional.interpolate(x, scale_factor=2, mode="bicubic"), target)


GENERATIVE = {
    "U-Net": Case(UNet, lambda: [torch.randn(2, 3, 16, 16), torch.rand(2, 1, 16, 16)], ADAM),
    "diffusion U-Net": Case(Diffusion, lambda: [torch.randn(2, 3, 8, 8)], ADAMW),
    "variational autoencoder": Case(VariationalAutoencoder, lambda: [torch.rand(2, 1, 8, 8)], ADAM),
    "VQ-VAE": Case(Quantized, lambda: [torch.rand(2, 1, 8, 8)], ADAM),
    "GAN generator": Case(Adversary, lambda: [torch.randn(2, 8, 1, 1)], ADAM),
    "StyleGAN": Case(Modulated, lambda: [torch.randn(2, 8), torch.randn(2, 3, 8, 8)], ADAM),
    "normalizing flow": Case(Flow, lambda: [torch.randn(8, 6)], ADAM),
    "super resolution": Case(SuperResolution, lambda: [torch.randn(2, 1, 8, 8), torch.randn(2, 1, 16, 16)], RMSPROP),
}
