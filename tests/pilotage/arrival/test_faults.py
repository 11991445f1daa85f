"""Deliberate faults in the engine, one at a time: the arrival check has to catch each of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import pilotage
import poptorch
from pilotage.capture import capture as capturing
from pilotage.capture import steps, update
from pilotage.capture.loss.returned import ReturnedLossRule
from pilotage.capture.loss.search import Loss
from pilotage.errors import MismatchError
from pilotage.execution import state, walk
from pilotage.execution.random_streams import RandomStreams
from pilotage.optim import adam, lamb, rmsprop, sgd
from pilotage.options.batching import Batching
from pilotage.program import schedule

aten = torch.ops.aten


class Network(nn.Module):
    """Convolution, statistics, random numbers, attention, an embedding and a tied weight."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.words = nn.Embedding(10, 6, padding_idx=0)
        self.convolution = nn.Conv1d(6, 6, 3, padding=1)
        self.norm = nn.BatchNorm1d(6)
        self.layer_norm = nn.LayerNorm(6, eps=1e-3)
        self.mixing = nn.Linear(6, 6, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 6))

    def forward(self, words: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(words)
        x = self.norm(self.convolution(x.transpose(1, 2))).transpose(1, 2)
        x = self.layer_norm(x) * self.scale - 0.1 * x
        weights = torch.softmax(x @ x.transpose(1, 2) / 6, dim=-1)
        x = functional.gelu(self.mixing(self.mixing(weights @ x)))
        scores = self.dropout(x).mean(dim=1)
        loss = functional.cross_entropy(scores, target, label_smoothing=0.1) + 1e-3 * scores.exp().sum(1).log().mean()
        return scores, loss


SGD = {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 1e-4}


def train(optimizer: Callable[..., Any] | None = None, *, calls: int = 1, dropout: float = 0.0, **options: Any) -> None:
    """Train for some calls, every one of which is compared."""
    torch.manual_seed(0)
    module = Network(dropout)
    made = optimizer(module.parameters()) if optimizer else torch.optim.SGD(module.parameters(), **SGD)
    step = pilotage.training(module, made, check=1, **{"broadcast_buffers": False, "backend": "cpu", **options})
    for _ in range(calls):
        step(torch.randint(0, 10, (16, 5)), torch.randint(0, 6, (16,)))


@dataclass(frozen=True)
class Fault:
    """What is changed, and a run in which it matters."""

    place: Any
    name: str
    wrong: Callable[[Any], Any]
    """Makes the faulty thing of the right one."""

    run: Callable[[], None] = train


def edited(edit: Callable[[Any], None]) -> Callable[[Any], Any]:
    """A fault in every captured graph; ``edit`` changes a node."""

    def wrong(trace: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any, **kwargs: Any) -> Any:
            found = trace(*args, **kwargs)
            for node in list(found.graph.graph.nodes):
                edit(node)
            found.graph.recompile()
            return found

        return traced

    return wrong


def in_graph(operation: Any, change: Callable[[Any], None], run: Callable[[], None] = train) -> Fault:
    def edit(node: Any) -> None:
        if node.target is operation:
            change(node)

    return Fault(capturing, "trace", edited(edit), run)


def argument(position: int, value: Any) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        arguments = list(node.args)
        arguments[position] = value(arguments[position]) if callable(value) else value
        node.args = tuple(arguments)

    return change


def swap_arguments(node: Any) -> None:
    if all(hasattr(each, "meta") for each in node.args[:2]):
        node.args = (node.args[1], node.args[0], *node.args[2:])


def by(operation: Any) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        node.target = operation

    return change


def without_transposition(node: Any) -> None:
    if node.meta["val"].shape == (6, 6):
        node.target = torch.clone


def constantly(value: Any) -> Callable[[Any], Any]:
    return lambda right: lambda *args, **kwargs: value


def naive_mean(x: Tensor) -> Tensor:
    """Adds one number after the other in float32."""
    return torch.from_numpy(numpy.add.accumulate(x.numpy().ravel()))[-1] / x.numel()


def long_mean() -> None:
    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mean()

    pilotage.inference(Mean(), backend="cpu")(torch.full((2_000_000,), 0.1))


def adam_with(**options: Any) -> Callable[[], None]:
    return lambda: train(lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1), **options)


