"""Programs are compared with eager PyTorch, and the comparison leaves no trace."""

import signal
import threading
import time

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
import poptorch
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


class Stateful(nn.Module):
    """Draws random numbers and counts its calls in a buffer, in inference too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        self.seen += torch.stack([torch.ones(()), x.mean()])
        return functional.dropout(self.norm(x), 0.5) + self.seen[0]


@pytest.mark.parametrize("options", [{}, {"device_iterations": 3}, {"device_iterations": 3, "seed": 7}], ids=str)
def test_an_interrupted_comparison_of_inference_leaves_no_trace_and_is_made_again(checks, key_press, options):
    """Ctrl-C at many moments of the first call: the next call gives what it would give without the interrupt."""
    batch = torch.randn(12, 4, generator=torch.Generator().manual_seed(1))

    def fresh():
        torch.manual_seed(0)
        module = Stateful()
        model = pilotage.inference(module, tier="graph", listeners=[checks], check="first", **options)
        model.compile(batch)
        torch.manual_seed(0)
        return module, model

    places = ("/pilotage/arrival/", "/pilotage/runtime/arrival", "/pilotage/interrupts.py")
    module, model = fresh()
    with key_press(0, places) as press:
        expected = model(batch)
    state, random = {name: each.clone() for name, each in module.state_dict().items()}, torch.get_rng_state()
    felt = 0
    for number in range(1, press.passed, max(1, press.passed // 12)):
        checks.events.clear()
        module, model = fresh()
        outputs = None
        with key_press(number, places) as pressed:
            outputs = model(batch)
        felt += pressed.was_felt
        if outputs is None and not checks.events:
            # Nothing of the call has happened.
            outputs = model(batch)
        if outputs is not None:
            torch.testing.assert_close(outputs, expected, rtol=0, atol=0)
            assert all(torch.equal(each, state[name]) for name, each in module.state_dict().items())
            assert torch.equal(torch.get_rng_state(), random)
        assert checks.verdicts == [True]
    assert felt > 5


def test_an_interrupt_in_the_reference_ends_it_at_once(checks):
    class Interrupting(nn.Module):
        presses = 0

        def forward(self, x):
            if type(x) is torch.Tensor and Interrupting.presses == 0:
                Interrupting.presses += 1
                signal.raise_signal(signal.SIGINT)
                time.sleep(0)  # Python handles signals between instructions.
                Interrupting.presses += 10
            return x + 1

    model = pilotage.inference(Interrupting(), tier="graph", listeners=[checks])
    with pytest.raises(KeyboardInterrupt):
        model(torch.zeros(2))
    assert Interrupting.presses == 1
    assert torch.equal(model(torch.zeros(2)), torch.ones(2))
    assert checks.verdicts == [True]


def test_an_interrupted_comparison_counts_no_update_and_is_made_again(checks):
    class Slow(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            if type(x) is torch.Tensor and presses:
                presses.pop()
                signal.raise_signal(signal.SIGINT)
            return self.layer(x).square().mean()

    presses = []
    module = Slow()
    step = pilotage.training(
        module, torch.optim.SGD(module.parameters(), lr=0.1), tier="graph", listeners=[checks], check=2
    )
    step(torch.ones(6, 4))
    step(torch.ones(6, 4))
    presses.append(1)
    with pytest.raises(KeyboardInterrupt):
        step(torch.ones(6, 4))
    assert step.record.updates == 2
    step(torch.ones(6, 4))
    assert step.record.updates == 3
    assert checks.verdicts == [True, True]


def test_inference_in_training_mode_keeps_the_statistics_of_eager_pytorch(checks):
    torch.manual_seed(0)
    module, eager = (nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).train() for _ in range(2))
    eager.load_state_dict(module.state_dict())
    program = pilotage.inference(module, check=1, listeners=[checks])
    for _ in range(3):
        inputs = torch.randn(6, 4)
        assert torch.equal(program(inputs), eager(inputs))
        assert all(map(torch.equal, module.buffers(), eager.buffers()))
    assert checks.verdicts == [True] * 3
    module.eval(), eager.eval()
    assert torch.equal(program(inputs), eager(inputs))


def test_statistics_that_a_drop_in_leaves_on_the_device_are_not_a_mismatch():
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).train()
    program = poptorch.inferenceModel(module, poptorch.Options().check(1))
    for _ in range(3):
        program(torch.randn(6, 4))
    assert int(module[1].num_batches_tracked) == 0


WARM_UPS = {
    "plain": (lambda p: torch.optim.SGD(p, lr=0.0), [0.0, 0.0, 0.1, 0.1], 2),
    "begins at once": (lambda p: torch.optim.SGD(p, lr=0.0), [0.1, 0.0, 0.1, 0.1], 1),
    "never ends": (lambda p: torch.optim.SGD(p, lr=0.0), [0.0] * 4, 1),
    "with momentum": (lambda p: torch.optim.SGD(p, lr=0.0, momentum=0.9), [0.0, 0.0, 0.1, 0.1], 1),
    "one group of two": (
        lambda p: torch.optim.SGD([{"params": p[:1], "lr": 0.1}, {"params": p[1:]}], lr=0.0),
        [0.0, 0.0, 0.1, 0.1],
        1,
    ),
}


@pytest.mark.parametrize("name", WARM_UPS)
def test_gradients_are_seen_once_the_learning_rate_is_not_zero(checks, name):
    make, rates, compared = WARM_UPS[name]
    module = nn.Linear(4, 2)
    optimizer = make([*module.parameters()])
    step = pilotage.training(
        module, optimizer, loss=nn.MSELoss(), check="first", backend="cpu", tier="graph", listeners=[checks]
    )
    for rate in rates:
        optimizer.param_groups[-1]["lr"] = rate
        step(torch.randn(6, 4), torch.randn(6, 2))
    assert checks.verdicts == [True] * compared
