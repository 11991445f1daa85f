"""A pipeline over the cards of one process equals one card.

The cards are the same device listed several times: each stage still has its own state and graphs.
"""

from __future__ import annotations

import runpy
from itertools import product
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import pilotage
from pilotage.errors import NonFiniteLossError
from pilotage.events import Noted
from pilotage.strategies.stages.strategy import Pipeline

ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
DEVICES = [pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda:0", marks=ON_CUDA)]
SAMPLES = 2
CALLS = 3
# By path, as in tests whose file is also loaded in other processes.
Staged = runpy.run_path(str(Path(__file__).parents[2] / "staged.py"))["Staged"]


def batches(rounds: int, calls: int = CALLS):
    generator = torch.Generator().manual_seed(5)
    for _ in range(calls):
        yield (
            torch.randn(rounds * SAMPLES, 6, generator=generator),
            torch.randint(6, (rounds * SAMPLES,), generator=generator),
        )


def trainer(device, cards, module, **options):
    settings = {"tier": "graph", "outputs": "all", "broadcast_buffers": False, "gradient_accumulation": 4} | options
    # Without a larger epsilon Adam would amplify rounding errors of gradients near zero.
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.02, eps=1e-4)
    return pilotage.training(module, optimizer, backend=torch.device(device).type, cards=[device] * cards, **settings)


def trained(device, cards, *, net=None, calls=CALLS, **options):
    torch.manual_seed(1)
    module = Staged(**(net or {}))
    step = trainer(device, cards, module, **options)
    rounds = options.get("gradient_accumulation", 4) * options.get("replicas", 1) * options.get("device_iterations", 1)
    return step, [step(*batch) for batch in batches(rounds, calls)]


def assert_same(one, several):
    (step, results), (shared, theirs) = one, several
    assert isinstance(shared._executor.session.strategy, Pipeline)
    torch.testing.assert_close(theirs, results, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(shared.module.state_dict(), step.module.state_dict(), rtol=1e-6, atol=1e-6)


SAMPLE = [(2, "gpipe"), (4, None)]
REST = [each for each in product((2, 4), (None, "gpipe", "1f1b", "sharded")) if each not in SAMPLE]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("stages", "order"), [*SAMPLE, *(pytest.param(*each, marks=pytest.mark.long) for each in REST)]
)
def test_stages_on_cards_reach_the_weights_of_one_card(device, stages, order):
    net = {"stages": stages, "dropout": 0.3}
    options = {"seed": 3, "device_iterations": 2, "pipeline": order}
    assert_same(trained(device, 1, net=net, **options), trained(device, stages, net=net, **options))


@pytest.mark.parametrize("device", DEVICES)
def test_a_pipeline_trains_on_what_forward_returns_as_eager_does(device):
    step, _ = trained(device, 4, net={"work_after_loss": True}, calls=1)
    assert isinstance(step._executor.session.strategy, Pipeline)
    torch.manual_seed(1)
    twin = Staged(work_after_loss=True)
    optimizer = torch.optim.AdamW(twin.parameters(), lr=0.02, eps=1e-4)
    ((inputs, targets),) = batches(4, 1)
    for micro_batch in zip(inputs.split(SAMPLES), targets.split(SAMPLES), strict=True):
        (twin(*micro_batch)[2] / 4).backward()
    optimizer.step()
    torch.testing.assert_close(step.module.state_dict(), twin.state_dict(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_without_a_seed_torchs_own_generator_is_drawn_from(device):
    one = trained(device, 1, net={"dropout": 0.3})
    assert_same(one, trained(device, 4, net={"dropout": 0.3}))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cards", [2, pytest.param(3, marks=pytest.mark.long)])
def test_stages_share_cards_if_there_are_too_few(device, cards):
    assert_same(trained(device, 1), trained(device, cards))


@pytest.mark.parametrize("device", DEVICES)
def test_replicas_use_the_same_stages(device):
    options = {"replicas": 2, "gradient_accumulation": 2, "seed": 4}
    one, several = (trained(device, cards, net={"dropout": 0.3}, **options) for cards in (1, 4))
    assert_same(one, several)
    for replica in range(2):
        mine, theirs = (step._executor.session.state.buffers(replica) for step, _ in (several, one))
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_weight_of_two_stages_gets_the_gradients_of_both(device):
    assert_same(trained(device, 1, net={"tied": True}), trained(device, 4, net={"tied": True}))


@pytest.mark.parametrize("device", DEVICES)
def test_inference_runs_through_the_stages(device):
    torch.manual_seed(1)
    module = Staged().eval()
    model = pilotage.inference(
        module, backend=torch.device(device).type, cards=[device] * 4, device_iterations=5, tier="graph"
    )
    inputs = torch.randn(5 * SAMPLES, 6)
    torch.testing.assert_close(model(inputs), module(inputs).detach())
    assert isinstance(model._executor.session.strategy, Pipeline)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("resumed_on", [1, 4])
def test_a_pipeline_resumes_from_a_checkpoint(device, resumed_on, tmp_path):
    net, options = {"dropout": 0.3}, {"seed": 5}
    whole, expected = trained(device, 4, net=net, calls=4, **options)
    begun, _ = trained(device, 4, net=net, calls=2, **options)
    begun.save_checkpoint(tmp_path, 2)
    torch.manual_seed(99)
    resumed = trainer(device, resumed_on, Staged(**net), **options)
    rest = list(batches(4, 4))[2:]
    resumed.compile(*rest[0])
    assert resumed.restore_checkpoint(tmp_path).step == 2
    torch.testing.assert_close([resumed(*batch) for batch in rest], expected[2:], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(resumed.module.state_dict(), whole.module.state_dict(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_pipeline_can_be_detached_and_attached_again(device):
    one, _ = trained(device, 1, calls=4)
    several, _ = trained(device, 4, calls=2)
    several.detach()
    for batch in list(batches(4, 4))[2:]:
        several(*batch)
    assert_same((one, []), (several, []))


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_all_stages():
    torch.manual_seed(1)
    module = Staged()
    step = trainer("cpu", 4, module, nonfinite_loss="raise")
    before = {name: weight.clone() for name, weight in module.named_parameters()}
    inputs, targets = next(batches(4))
    with pytest.raises(NonFiniteLossError):
        step(torch.full_like(inputs, float("nan")), targets)
    assert all(torch.equal(weight, before[name]) for name, weight in module.named_parameters())


class Returning(Staged):
    """Returns to the first stage at its end, which a pipeline cannot do."""

    def forward(self, x, target=None):
        output = super().forward(x)
        pilotage.enter_stage(0)
        output = output + self.first(x)[:, :6]
        return output, functional.cross_entropy(output, target)


@pytest.mark.slow
def test_unsupported_pipelines_run_stage_by_stage():
    results, events = [], []
    for cards in (1, 4):
        torch.manual_seed(1)
        module = Returning()
        step = trainer("cpu", cards, module, listeners=[events.append])
        results.append(([step(*batch) for batch in batches(4)], module.state_dict()))
    torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=1e-6)
    assert any("returns to stage 0" in event.message for event in events if isinstance(event, Noted))
