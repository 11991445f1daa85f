"""Replicas on several cards of one process run compiled code, and switch to it while they train.

The cards are the processor listed several times: each still has its own state, program and random stream.
"""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.strategies.replicas.strategy import ReplicasOnCards

pytestmark = pytest.mark.slow

REPLICAS = 4
SAMPLES = 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.Linear(8, 4)
        self.dropout = nn.Dropout(0.25)

    def forward(self, x, target=None):
        output = self.last(self.dropout(functional.relu(self.norm(self.first(x)))))
        return output if target is None else (output, functional.cross_entropy(output, target))


def adam(parameters):
    # Without a larger epsilon Adam would amplify rounding errors of gradients near zero.
    return torch.optim.Adam(parameters, lr=0.02, eps=1e-4)


def slow_sgd(parameters):
    """Rounding errors stay small over hundreds of updates."""
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.5)


def trainer(cache, cards, make=adam, **options):
    torch.manual_seed(3)
    module = Net()
    return pilotage.training(
        module,
        make(module.parameters()),
        backend="cpu",
        cards=["cpu"] * cards,
        replicas=REPLICAS,
        seed=7,
        outputs="all",
        cache_directory=cache,
        **options,
    )


def batches(count, rounds=1):
    generator = torch.Generator().manual_seed(5)
    rows = REPLICAS * rounds * SAMPLES
    for _ in range(count):
        yield torch.randn(rows, 5, generator=generator), torch.randint(4, (rows,), generator=generator)


def assert_all_cards_agree(step):
    assert isinstance(step._executor.session.strategy, ReplicasOnCards)
    first, *copies = step._executor.session.state.parts
    for copy in copies:
        torch.testing.assert_close(copy.parameters, first.parameters, rtol=0, atol=0)
        torch.testing.assert_close(copy.slots, first.slots, rtol=0, atol=0)
        assert copy.parameters["first.weight"].data_ptr() != first.parameters["first.weight"].data_ptr()


@pytest.mark.parametrize(
    "options",
    [pytest.param({}, marks=pytest.mark.long), {"gradient_accumulation": 2, "device_iterations": 2}],
    ids=["one", "several"],
)
def test_compiled_replicas_reach_the_weights_of_the_graph_on_one_card(options, tmp_path):
    rounds = options.get("gradient_accumulation", 1) * options.get("device_iterations", 1)
    graph = trainer(tmp_path, 1, tier="graph", **options)
    compiled = trainer(tmp_path, 2, tier="compiled", **options)
    for batch in batches(4, rounds):
        torch.testing.assert_close(compiled(*batch), graph(*batch), rtol=1e-5, atol=1e-5)
    assert compiled.record.latest_tier == "compiled"
    assert_all_cards_agree(compiled)
    torch.testing.assert_close(compiled.module.state_dict(), graph.module.state_dict(), rtol=1e-5, atol=1e-5)


def test_replicas_switch_to_compiled_code_while_they_train(tmp_path):
    graph, rising = trainer(tmp_path, 1, slow_sgd, tier="graph"), trainer(tmp_path, 2, slow_sgd)
    pairs, end = list(batches(4)), time.monotonic() + 120
    while rising.record.latest_tier != "compiled" and time.monotonic() < end:
        for batch in pairs:
            torch.testing.assert_close(rising(*batch), graph(*batch), rtol=1e-4, atol=1e-4)
        time.sleep(0.2)
    assert rising.record.latest_tier == "compiled"
    for batch in pairs:
        torch.testing.assert_close(rising(*batch), graph(*batch), rtol=1e-4, atol=1e-4)
    assert_all_cards_agree(rising)


@pytest.mark.long
def test_code_found_in_the_cache_serves_any_number_of_cards(tmp_path):
    one, several = (trainer(tmp_path, cards, tier="compiled") for cards in (1, 2))
    for batch in batches(2):
        torch.testing.assert_close(several(*batch), one(*batch), rtol=1e-6, atol=1e-6)
    assert several._executor.session.entry.digest == one._executor.session.entry.digest


@pytest.mark.long
def test_compiled_inference_is_divided_among_cards(tmp_path):
    module, inputs = Net().eval(), torch.randn(REPLICAS * SAMPLES, 5)
    model = pilotage.inference(
        module,
        backend="cpu",
        cards=["cpu", "cpu"],
        replicas=REPLICAS,
        tier="compiled",
        cache_directory=tmp_path,
    )
    torch.testing.assert_close(model(inputs), module(inputs).detach())
    assert model.record.latest_tier == "compiled"
