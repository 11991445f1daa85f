"""Recurrent networks in plain operations, as captured for cards with cuDNN."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.capture import Request, capture
from pilotage.capture.model import modes_of
from pilotage.options.batching import Batching
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten

NETWORKS = {
    "lstm": lambda: nn.LSTM(3, 4, batch_first=True),
    "lstm of two layers": lambda: nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
    "lstm with projections": lambda: nn.LSTM(3, 4, 2, proj_size=2, bias=False),
    "gru": lambda: nn.GRU(3, 4),
    "gru of two layers": lambda: nn.GRU(3, 4, 2, bidirectional=True),
    "rnn": lambda: nn.RNN(3, 4, batch_first=True),
    "rnn of positive parts": lambda: nn.RNN(3, 4, nonlinearity="relu", bias=False),
}


@pytest.fixture
def as_for_cudnn(monkeypatch):
    """Captures as on a card with cuDNN, but on the CPU."""
    monkeypatch.setattr(torch.backends.cudnn, "is_acceptable", lambda tensor: True)


@pytest.fixture
def every_warning():
    """Let torch warn each time, not once per process."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def captured_for_a_card(module, x):
    """Capture needs no card: its tensors have no data."""
    _, arguments = flatten(((x,), {}), {})
    request = Request(
        module=module,
        arguments=arguments,
        inputs=[TensorSpec.of(x)],
        modes=modes_of(module),
        plan=None,
        batching=Batching(),
        device=torch.device("cuda", 0),
    )
    return capture(request)


class Recurrent(nn.Module):
    def __init__(self, network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x):
        outputs, state = self.network(x)
        return outputs, state, functional.mse_loss(outputs, torch.ones_like(outputs))


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] if "of" in name or "with" in name else [])
        for name, make in NETWORKS.items()
    ],
)
def test_plain_operations_train_as_eager_does(make, as_for_cudnn):
    torch.manual_seed(0)
    module = Recurrent(make())
    plain = copy.deepcopy(module)
    x = torch.randn(3, 2, 3)
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), outputs="all")
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for _ in range(2):
        expected = plain(x)
        optimizer.zero_grad()
        expected[-1].backward()
        optimizer.step()
        torch.testing.assert_close(step(x), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(dict(module.state_dict()), dict(plain.state_dict()), rtol=1e-5, atol=1e-6)
    (graph,) = (c.graph for c in step._executor.session.program.computations.values())
    names = {str(node.target) for node in graph.graph.nodes}
    assert not any("rnn" in name or "lstm" in name or "gru" in name for name in names)


def test_dropout_between_layers_is_drawn_again_at_each_call(as_for_cudnn):
    module = nn.LSTM(3, 64, 2, dropout=0.5)
    run = pilotage.inference(module)
    x = torch.randn(3, 2, 3)
    first, second = run(x)[0], run(x)[0]
    assert not torch.equal(first, second)
    silent = pilotage.inference(copy.deepcopy(module).eval())
    assert torch.equal(silent(x)[0], silent(x)[0])


def test_dropout_between_layers_is_applied_as_in_torch(as_for_cudnn):
    torch.manual_seed(0)
    module, x = nn.GRU(3, 8, 2, dropout=0.4), torch.randn(3, 2, 3)
    torch.manual_seed(1)
    expected, _ = module(x)
    torch.manual_seed(1)
    outputs, _ = pilotage.inference(module)(x)
    torch.testing.assert_close(outputs, expected.detach(), rtol=1e-5, atol=1e-6)


def test_a_cell_equals_torchs_own(as_for_cudnn):
    torch.manual_seed(0)
    for bias in (True, False):
        cell = nn.GRUCell(3, 4, bias=bias)
        x, h = torch.randn(2, 3), torch.randn(2, 4)
        torch.testing.assert_close(pilotage.inference(cell)(x, h), cell(x, h), rtol=1e-5, atol=1e-6)


def test_recurrent_layers_on_the_cpu_use_torchs_kernels(assert_equal):
    torch.manual_seed(0)
    network, x = nn.LSTM(3, 4, 2), torch.randn(3, 2, 3)
    assert_equal(pilotage.inference(network)(x)[0], network(x)[0].detach())


class Flattening(nn.Module):
    """Flattens its weights itself, as models for several cards do."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.LSTM(3, 4, 2)

    def forward(self, x):
        self.network.flatten_parameters()
        return self.network(x)[0]


@pytest.mark.parametrize("make", [lambda: nn.LSTM(3, 4, 2), Flattening], ids=["torch asks", "forward asks"])
def test_weights_are_not_moved_and_nothing_is_warned(make, as_for_cudnn, every_warning, fake_tensors):
    module = make()
    places = {name: weight.data_ptr() for name, weight in module.named_parameters()}
    program = captured_for_a_card(module, torch.randn(3, 2, 3))
    (graph,) = (computation.graph for computation in program.computations.values())
    assert not any("rnn" in str(node.target) for node in graph.graph.nodes)
    assert {name: weight.data_ptr() for name, weight in module.named_parameters()} == places
    assert fake_tensors(module) == []


def test_torch_warns_if_forward_asks_for_an_address(every_warning):
    class Asking(nn.Module):
        def forward(self, x):
            return x + x.data_ptr()

    with pytest.warns(UserWarning, match="Accessing the data pointer of FakeTensor"):
        captured_for_a_card(Asking(), torch.randn(3))
