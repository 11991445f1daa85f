from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.model import forward_is_running, modes_of
from pilotage.errors import BufferBroadcastError, CaptureError
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.runtime.executor import Executor


class Statistics(nn.Module):
    """Running statistics without a counter: torch's kernel changes them without a new version."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("variance", torch.ones(3))
        self.register_buffer("table", torch.ones(3))

    def forward(self, x):
        y = functional.batch_norm(self.layer(x), self.mean, self.variance, training=self.training)
        return functional.mse_loss(y, self.table.expand(x.shape[0], 3))


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return functional.mse_loss(self.layer(x), torch.zeros_like(x))


def training(module, **options):
    return pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), **options)


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize(("kind", "name"), [(Statistics, "mean"), (Counter, "count")])
def test_replicas_with_a_written_buffer_are_refused_only_if_equal_buffers_are_promised(kind, name, tier):
    with pytest.raises(BufferBroadcastError, match=rf"buffer '{name}'.*broadcast_buffers to False"):
        training(kind(), replicas=2, tier=tier, broadcast_buffers=True)(torch.randn(4, 3))
    training(kind(), replicas=2, tier=tier)(torch.randn(4, 3))
    training(kind(), tier=tier, broadcast_buffers=True)(torch.randn(4, 3))


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_replicas_may_read_buffers(tier):
    module = Statistics().eval()
    training(module, replicas=2, tier=tier, broadcast_buffers=True)(torch.randn(4, 3))


def test_statistics_are_updated_even_if_the_normalised_result_is_unused(twins, assert_same_state):
    class Aside(Statistics):
        def forward(self, x):
            functional.batch_norm(x, self.mean, self.variance, training=True)
            return functional.mse_loss(self.layer(x), torch.zeros_like(x))

    mine, theirs = twins(Aside)
    batch = torch.randn(4, 3)
    training(mine)(batch)
    theirs(batch).backward()
    torch.optim.SGD(theirs.parameters(), lr=0.1).step()
    assert_same_state(mine, theirs)


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_forward_can_ask_whether_the_engine_runs_it(tier):
    class Asking(nn.Module):
        def forward(self, x):
            return x + (10 if forward_is_running() else 0)

    module = Asking()
    assert pilotage.inference(module, tier=tier)(torch.zeros(1)).item() == 10
    assert module(torch.zeros(1)).item() == 0
    assert not forward_is_running()


def test_forward_no_longer_runs_once_it_has_raised():
    class Raising(nn.Module):
        def forward(self, x):
            raise LookupError

    with pytest.raises(LookupError):
        pilotage.inference(Raising())(torch.zeros(1))
    assert not forward_is_running()


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_program_keeps_the_modes_of_its_submodules(tier, assert_equal):
    module = nn.Sequential(nn.Dropout(0.9), nn.Dropout(0.9))
    module[1].eval()
    modes = modes_of(module)
    program = Executor(module, execution=Execution(tier=Tier(tier)))
    module.eval()
    torch.manual_seed(0)
    result = program(torch.ones(50))
    assert 0 < int((result == 0).sum()) < 50
    assert_equal(result[result != 0], torch.full_like(result[result != 0], 10.0))
    assert not any(part.training for part in module.modules())
    assert list(modes.values()) == [True, True, False]


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_hooks_on_the_gradients_of_parameters_change_the_update(tier, twins, assert_same_state):
    mine, theirs = twins(Statistics)
    for module in (mine, theirs):
        module.layer.weight.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
        module.layer.weight.register_hook(lambda gradient: gradient * 2)
    inputs = torch.randn(4, 3)
    training(mine, tier=tier)(inputs)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    theirs(inputs).backward()
    assert theirs.layer.weight.grad.abs().max() <= 0.02
    optimizer.step()
    assert_same_state(mine, theirs)


def test_a_post_accumulate_hook_is_refused_only_in_training():
    module = Statistics()
    module.layer.weight.register_post_accumulate_grad_hook(lambda parameter: None)
    with pytest.raises(CaptureError, match=r"layer\.weight has a hook.*has no \.grad.*register_hook"):
        training(module)(torch.randn(4, 3))
    pilotage.inference(module)(torch.randn(4, 3))
