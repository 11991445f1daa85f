"""Programs that the compiling process has compiled, compared with the graph and with eager PyTorch."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError, ProgramFileError


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Compiled code of the programs of this file; some tests use the same program."""
    return tmp_path_factory.mktemp("cache")


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 3))

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.layers(x), y)


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            # No bias: batch norm cancels it, so its gradient is pure rounding error, which Adam would amplify.
            nn.Conv2d(2, 4, 3, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.GroupNorm(2, 4),
            nn.Flatten(),
        )
        self.last = nn.Linear(36, 3)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.last(self.layers(x)), y)


class Attention(nn.Module):
    """Has a dropout mask whose memory order differs from its index order."""

    def __init__(self):
        super().__init__()
        # No bias: that of the keys has no effect, so its gradient is pure rounding error, which Adam would amplify.
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.25, batch_first=True, bias=False)

    def forward(self, x, y):
        return nn.functional.mse_loss(self.layer(x), y)


class Noisy(nn.Module):
    """Draws in several ways, some of them independent of earlier operations."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x, y):
        values = self.first(x)
        values = values * torch.rand_like(values)
        values = nn.functional.dropout(values.t(), 0.25).t()
        values = values + 0.1 * torch.randn_like(values)
        return nn.functional.cross_entropy(self.last(nn.functional.dropout(values, 0.5)), y)


class Deep(nn.Module):
    """The gradients of its first layers depend on the rounding of every sum."""

    def __init__(self):
        super().__init__()
        blocks = [
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU()) for _ in range(8)
        ]
        self.layers = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(256, 3))

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.layers(x), y)


def attention():
    return Attention(), torch.randn(4, 6, 8), torch.randn(4, 6, 8)


def noisy():
    return Noisy(), torch.randn(24, 6), torch.randint(0, 3, (24,))


def perceptron():
    return Perceptron(), torch.randn(24, 6), torch.randint(0, 3, (24,))


def pictures():
    return Pictures(), torch.randn(24, 2, 8, 8), torch.randint(0, 3, (24,))


CASES = {
    "perceptron with dropout": (perceptron, {"device_iterations": 2}),
    "attention with dropout": (attention, {}),
    "pictures": (pictures, {}),
    "noise of several dtypes": (noisy, {}),
    "accumulation and replicas": (perceptron, {"gradient_accumulation": 2, "replicas": 2, "seed": 3}),
    "pictures, accumulation": (pictures, {"gradient_accumulation": 3, "outputs": "all"}),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [*list(CASES)[:2], *(pytest.param(case, marks=pytest.mark.long) for case in list(CASES)[2:])]
)
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, pytest.param(torch.optim.AdamW, marks=pytest.mark.long)])
def test_compiled_code_trains_as_the_graph_does(cache, case, optimizer):
    make, options = CASES[case]
    torch.manual_seed(0)
    model, x, y = make()
    losses, models = {}, {}
    for tier in ("graph", "compiled"):
        models[tier] = copy.deepcopy(model)
        trainer = pilotage.training(
            models[tier],
            optimizer(models[tier].parameters(), lr=0.05),
            backend="cpu",
            tier=tier,
            cache_directory=cache,
            **options,
        )
        torch.manual_seed(7)
        losses[tier] = torch.stack([trainer(x, y).mean() for _ in range(4)])
        assert trainer.record.latest_tier == tier
    assert torch.allclose(losses["graph"], losses["compiled"], rtol=1e-4, atol=1e-6)
    for (name, left), right in zip(
        models["graph"].state_dict().items(), models["compiled"].state_dict().values(), strict=True
    ):
        assert torch.allclose(left, right, rtol=1e-3, atol=1e-5), name


@pytest.mark.long
def test_a_deep_network_in_bfloat16_is_compiled_although_rounding_changes_its_gradients(cache):
    torch.manual_seed(0)
    model = Deep().bfloat16()
    trainer = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1), backend="cpu", tier="compiled", cache_directory=cache
    )
    x, y = torch.randn(4, 4, 8, 8).bfloat16(), torch.randint(0, 3, (4,))
    expected = float(copy.deepcopy(model)(x, y).detach())
    assert abs(float(trainer(x, y).detach()) - expected) < 0.05 * expected
    assert trainer.record.latest_tier == "compiled"


@pytest.mark.slow
def test_compiled_code_checks_its_arguments(cache):
    torch.manual_seed(0)
    model, x, y = perceptron()
    trainer = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1), backend="cpu", tier="compiled", cache_directory=cache
    )
    trainer(x, y)
    session = trainer._executor.session
    action, computation = next(iter(session.program.computations.items()))
    code = session.strategy.executable._calls[action]
    good = [*session.attached.arguments(computation.sections, 0), x, y]
    before = [tensor.clone() for tensor in good]
    for wrong in (x[:12], x.double(), torch.randn(6, 24).t(), x.to("meta")):
        with pytest.raises(ProgramFileError, match="compiled for"):
            code(*good[:-2], wrong, y)
    with pytest.raises(ProgramFileError, match="tensors, but got"):
        code(*good[:-1])
    assert all(torch.equal(left, right) for left, right in zip(before, good, strict=True))
    # An unaligned input is copied to an aligned address.
    odd = torch.empty(x.numel() + 1)[1:].view_as(x).copy_(x)
    assert torch.isfinite(code(*good[:-2], odd, y)[0])


def test_a_step_that_must_raise_cannot_be_compiled(cache):
    model, x, y = perceptron()
    trainer = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        backend="cpu",
        tier="compiled",
        nonfinite_loss="raise",
        cache_directory=cache,
    )
    with pytest.raises(OptionError, match="cannot stop in a step"):
        trainer(x, y)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_reported_after_the_update(cache, caplog):
    model, x, y = perceptron()
    trainer = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1), backend="cpu", tier="compiled", cache_directory=cache
    )
    trainer(x, y)
    with caplog.at_level("WARNING", logger="pilotage"):
        trainer(x * float("inf"), y)
        trainer(x, y)
    (notice,) = [record.message for record in caplog.records if "not finite" in record.message]
    assert notice.startswith("The loss at update 2 is not finite")