def accumulated() -> None:
    train(gradient_accumulation=2)


def replicated() -> None:
    train(replicas=2, outputs="all")


def with_dropout() -> None:
    train(dropout=0.5)


def with_replicated_dropout() -> None:
    train(dropout=0.5, replicas=2)


def centered_rmsprop() -> None:
    train(lambda parameters: torch.optim.RMSprop(parameters, centered=True, momentum=0.5))


def in_bfloat16() -> None:
    torch.manual_seed(0)
    layers = nn.Linear(24, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4)
    module = nn.Sequential(*layers).bfloat16()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    step = pilotage.training(module, optimizer, loss=nn.CrossEntropyLoss(), check=1, backend="cpu")
    step(torch.randn(32, 24, dtype=torch.bfloat16), torch.randint(0, 4, (32,)))


def twice() -> None:
    train(calls=2)


def nesterov() -> None:
    train(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True))


def lamb_run() -> None:
    train(lambda parameters: lamb.Lamb(parameters, lr=0.01))


def clipped() -> None:
    torch.manual_seed(0)
    module = Network()
    optimizer = poptorch.optim.AdamW(module.parameters(), max_grad_norm=1e-3, eps=1e-3)
    options = poptorch.Options().check("first").runOn("cpu")
    options.showCompilationProgressBar(False)
    poptorch.trainingModel(module, options, optimizer)(torch.randint(0, 10, (16, 5)), torch.randint(0, 6, (16,)))


