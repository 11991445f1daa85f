"""Programs as values, and inputs and outputs that share memory, as in eager PyTorch."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.capture import Request, capture, uncaptured
from pilotage.capture.model import modes_of
from pilotage.options.batching import Batching
from pilotage.program.program import Action
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.calls = 0

    def forward(self, x):
        Network.runs += 1
        return functional.mse_loss(self.norm(self.layer(x)), torch.zeros_like(x))


def request(module, batching=None, training=True):
    from pilotage.optim.following import FollowedOptimizer

    example = torch.ones(3, 4)
    plan = (
        FollowedOptimizer(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), module).first_plan()
        if training
        else None
    )
    return Request(
        module=module,
        arguments=flatten(((example,), {}))[1],
        inputs=[TensorSpec.of(example)],
        modes=modes_of(module),
        plan=plan,
        batching=batching or Batching(),
    )


@pytest.mark.parametrize(
    ("batching", "training", "actions"),
    [
        (Batching(), False, {Action.INFER}),
        (Batching(device_iterations=3), True, {Action.TRAIN}),
        (Batching(gradient_accumulation=2), True, {Action.ACCUMULATE, Action.UPDATE}),
        (Batching(replicas=2), False, {Action.INFER}),
    ],
)
def test_a_program_has_the_actions_that_its_batching_needs(batching, training, actions):
    Network.runs = 0
    program = capture(dataclasses.replace(request(Network(), batching, training), broadcast_buffers=False))
    assert set(program.computations) == actions
    assert Network.runs == 1
    assert program.trains == training
    assert all(computation.graph is not None for computation in program.computations.values())


def test_a_whole_training_step_is_one_graph():
    Network.runs = 0
    program = capture(request(Network()))
    (computation,) = program.computations.values()
    names = {str(node.target) for node in computation.graph.graph.nodes}
    assert {"aten.addmm.default", "aten.native_batch_norm_backward.default"} <= names
    assert any("foreach" in name for name in names)


def test_a_program_knows_what_it_writes():
    Network.runs = 0
    program = capture(request(Network()))
    assert program.written_buffers == ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    assert program.written_inputs == ()
    assert not program.draws_random_numbers
    module = Network()
    module.norm.eval()
    assert capture(request(module)).written_buffers == ()


def test_uncaptured_programs_do_not_run_forward_before_a_call():
    Network.runs = 0
    program = uncaptured(request(Network()))
    assert Network.runs == 0
    assert all(computation.graph is None for computation in program.computations.values())


class Sharing(nn.Module):
    """Returns tensors that share memory with inputs, weights and buffers, and changes all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x):
        x.mul_(2)
        self.count.add_(1)
        loss = functional.mse_loss(self.layer(x), torch.zeros_like(x))
        return {
            "input": x,
            "part": x[:, :2],
            "turned": x.t(),
            "weight": self.layer.weight,
            "row": self.layer.weight[0],
            "count": self.count,
            "again": (x.view(-1), self.count[:1]),
            "nothing": None,
            "number": 3,
            "loss": loss,
        }


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_outputs_keep_their_values_whatever_memory_they_share(tier, assert_equal):
    torch.manual_seed(0)
    module = Sharing()
    weight = module.layer.weight.detach().clone()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.5), tier=tier)
    first_input = torch.randn(3, 4)
    expected = first_input * 2
    first = step(first_input)
    assert_equal(first["weight"], weight)
    assert_equal(first["row"], weight[0])
    after = module.layer.weight.detach().clone()
    assert not torch.equal(after, weight)
    kept = {name: value.clone() for name, value in first.items() if isinstance(value, torch.Tensor)}
    second = step(torch.randn(3, 4))
    assert_equal(second["weight"], after)
    assert_equal({name: first[name] for name in kept}, kept)
    assert_equal(first_input, expected)
    assert_equal(first["input"], expected)
    assert_equal(first["part"], expected[:, :2])
    assert_equal(first["turned"], expected.t())
    assert_equal(first["again"], (expected.reshape(-1), torch.ones(1)))
    assert_equal(first["count"], torch.ones(4))
    assert_equal(second["count"], torch.full((4,), 2.0))
    assert (first["nothing"], first["number"]) == (None, 3)
    first["weight"].zero_()
    first["count"].zero_()
    assert_equal(step(torch.randn(3, 4))["count"], torch.full((4,), 3.0))
    assert module.layer.weight.abs().sum() > 0


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("device_iterations", [1, 2])
def test_writes_to_inputs_reach_the_callers_tensors_in_any_memory_layout(tier, device_iterations, assert_equal):
    class Doubling(nn.Module):
        def forward(self, x, y):
            x.mul_(2)
            return x + y

    program = pilotage.inference(Doubling(), tier=tier, device_iterations=device_iterations)
    whole = torch.arange(48.0).reshape(4, 12)
    makers = {
        "plain": lambda: whole.clone(),
        "sliced": lambda: whole.repeat(1, 2)[:, ::2],
        "turned": lambda: whole.t().contiguous().t(),
        "offset": lambda: torch.cat([whole, whole])[4:],
        "requires_grad": lambda: whole.clone().requires_grad_(),
    }
    for make in makers.values():
        given, fixed = make(), torch.ones(4, 12)
        before = given.detach().clone()
        result = program(given, fixed)
        assert_equal(given.detach(), before * 2)
        assert_equal(fixed, torch.ones(4, 12))
        assert_equal(result, before * 2 + 1)


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_an_input_that_repeats_one_row_can_be_read(tier, assert_equal):
    program = pilotage.inference(nn.Identity(), tier=tier)
    repeated = torch.arange(3.0).expand(4, 3)
    assert_equal(program(repeated), repeated)


