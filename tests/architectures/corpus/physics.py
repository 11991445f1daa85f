"""Networks of the sciences: derivatives in the loss, float64, complex numbers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from corpus.case import ADAM, ADAMW, MOMENTUM, SGD, Case


def tanh_network(given: int, result: int, width: int = 16) -> nn.Sequential:
    """A smooth perceptron."""
    return nn.Sequential(
        nn.Linear(given, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, result)
    )


class PhysicsInformed(nn.Module):
    """Burgers' equation in float64: the loss has second derivatives by place."""

    def __init__(self) -> None:
        super().__init__()
        self.network = tanh_network(2, 1)
        self.viscosity = nn.Parameter(torch.tensor(0.1))
        self.double()

    def forward(self, points: Tensor, values: Tensor) -> Tensor:
        """The residual of the equation and the error of the values."""
        points = points.detach().requires_grad_()
        u = self.network(points)
        (slope,) = torch.autograd.grad(u.sum(), points, create_graph=True)
        (bend,) = torch.autograd.grad(slope[:, 0].sum(), points, create_graph=True)
        residual = slope[:, 1] + u[:, 0] * slope[:, 0] - self.viscosity * bend[:, 0]
        return residual.square().mean() + functional.mse_loss(u, values)


class Hamiltonian(nn.Module):
    """Motion from the gradient of a learned energy, in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 1, bias=False))
        self.double()

    def forward(self, place: Tensor, motion: Tensor) -> Tensor:
        """The error of the motion."""
        place = place.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.energy(place).sum(), place, create_graph=True)
        by_place, by_speed = slope.chunk(2, 1)
        return functional.mse_loss(torch.cat([by_speed, -by_place], 1), motion)


class SpectralConvolution(nn.Module):
    """Complex weights on the lowest frequencies."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(2, width, width, modes, modes, dtype=torch.cfloat) / width)

    def forward(self, x: Tensor) -> Tensor:
        """The filtered field."""
        spectrum, m = torch.fft.rfft2(x), self.modes
        found = torch.zeros_like(spectrum)
        found[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.weight[0])
        found[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.weight[1])
        return torch.fft.irfft2(found, s=x.shape[-2:])


class FourierOperator(nn.Module):
    """A Fourier neural operator."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.project = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 1, 1)
        self.spectral, self.local = SpectralConvolution(4, 3), nn.Conv2d(4, 4, 1)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """The relative error."""
        h = self.lift(x)
        found = self.project(functional.gelu(self.spectral(h) + self.local(h)))
        return torch.linalg.vector_norm(found - target) / torch.linalg.vector_norm(target)


class ComplexNetwork(nn.Module):
    """Complex layers with a ReLU on the magnitude, as for radio signals."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(6, 8, dtype=torch.cfloat) * 0.3)
        self.last = nn.Parameter(torch.randn(8, 2, dtype=torch.cfloat) * 0.3)
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, real: Tensor, imaginary: Tensor, target: Tensor) -> Tensor:
        """The error of the magnitudes."""
        h = torch.complex(real, imaginary) @ self.first
        size = h.abs()
        h = h * (functional.relu(size + self.bias) / (size + 1e-3))
        return functional.mse_loss((h @ self.last).abs(), target)


class OperatorNetwork(nn.Module):
    """DeepONet: a branch for the function, a trunk for the place."""

    def __init__(self) -> None:
        super().__init__()
        self.branch, self.trunk = tanh_network(10, 8), tanh_network(1, 8)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, functions: Tensor, places: Tensor, values: Tensor) -> Tensor:
        """The error of the values."""
        found = torch.einsum("bi,pi->bp", self.branch(functions), self.trunk(places)) + self.bias
        return functional.mse_loss(found, values)


class DifferentialEquation(nn.Module):
    """A neural ordinary differential equation, with the steps of Runge and Kutta in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.field = tanh_network(2, 2)
        self.double()

    def forward(self, start: Tensor, path: Tensor) -> Tensor:
        """The error along the path."""
        now, step, lost = start, 0.1, start.new_zeros(())
        for then in path.unbind(1):
            one = self.field(now)
            two = self.field(now + step / 2 * one)
            three = self.field(now + step / 2 * two)
            four = self.field(now + step * three)
            now = now + step / 6 * (one + 2 * two + 2 * three + four)
            lost = lost + functional.mse_loss(now, then)
        return lost


class Siren(nn.Module):
    """Sines as activations, and a loss on the gradient of the picture."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1, bias=False)])

    def forward(self, places: Tensor, slopes: Tensor) -> Tensor:
        """The error of the slopes."""
        h = places = places.detach().requires_grad_()
        for layer in self.layers[:-1]:
            h = torch.sin(5.0 * layer(h))
        (slope,) = torch.autograd.grad(self.layers[-1](h).sum(), places, create_graph=True)
        return functional.mse_loss(slope, slopes)


class EquivariantGraph(nn.Module):
    """Forces between all pairs of atoms, which turn with the molecule."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds, self.message = nn.Embedding(4, 8), nn.Sequential(nn.Linear(17, 16), nn.SiLU(), nn.Linear(16, 8))
        self.force = nn.Linear(8, 1)

    def forward(self, kinds: Tensor, places: Tensor, forces: Tensor) -> Tensor:
        """The error of the forces."""
        h = self.kinds(kinds)
        apart = places[:, :, None] - places[:, None]
        distance = apart.square().sum(-1, keepdim=True)
        count = h.shape[1]
        pairs = torch.cat([h[:, :, None].expand(-1, -1, count, -1), h[:, None].expand(-1, count, -1, -1), distance], -1)
        strength = self.force(self.message(pairs))
        return functional.mse_loss((apart * strength / (distance.sqrt() + 1)).sum(2), forces)


DOUBLE = torch.float64

PHYSICS = {
    "physics-informed network": Case(
        PhysicsInformed, lambda: [torch.rand(8, 2, dtype=DOUBLE), torch.rand(8, 1, dtype=DOUBLE)], ADAM
    ),
    "Hamiltonian network": Case(
        Hamiltonian, lambda: [torch.randn(8, 4, dtype=DOUBLE), torch.randn(8, 4, dtype=DOUBLE)], MOMENTUM
    ),
    "Fourier neural operator": Case(FourierOperator, lambda: [torch.randn(2, 3, 8, 8), torch.randn(2, 1, 8, 8)], ADAMW),
    "complex network": Case(ComplexNetwork, lambda: [torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 2)], SGD),
    "DeepONet": Case(OperatorNetwork, lambda: [torch.randn(4, 10), torch.rand(6, 1), torch.randn(4, 6)], ADAM),
    "neural differential equation": Case(
        DifferentialEquation, lambda: [torch.randn(4, 2, dtype=DOUBLE), torch.randn(4, 3, 2, dtype=DOUBLE)], ADAM
    ),
    "SIREN": Case(Siren, lambda: [torch.rand(16, 2), torch.randn(16, 2)], ADAM),
    "equivariant graph network": Case(
        EquivariantGraph, lambda: [torch.randint(0, 4, (2, 5)), torch.randn(2, 5, 3), torch.randn(2, 5, 3)], ADAMW
    ),
}