def with_first_one_and_a_half_times(right: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the gradient of one parameter too large."""

    def run(*args: Any) -> Any:
        outputs, gradients = right(*args)
        first = next(iter(gradients))
        return outputs, gradients | {first: 1.5 * gradients[first]}

    return run


def without_first(right: Callable[..., Any]) -> Callable[..., Any]:
    """Loses the gradient of one parameter."""

    def run(*args: Any) -> Any:
        outputs, gradients = right(*args)
        return outputs, dict(list(gradients.items())[1:])

    return run


FAULTS = {
    # Loss and gradients
    "the gradient of the loss is doubled": Fault(steps, "_seed", lambda right: lambda *a: 2 * right(*a)),
    "backward starts at another value": Fault(
        ReturnedLossRule, "root", lambda right: lambda self, value: Loss.of(value[1] + value[0].mean())
    ),
    "one gradient in bfloat16 is too large": Fault(
        steps.ForwardBackward, "run", with_first_one_and_a_half_times, in_bfloat16
    ),
    "one gradient is lost": Fault(steps.ForwardBackward, "run", without_first),
    "the mean is a sum": Fault(capturing, "_divisor", constantly(1), accumulated),
    "the mean is divided twice": Fault(
        steps, "_divided", lambda right: lambda pool, divisor: pool / divisor**2, accumulated
    ),
    "the first micro-batch is pooled alone": Fault(
        steps,
        "pool",
        lambda right: lambda pools, gradients, counters, **o: [p.copy_(gradients[n]) for n, p in pools.items()],
        accumulated,
    ),
    "gradients are pooled twice": Fault(
        steps, "pool", lambda right: lambda *a, **o: (right(*a, **o), right(*a, **o)), accumulated
    ),
    "every micro-batch is the first": Fault(
        schedule, "_step", lambda right: lambda *a: replace(right(*a), micro_batch=0), accumulated
    ),
    "replicas exchange their inputs": Fault(
        Batching, "input_of", lambda right: lambda self, replica: 1 - right(self, replica), replicated
    ),
    "outputs are joined in reverse": Fault(walk, "_join", lambda right: lambda pieces: right(pieces[::-1]), replicated),
    # Operations
    "two arguments are swapped": in_graph(aten.sub.Tensor, swap_arguments),
    "a bias is missing": in_graph(aten.convolution.default, argument(2, None)),
    "a term is missing": in_graph(aten.add.Tensor, argument(1, lambda other: 0.0)),
    "softmax runs along another axis": in_graph(aten._softmax.default, argument(1, 1)),
    "a constant of a layer norm is lost": in_graph(aten.native_layer_norm.default, argument(4, 0.1)),
    "gelu is another function": in_graph(
        aten.gelu.default, by(lambda x, **options: aten.gelu.default(x, approximate="tanh"))
    ),
    "the backward of gelu is that of the sigmoid": in_graph(
        aten.gelu_backward.default, by(lambda g, x, **options: g * torch.sigmoid(1.6 * x))
    ),
    "padding gets a gradient": in_graph(aten.embedding_dense_backward.default, argument(3, -1)),
    "sums are naive": in_graph(aten.mean.default, by(naive_mean), long_mean),
    "a mean is a sum": in_graph(aten.mean.dim, by(lambda x, *a, **o: aten.sum.dim_IntList(x, *a, **o))),
    "a matrix is not transposed": in_graph(aten.t.default, without_transposition),
    # State
    "statistics are not updated": in_graph(aten.native_batch_norm.default, argument(6, 0.0)),
    "buffers are not sent": Fault(
        state.DeviceState,
        "load_buffers",
        lambda right: (
            lambda self, buffers: right(self, {name: torch.ones_like(each) for name, each in buffers.items()})
        ),
    ),
    "one weight is not sent": Fault(state, "_copy", lambda right: lambda to, of: right(dict(list(to.items())[1:]), of)),
    "the learning rate is old": Fault(
        state.DeviceState,
        "load_values",
        lambda right: lambda self, plan: [each.fill_(0.05) for each in self.values.values()],
    ),
    "momentum begins at one": Fault(
        sgd.SgdRule, "initial", lambda right: lambda self, slot, parameter: torch.ones_like(parameter)
    ),
    # Random numbers
    "dropout is not scaled": in_graph(aten.div_.Scalar, argument(1, 1.0), with_dropout),
    "dropout draws once more": in_graph(
        aten.bernoulli_.float,
        by(lambda target, *p: aten.bernoulli_.float(target.copy_(torch.rand_like(target)), *p)),
        with_dropout,
    ),
    "replicas draw from one stream": Fault(
        RandomStreams, "of_replica", lambda right: lambda self, replica: right(self, 0), with_replicated_dropout
    ),
    # Optimizers
    "weight decay is missing": Fault(sgd, "is_zero", constantly(True)),
    "the first update is dampened": Fault(
        sgd, "_gradient_factor", lambda right: lambda step, momentum, dampening: 1 - dampening
    ),
    "nesterov is ignored": Fault(
        sgd.SgdRule, "_with_momentum", lambda right: lambda self, *a: right(replace(self, nesterov=False), *a), nesterov
    ),
    "the bias of moments is not corrected": Fault(
        adam, "bias_divisor", constantly(torch.ones((), dtype=torch.float64)), adam_with()
    ),
    "epsilon is missing": Fault(adam, "shift_", constantly(None), adam_with()),
    "moments are exchanged": Fault(
        adam,
        "update_moments",
        lambda right: lambda work, gradients, one, two: right(work, gradients, two, one),
        adam_with(),
    ),
    "weight decay is coupled": Fault(
        adam.AdamRule,
        "_decay_weights",
        lambda right: lambda self, *a: right(replace(self, decoupled_weight_decay=False), *a),
        adam_with(),
    ),
    "the variance is not centred": Fault(rmsprop, "foreach_addcmul_", constantly(None), centered_rmsprop),
    "the trust ratio is one": Fault(
        lamb, "_trust_ratios", lambda right: lambda p, u, limit: torch.ones(len(p)), lamb_run
    ),
    "gradients are not clipped": Fault(update, "_clipped", lambda right: lambda gradients, limit: gradients, clipped),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_caught(monkeypatch, name):
    fault = FAULTS[name]
    monkeypatch.setattr(fault.place, fault.name, fault.wrong(getattr(fault.place, fault.name)))
    with pytest.raises((MismatchError, poptorch.Error), match="differ by more than rounding"):
        fault.run()


@pytest.mark.parametrize("run", dict.fromkeys(fault.run for fault in FAULTS.values()))
def test_without_a_fault_the_runs_agree(run):
    run()


def test_there_are_thirty_faults():
    assert len(FAULTS) >= 30
