"""What happens when a program and eager PyTorch differ."""

import pytest
import torch
from torch import nn

import pilotage
from pilotage.capture import capture as capturing
from pilotage.errors import MismatchError
from pilotage.events import Checked

aten = torch.ops.aten


@pytest.fixture
def checks():
    events = []

    def listen(event):
        if isinstance(event, Checked):
            events.append(event)

    listen.events = events
    return listen


class Wrong:
    """Replaces an operation in every graph that is captured."""

    def __init__(self, monkeypatch, operation, by):
        trace = capturing.trace

        def wrongly(*args, **kwargs):
            traced = trace(*args, **kwargs)
            for node in traced.graph.graph.nodes:
                if node.target is operation:
                    node.target = by
            traced.graph.recompile()
            return traced

        monkeypatch.setattr(capturing, "trace", wrongly)


class Activated(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.activation = nn.ReLU()
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.activation(self.first(x))  # activation
        return self.second(hidden).square().mean()


@pytest.mark.parametrize("iterations", [1, 3])
def test_a_difference_is_an_error_that_names_the_module_and_its_line(monkeypatch, line_of, iterations):
    Wrong(monkeypatch, aten.relu.default, aten.abs.default)
    module = Activated()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, device_iterations=iterations)
    with pytest.raises(MismatchError) as raised:
        step(torch.randn(6, 4))
    message = str(raised.value)
    assert f"The first module whose output differs is activation (ReLU), called at {line_of('activation')}" in message
    assert "output is" in message
    assert "on_mismatch='warn'" in message
    torch.testing.assert_close(module.state_dict(), before, rtol=0, atol=0)
    assert step.record.updates == 0


def test_a_wrong_backward_is_named_as_such(monkeypatch):
    Wrong(monkeypatch, aten.threshold_backward.default, lambda gradient, value, threshold: gradient.clone())
    module = Activated()
    step = pilotage.training(module, torch.optim.Adam(module.parameters()))
    with pytest.raises(MismatchError, match="outputs of all modules agree, so the difference begins in"):
        step(torch.randn(6, 4))


def test_a_difference_can_be_a_warning(monkeypatch, warned, checks):
    Wrong(monkeypatch, aten.relu.default, aten.abs.default)
    module = Activated()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, on_mismatch="warn", listeners=[warned, checks])
    step(torch.randn(6, 4))
    (message,) = warned.messages
    assert "differ by more than rounding" in message
    assert [event.agrees for event in checks.events] == [False]
    assert step.record.updates == 1


def test_after_an_error_the_next_call_is_compared_again(monkeypatch, checks):
    with monkeypatch.context() as context:
        Wrong(context, aten.relu.default, aten.abs.default)
        model = pilotage.inference(Activated(), listeners=[checks])
        for _ in range(2):
            with pytest.raises(MismatchError):
                model(torch.randn(6, 4))
    model.destroy()
    model(torch.randn(6, 4))
    assert [event.agrees for event in checks.events] == [False, False, True]


def test_rounding_that_grows_is_not_an_error(monkeypatch, checks):
    """A sum of a million numbers in another order: far apart, but so is eager PyTorch with other rounding."""

    class Sum(nn.Module):
        def forward(self, x):
            return (x.sum() - x.double().sum().float()).reshape(1)

    model = pilotage.inference(Sum(), listeners=[checks])
    Wrong(monkeypatch, aten.sum.default, lambda x, **options: aten.sum.default(x.flip(0), **options))
    torch.manual_seed(0)
    model(torch.rand(1_000_003))
    assert [event.agrees for event in checks.events] == [True]
    assert "different rounding" in checks.events[0].summary
