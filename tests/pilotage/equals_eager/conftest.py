"""The models and optimizers for comparing captured training with eager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import pilotage
from pilotage.optim.lamb import Lamb


class Trained(nn.Module):
    """A network with a cross entropy on its output."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        output = self.network(x)
        return output, functional.cross_entropy(output, target)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layers = kind(6, 5, num_layers=2, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x)[0][:, -1])


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        for copied in self.layers.layers:
            # Attention does not depend on the bias of its keys: its gradient is only rounding error. Starting
            # from zeros, Adam and RMSprop with weight decay would amplify it hundreds of times at each step.
            nn.init.uniform_(copied.self_attn.in_proj_bias, -0.5, 0.5)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x).mean(dim=1))


class Tied(nn.Module):
    """A language model with tied input and output embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.middle = nn.Linear(4, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.middle(self.words(x).mean(dim=1))))


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.bags = nn.EmbeddingBag(9, 4, mode="mean")
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.cat([self.words(x).sum(dim=1), self.bags(x)], dim=1))


class Replaced(nn.Module):
    """A moving average that is reassigned in each step, and a parameter that the loss does not depend on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.unused = nn.Linear(5, 3)
        self.register_buffer("average", torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        self.average = self.average * 0.9 + x.mean(dim=0) * 0.1
        return self.layer(x - self.average)


def images(norm: nn.Module) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), norm, nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    )


def numbers(*shape: int) -> Callable[[int], Tensor]:
    return lambda count: torch.randn(count, *shape)


def words(kinds: int) -> Callable[[int], Tensor]:
    return lambda count: torch.randint(0, kinds, (count, 5))


@dataclass(frozen=True)
class Model:
    network: Callable[[], nn.Module]
    draw: Callable[[int], Tensor]
    classes: int = 3
    tolerance: float = 0.0
    """The tolerance for outputs and weights after a few steps; zero means bitwise equality."""

    writes_buffers: bool = False

    def build(self) -> nn.Module:
        return Trained(self.network())

    def batch(self, count: int) -> tuple[Tensor, Tensor]:
        return self.draw(count), torch.randint(0, self.classes, (count,))


MODELS = {
    "mlp": Model(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), numbers(5)),
    "batch_norm": Model(lambda: images(nn.BatchNorm2d(4)), numbers(2, 6, 6), writes_buffers=True),
    "group_norm": Model(lambda: images(nn.GroupNorm(2, 4)), numbers(2, 6, 6)),
    "lstm": Model(lambda: Recurrent(nn.LSTM), numbers(4, 6)),
    "gru": Model(lambda: Recurrent(nn.GRU), numbers(4, 6)),
    "encoder": Model(Encoder, numbers(4, 8)),
    "tied": Model(Tied, words(7), classes=7),
    "embedding": Model(Words, words(9)),
    "replaced_buffer": Model(Replaced, numbers(5), writes_buffers=True),
}

OPTIMIZERS: dict[str, Callable[[Iterable[Tensor]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "sgd_dampening": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.2, weight_decay=0.01),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_weight_decay": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.02),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, centered=True, weight_decay=0.01),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "lamb": lambda p: Lamb(p, lr=0.02, weight_decay=0.01),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument ``model`` or ``optimizer`` runs for all of them, unless it names its own."""
    named = {name for mark in metafunc.definition.iter_markers("parametrize") for name in str(mark.args[0]).split(",")}
    for argument, choices in (("model", MODELS), ("optimizer", OPTIMIZERS)):
        if argument in metafunc.fixturenames and argument not in named:
            metafunc.parametrize(argument, list(choices))


@pytest.fixture
def assert_equals_eager(eager, twins, assert_equal, assert_same_state):
    """Train a model captured and eagerly on the same batches, and compare everything."""

    def compare(
        model: str,
        optimizer: str,
        *,
        calls: int = 3,
        seed: int = 0,
        backend: str | None = None,
        tier: str | None = None,
        dtype: torch.dtype = torch.float32,
        tolerance: float | None = None,
        **options,
    ) -> None:
        case, make = MODELS[model], OPTIMIZERS[optimizer]
        close = case.tolerance if tolerance is None else tolerance
        mine, theirs = twins(lambda: case.build().to(dtype))
        reference = eager(theirs, make(theirs.parameters()), **options)
        allowed = {"broadcast_buffers": False} if case.writes_buffers else {}
        step = pilotage.training(mine, make(mine.parameters()), backend=backend, tier=tier, **options, **allowed)
        torch.manual_seed(seed)
        for _ in range(calls):
            drawn = case.batch(2 * step._executor.execution.batching.micro_batches_per_call)
            batch = [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in drawn]
            assert_equal(step(*batch), reference(*batch), close)
        assert_same_state(mine, theirs, close)

    return compare


@pytest.fixture(scope="session")
def models() -> dict[str, Model]:
    return MODELS


@pytest.fixture(scope="session")
def optimizers() -> dict[str, Callable[[Iterable[Tensor]], torch.optim.Optimizer]]:
    return OPTIMIZERS