def test_the_same_tensor_can_be_passed_twice(assert_equal):
    class Doubling(nn.Module):
        def forward(self, x, y):
            x.mul_(2)
            return y + 1

    mine, theirs = torch.ones(3), torch.ones(3)
    assert_equal(pilotage.inference(Doubling())(mine, mine), Doubling()(theirs, theirs))
    assert_equal(mine, theirs)


KINDS = {
    "convolutions": (
        lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.ReLU(), nn.Conv3d(2, 1, 1), nn.Flatten()),
        lambda: torch.randn(2, 1, 3, 3, 3),
    ),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 2, stride=2), lambda: torch.randn(2, 2, 3, 3)),
    "upsampling": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 1), nn.Upsample(scale_factor=2, mode="bilinear")),
        lambda: torch.randn(2, 1, 3, 3),
    ),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True),
        lambda: torch.randn(2, 3, 8),
    ),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), lambda: torch.randn(5, 4)),
    "spectral_norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), lambda: torch.randn(5, 4)),
    "cells": (lambda: nn.GRUCell(4, 3), lambda: torch.randn(5, 4)),
    "in_place": (
        lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4)),
        lambda: torch.randn(5, 4),
    ),
    "channels_last": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).to(memory_format=torch.channels_last),
        lambda: torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last),
    ),
    "lazily_built": (
        lambda: nn.Sequential(nn.LayerNorm(4), nn.PReLU(), nn.Softmax(dim=-1), nn.Linear(4, 2)),
        lambda: torch.randn(5, 4),
    ),
}


class Squared(nn.Module):
    """A loss whose gradient has the layout of the output: a transposed one reveals invalid views."""

    def __init__(self, network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x):
        output = self.network(x)
        return output, functional.mse_loss(output.transpose(0, 1), torch.ones_like(output).transpose(0, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_many_kinds_of_layers_train_as_in_eager(kind, twins, eager, assert_equal, assert_same_state):
    build, draw = KINDS[kind]
    mine, theirs = twins(lambda: Squared(build()))
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1, momentum=0.9))
    reference = eager(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9))
    for seed in range(3):
        torch.manual_seed(seed)
        batch = draw()
        outputs = step(batch)
        torch.manual_seed(seed)
        batch = draw()
        assert_equal(outputs, reference(batch))
    assert_same_state(mine, theirs)


def test_a_custom_autograd_function_is_captured(twins, eager, assert_equal, assert_same_state):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * 3 + x * 0

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            output = Scaled.apply(self.layer(x))
            return output, functional.mse_loss(output, torch.zeros_like(output))

    mine, theirs = twins(Network)
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1))
    reference = eager(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1))
    for _ in range(2):
        batch = torch.randn(3, 4)
        assert_equal(step(batch), reference(batch))
    assert_same_state(mine, theirs)


def test_sparse_gradients_train_within_rounding(twins, eager, assert_same_state):
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(7, 4, sparse=True)

        def forward(self, x):
            output = self.words(x)
            return output, functional.mse_loss(output, torch.zeros_like(output))

    mine, theirs = twins(Network)
    step = pilotage.training(mine, torch.optim.SGD(mine.parameters(), lr=0.1))
    reference = eager(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1))
    for _ in range(3):
        batch = torch.randint(0, 7, (5,))
        step(batch)
        reference(batch)
    assert_same_state(mine, theirs, 1e-6)


def test_hooks_of_the_module_run_at_capture(assert_equal):
    module = nn.Linear(3, 3)
    module.register_forward_hook(lambda module, arguments, output: output * 2)
    module.register_forward_pre_hook(lambda module, arguments: (arguments[0] + 1,))
    batch = torch.randn(2, 3)
    assert_equal(pilotage.inference(module)(batch), module(batch).detach())
