"""Replicas on several cards of one process equal replicas in turn on one card.

The cards are the same device listed several times: each still has its own state, program and random stream.
"""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.strategies.replicas.strategy import ReplicasOnCards

DEVICES = [
    pytest.param("cpu", marks=pytest.mark.slow),
    pytest.param("cuda:0", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")),
]
SAMPLES = 3
CALLS = 4
"""Enough calls to run step by step, to record and to replay."""

pytestmark = pytest.mark.parametrize("device", DEVICES)


class Net(nn.Module):
    def __init__(self, *, dropout: float = 0.0, norm: bool = False) -> None:
        super().__init__()
        # The gradient of a bias before a norm is only rounding error, which Adam would amplify.
        self.first = nn.Linear(5, 8, bias=not norm)
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(8, 4)
        self.register_buffer("shift", torch.linspace(-1, 1, 8))

    def forward(self, x, target=None):
        hidden = self.dropout(functional.relu(self.norm(self.first(x)) + self.shift * torch.tensor([1.5])[0].item()))
        output = self.last(hidden)
        return output if target is None else (output, functional.cross_entropy(output, target))


def batches(micro_batches: int, calls: int = CALLS):
    generator = torch.Generator().manual_seed(5)
    for _ in range(calls):
        yield (
            torch.randn(micro_batches * SAMPLES, 5, generator=generator),
            torch.randint(4, (micro_batches * SAMPLES,), generator=generator),
        )


def trainer(device, cards, module, optimizer=None, **options):
    # Without a larger epsilon Adam would amplify rounding errors of gradients near zero.
    optimizer = optimizer or torch.optim.Adam(module.parameters(), lr=0.02, eps=1e-4)
    return pilotage.training(
        module,
        optimizer,
        backend=torch.device(device).type,
        cards=[device] * cards,
        tier=options.pop("tier", "graph"),
        **options,
    )


def trained(device, cards, *, net=None, make=None, calls=CALLS, **options):
    """The trained module, and what the calls have returned."""
    torch.manual_seed(3)
    module = Net(**(net or {}))
    step = trainer(device, cards, module, None if make is None else make(module), **options)
    rounds = options["replicas"] * options.get("gradient_accumulation", 1) * options.get("device_iterations", 1)
    results = [step(*batch) for batch in batches(rounds, calls)]
    return step, results


def assert_same(one, several):
    """The same weights, buffers and outputs, on all cards."""
    (step, results), (shared, theirs) = one, several
    torch.testing.assert_close(theirs, results, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(shared.module.state_dict(), step.module.state_dict(), rtol=1e-6, atol=1e-6)
    assert isinstance(shared._executor.session.strategy, ReplicasOnCards)
    first, *copies = shared._executor.session.state.parts
    for copy in copies:
        torch.testing.assert_close(copy.parameters, first.parameters, rtol=0, atol=0)
        torch.testing.assert_close(copy.slots, first.slots, rtol=0, atol=0)
        torch.testing.assert_close(copy.counters, first.counters, rtol=0, atol=0)
        assert copy.parameters["first.weight"].data_ptr() != first.parameters["first.weight"].data_ptr()


COMBINATIONS = [(*each, cards) for each in product((2, 4), (1, 2), (1, 3)) for cards in (2, 4) if cards <= each[0]]


@pytest.mark.parametrize(("replicas", "accumulation", "iterations", "cards"), COMBINATIONS)
def test_several_cards_reach_the_weights_of_one(device, replicas, accumulation, iterations, cards):
    options = {"replicas": replicas, "gradient_accumulation": accumulation, "device_iterations": iterations}
    options |= {"seed": 7, "outputs": "all"}
    assert_same(trained(device, 1, **options), trained(device, cards, **options))


@pytest.mark.parametrize(("replicas", "cards"), [(2, 2), (4, 2)])
def test_every_replica_draws_what_it_would_draw_on_one_card(device, replicas, cards):
    options = {"replicas": replicas, "gradient_accumulation": 2, "device_iterations": 2, "seed": 11, "outputs": "all"}
    one = trained(device, 1, net={"dropout": 0.5}, **options)
    several = trained(device, cards, net={"dropout": 0.5}, **options)
    assert_same(one, several)
    streams = [step._executor.session.streams.states for step, _ in (one, several)]
    torch.testing.assert_close(streams[1], streams[0], rtol=0, atol=0)


def test_without_a_seed_torchs_seed_is_used(device):
    options = {"replicas": 2, "device_iterations": 2}
    one = trained(device, 1, net={"dropout": 0.5}, **options)
    assert_same(one, trained(device, 2, net={"dropout": 0.5}, **options))


def test_replicas_keep_their_own_statistics(device):
    options = {"replicas": 4, "gradient_accumulation": 2, "seed": 1, "broadcast_buffers": False}
    one, several = (trained(device, cards, net={"norm": True}, **options) for cards in (1, 2))
    assert_same(one, several)
    states = [step._executor.session.state for step, _ in (one, several)]
    for replica in range(4):
        torch.testing.assert_close(states[1].buffers(replica), states[0].buffers(replica), rtol=1e-6, atol=1e-6)
    assert not torch.equal(states[1].buffers(0)["norm.running_mean"], states[1].buffers(3)["norm.running_mean"])


@pytest.mark.parametrize("mode", ["final", "sum", "all", "every_n"])
def test_outputs_have_the_order_of_one_card(device, mode):
    options = {"replicas": 4, "gradient_accumulation": 2, "device_iterations": 4, "outputs": mode}
    options["output_period"] = 2 if mode == "every_n" else 1
    assert_same(trained(device, 1, **options), trained(device, 2, **options))


def test_a_new_learning_rate_reaches_all_cards(device):
    results = []
    for cards in (1, 2):
        torch.manual_seed(3)
        module = Net()
        step = trainer(device, cards, module, torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), replicas=2)
        for number, batch in enumerate(batches(2)):
            step.set_optimizer(torch.optim.SGD(module.parameters(), lr=0.1 / (1 + number), momentum=0.9))
            step(*batch)
        results.append((step, []))
    assert_same(*results)


def test_gradients_can_be_summed(device):
    options = {"replicas": 4, "reduction": "sum"}
    assert_same(trained(device, 1, **options), trained(device, 2, **options))


@pytest.mark.parametrize("iterations", [1, 3])
def test_inference_is_divided_among_cards(device, iterations):
    torch.manual_seed(3)
    module = Net()
    inputs = torch.randn(4 * iterations * SAMPLES, 5)
    backend = torch.device(device).type
    model = pilotage.inference(
        module, backend=backend, cards=[device, device], replicas=4, device_iterations=iterations, tier="graph"
    )
    expected = module(inputs).detach()
    for _ in range(3):
        torch.testing.assert_close(model(inputs), expected)
    assert isinstance(model._executor.session.strategy, ReplicasOnCards)


def test_inference_uses_the_trained_weights(device):
    torch.manual_seed(3)
    module = Net()
    options = {"replicas": 2, "tier": "graph", "cards": [device, device], "backend": torch.device(device).type}
    step = trainer(device, 2, module, replicas=2)
    model = pilotage.inference(module, **options)
    for inputs, labels in batches(2):
        step(inputs, labels)
        torch.testing.assert_close(model(inputs), module(inputs).detach())


@pytest.mark.parametrize("resumed_on", [1, 2])
def test_a_run_resumes_from_a_checkpoint(device, resumed_on, tmp_path):
    """On as many cards, or on another number of them."""
    net, options = {"dropout": 0.3, "norm": True}, {"replicas": 4, "seed": 5, "broadcast_buffers": False}
    whole, expected = trained(device, 2, net=net, calls=6, **options)
    begun, _ = trained(device, 2, net=net, calls=3, **options)
    begun.save_checkpoint(tmp_path, 3)
    torch.manual_seed(99)
    resumed = trainer(device, resumed_on, Net(**net), **options)
    rest = list(batches(4, 6))[3:]
    resumed.compile(*rest[0])
    assert resumed.restore_checkpoint(tmp_path).step == 3
    results = [resumed(*batch) for batch in rest]
    torch.testing.assert_close(results, expected[3:], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(resumed.module.state_dict(), whole.module.state_dict(), rtol=1e-6, atol=1e-6)
    for replica in range(4):
        ours, theirs = (step._executor.session.state.buffers(replica) for step in (resumed, whole))
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_a_program_can_be_detached_and_attached_again(device):
    one, _ = trained(device, 1, calls=4, replicas=2)
    several, _ = trained(device, 2, calls=2, replicas=2)
    several.detach()
    for batch in list(batches(2))[2:]:
        several(*batch)
    assert_same((one, []), (several, []))
