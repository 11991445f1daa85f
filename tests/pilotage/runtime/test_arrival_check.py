"""Programs are compared with eager PyTorch, and the comparison leaves no trace."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.arrival import limits
from pilotage.events import Checked, TierChanged


class Checks:
    """Keeps what programs report about comparisons."""

    def __init__(self):
        self.events = []

    def __call__(self, event):
        if isinstance(event, Checked):
            self.events.append(event)

    @property
    def verdicts(self):
        return [event.agrees for event in self.events]


@pytest.fixture
def checks():
    return Checks()


class Network(nn.Module):
    """Random numbers, statistics, a branch of frozen weights and a loss."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(8, 2)
        self.frozen = nn.Linear(2, 2)
        self.frozen.requires_grad_(False)
        self.calls = []

    def forward(self, x):
        hidden = functional.relu(self.norm(self.hidden(x)))
        output = self.frozen(self.last(self.drop(hidden)))
        return output, output.square().mean()


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4),
    "adam": lambda p: torch.optim.AdamW(p, lr=0.01),
}
BATCHINGS = [
    {},
    {"device_iterations": 3},
    {"gradient_accumulation": 2},
    {"replicas": 2, "broadcast_buffers": False},
    {"device_iterations": 2, "gradient_accumulation": 2, "replicas": 2, "broadcast_buffers": False, "outputs": "sum"},
    {"gradient_accumulation": 3, "reduction": "sum", "outputs": "all"},
]


@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_training_program_agrees(checks, optimizer, batching):
    torch.manual_seed(0)
    module = Network()
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    step = pilotage.training(module, OPTIMIZERS[optimizer](trained), listeners=[checks], check=2, **batching)
    for _ in range(3):
        step(torch.randn(24, 4))
    assert checks.verdicts == [True, True]
    summary = checks.events[-1].summary
    assert "2 outputs" in summary
    assert "updated weights" in summary
    assert "optimizer tensors" in summary


@pytest.mark.parametrize("batching", BATCHINGS[:4], ids=str)
def test_the_comparison_leaves_no_trace(batching):
    results = []
    for check in ("off", "first"):
        torch.manual_seed(0)
        module = Network()
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        step = pilotage.training(module, OPTIMIZERS["adam"](trained), check=check, **batching)
        outputs = [step(torch.randn(24, 4)) for _ in range(2)]
        results.append((outputs, module.state_dict(), step.optimizer_state_dict()["slots"], torch.randn(3)))
        assert module.calls == []
        assert not module._forward_hooks
    (left, right) = results
    torch.testing.assert_close(left, right, rtol=0, atol=0)


def test_inference_agrees(checks):
    module = Network().eval()
    x = torch.randn(12, 4)
    model = pilotage.inference(module, device_iterations=3, listeners=[checks])
    model(x)
    model(x)
    assert checks.verdicts == [True]
    assert "weights" not in checks.events[0].summary


def test_autocast_and_bfloat16_agree(checks):
    torch.manual_seed(0)
    for dtype, context in ((torch.float32, torch.autocast("cpu", torch.bfloat16)), (torch.bfloat16, None)):
        module = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 2)).to(dtype)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        step = pilotage.training(module, optimizer, loss=nn.CrossEntropyLoss(), listeners=[checks])
        batch = torch.randn(8, 4, dtype=dtype), torch.randint(0, 2, (8,))
        if context is None:
            step(*batch)
        else:
            with context:
                step(*batch)
    assert checks.verdicts == [True, True]


class Activated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.activation = nn.ReLU()
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.activation(self.first(x))  # activation
        return self.second(hidden).square().mean()


def test_a_comparison_that_would_take_too_long_is_skipped_unless_asked_for(monkeypatch, checks):
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.0)
    pilotage.inference(Activated(), listeners=[checks])(torch.randn(6, 4))
    pilotage.inference(Activated(), listeners=[checks], check="first")(torch.randn(6, 4))
    assert checks.verdicts == [None, True]
    assert 'would take about 0 s. Set check="first"' in checks.events[0].summary


@pytest.mark.parametrize("free", [10, 700])
def test_a_comparison_that_does_not_fit_is_skipped(monkeypatch, checks, free):
    monkeypatch.setattr(limits, "free_memory", lambda device: free)
    module = Activated()
    pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), listeners=[checks])(torch.randn(64, 4))
    assert checks.verdicts == [None]
    assert "need" in checks.events[0].summary


def test_a_module_that_cannot_be_copied_is_not_compared(checks):
    module = Activated()
    module.lock = threading.Lock()
    pilotage.inference(module, listeners=[checks])(torch.randn(6, 4))
    assert checks.verdicts == [None]
    assert "the module cannot be copied (TypeError" in checks.events[0].summary


def test_an_error_of_eager_pytorch_is_named(checks):
    class OnlyOnce(nn.Module):
        def forward(self, x):
            if type(x) is torch.Tensor:
                raise KeyError("mine")
            return x + 1

    pilotage.inference(OnlyOnce(), listeners=[checks])(torch.randn(6, 4))
    assert checks.verdicts == [None]
    assert "eager PyTorch raises KeyError: 'mine'" in checks.events[0].summary


def test_python_state_is_that_of_the_capture(checks):
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x + (1 if self.calls == 1 else 2)

    module = Counting()
    model = pilotage.inference(module, listeners=[checks])
    assert torch.equal(model(torch.zeros(2)), torch.ones(2))
    assert checks.verdicts == [True]
    assert module.calls == 1


@pytest.mark.slow
def test_compiled_code_is_compared_too(checks, tmp_path):
    changes = []
    module = Activated()
    step = pilotage.training(
        module,
        torch.optim.SGD(module.parameters(), lr=0.1),
        tier="compiled",
        cache_directory=tmp_path,
        listeners=[checks, lambda event: changes.append(event) if isinstance(event, TierChanged) else None],
    )
    step(torch.randn(6, 4))
    assert step.record.tier_changes or changes
    assert checks.verdicts == [True]
