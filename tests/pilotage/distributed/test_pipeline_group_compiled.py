"""Stages in separate processes run compiled code, and still reach the weights of one process."""

from __future__ import annotations

import os
import runpy
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import pilotage
from pilotage.distributed.peers import peers_here
from pilotage.distributed.pipeline_group import pipeline_group_here
from pilotage.errors import DistributedError, OptionError
from pilotage.events import Checked, Noted, Warned

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MOST_CALLS = 10_000
MORE = 5
"""Calls after the switch."""
PATIENCE = 1500
"""Seconds: compilers have a low priority, and other programs may use the cores."""

# By path, since this file is loaded on its own in processes without pytest.
others = runpy.run_path(str(Path(__file__).with_name("test_pipeline_group_training.py")))
train, assert_same, assert_close = others["train"], others["assert_same"], others["assert_close"]


def train_all(cases):
    return [train(**case) for case in cases]


def patient(instances, function, size, **arguments):
    """The results of all processes, some of which compile."""
    begun = instances()
    begun.start(function, size, **arguments)
    begun.statuses(PATIENCE)
    return begun.answers()


@pytest.mark.parametrize(
    "case",
    [
        {"stages": 2, "pipeline": "1f1b"},
        pytest.param({"stages": 2, "instances": 2, "accumulation": 2, "optimizer": "adam"}, marks=pytest.mark.long),
        pytest.param({"stages": 3, "pipeline": "gpipe", "tied": True, "replicas": 2}, marks=pytest.mark.long),
    ],
    ids=["1f1b", "two instances", "gpipe"],
)
def test_compiled_stages_reach_the_weights_of_one_process(instances, case, tmp_path):
    stages, count = case["stages"], case.get("instances", 1)
    compiled = case | {"tier": "compiled", "cache_directory": str(tmp_path / "cache")}
    found = patient(instances, train_all, count, stages=stages, cases=[compiled])
    expected = others["reference"](**case)
    assert len(found) == count * stages
    for number, (run,) in enumerate(found):
        assert_same(run, expected, instance=number // stages, **case)
    kept = [path.parent.parent for path in tmp_path.glob("cache/*/forward/wrapper.py")]
    assert len(kept) == stages, "each stage has code of its own"
    for folder in kept:
        assert {path.name for path in folder.iterdir()} >= {"forward", "backward", "update"}


@pytest.mark.long
def test_compiled_stages_draw_the_random_numbers_of_their_graphs(instances, tmp_path):
    case = {"stages": 4, "pipeline": "sharded", "accumulation": 1, "dropout": 0.3}
    compiled = case | {"tier": "compiled", "cache_directory": str(tmp_path / "cache")}
    for graph, code in patient(instances, train_all, 1, stages=4, cases=[case, compiled]):
        assert_close(code, graph)


class Waves(nn.Module):
    """Two stages of many small operations, which compiled code is sure to run faster."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x, y):
        pilotage.enter_stage(0)
        x = waved(self.first(x))
        pilotage.enter_stage(1)
        return nn.functional.cross_entropy(self.last(waved(x)), y)


def waved(x):
    for number in range(20):
        x = x + 0.1 * torch.sin(number * x)
    return x


def rise(caches):
    """Train until the tier of this stage changes, and a few updates more."""
    rank, stage = peers_here().world.rank, peers_here().world.stage
    torch.manual_seed(0)
    model = Waves()
    trainer = pilotage.training(
        model,
        torch.optim.AdamW(model.parameters(), lr=0.01),
        distributed=True,
        gradient_accumulation=2,
        cache_directory=caches[rank],
    )
    generator = torch.Generator().manual_seed(rank + 1)
    batch = torch.randn(8, 8, generator=generator), torch.arange(8) % 3
    calls, left = 0, None
    while calls < MOST_CALLS and left != 0:
        trainer(*batch)
        calls += 1
        if trainer.record.tier_changes:
            left = MORE if left is None else left - 1
        else:
            # Leave the cores to the compilers.
            time.sleep(0.05)
    return stage, trainer.record.tier_changes, {name: each.clone() for name, each in model.state_dict().items()}


@pytest.mark.long
def test_stages_switch_while_they_train_and_their_instances_stay_equal(instances, tmp_path):
    """Each instance compiles in a cache of its own; all processes have to agree on the update, and stages on code."""
    found = patient(instances, rise, 2, stages=2, caches=[str(tmp_path / "first"), str(tmp_path / "second")])
    for stage, tier_changes, weights in found:
        assert [tier for _, tier in tier_changes] == ["compiled"], stage
        assert tier_changes == found[0][1]
        for name, tensor in found[0][2].items():
            assert torch.equal(weights[name], tensor), name


def rise_wrongly(cache):
    """Train until the tier changes; the compiled code of stage 1 computes something else than its graph."""
    from pilotage.compiler.code import NativeCode

    run, stage, heard = NativeCode.__call__, pilotage.world_here().stage, []
    if stage == 1:
        NativeCode.__call__ = lambda self, *given: [
            each * 1.5 if each.is_floating_point() else each for each in run(self, *given)
        ]
    torch.manual_seed(0)
    model = Waves()
    trainer = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=1e-3),
        distributed=True,
        gradient_accumulation=2,
        cache_directory=cache,
        on_mismatch="warn",
        listeners=[heard.append],
    )
    batch = torch.randn(8, 8, generator=torch.Generator().manual_seed(1)), torch.arange(8) % 3
    while not trainer.record.tier_changes and trainer.record.calls < MOST_CALLS:
        trainer(*batch)
        time.sleep(0.05)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    for _ in range(MORE):
        trainer(*batch)
    checks = [event.agrees for event in heard if isinstance(event, Checked)]
    warnings = [event.message for event in heard if isinstance(event, Warned)]
    after = {name: each.clone() for name, each in model.state_dict().items()}
    return trainer.record.latest_tier, checks, warnings, before, after


@pytest.mark.long
def test_wrong_code_of_one_stage_goes_on_with_a_warning_in_all_of_them_if_that_was_asked_for(instances, tmp_path):
    found = patient(instances, rise_wrongly, 1, stages=2, cache=str(tmp_path / "cache"))
    for tier, checks, warnings, before, after in found:
        assert tier == "compiled"
        # The first call, and the first one on compiled code.
        assert checks == [True, False]
        assert len([each for each in warnings if "eager PyTorch" in each]) == 1, warnings
        assert not torch.equal(before["last.weight"], after["last.weight"])
        assert_close(after, found[0][-1])
    assert any("The program and eager PyTorch differ by more than rounding" in each for each in found[1][2])


class Careful(nn.Module):
    """Its first stage trains nothing; the second one accepts numbers between 0 and 1 only, and overwrites them."""

    def __init__(self):
        super().__init__()
        self.fixed, self.last = nn.Linear(8, 3).requires_grad_(False), nn.Linear(3, 3)

    def forward(self, x, y):
        pilotage.enter_stage(0)
        chances = torch.sigmoid(self.fixed(x))
        pilotage.enter_stage(1)
        loss = nn.functional.binary_cross_entropy(chances, y)
        return loss + nn.functional.binary_cross_entropy(torch.sigmoid(self.last(chances.mul_(0.5))), y)


def train_carefully(cache, tier):
    torch.manual_seed(0)
    model, said = Careful(), []
    step = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.5),
        distributed=True,
        gradient_accumulation=2,
        cache_directory=cache,
        tier=tier,
        outputs="all",
        listeners=[lambda event: said.append(event.message) if isinstance(event, (Noted, Warned)) else None],
    )
    generator = torch.Generator().manual_seed(1)
    batch = torch.randn(8, 8, generator=generator), torch.rand(8, 3, generator=generator)
    losses = []
    while len(losses) < 6 or (tier is None and not step.record.tier_changes and len(losses) < MOST_CALLS):
        losses.append(step(*batch).tolist())
        time.sleep(0.05 if len(losses) > 6 else 0.0)
    scores = pilotage.inference(Scores(), distributed=True, cache_directory=cache, tier=tier)
    found = [scores(torch.full((2, 3), float(number))) for number in range(3 + 2 * peers_here().world.rank)]
    return losses[:6], len(step.record.tier_changes), said, found


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        pilotage.enter_stage(0)
        hidden = torch.sin(self.first(x))
        pilotage.enter_stage(1)
        return self.last(hidden)


@pytest.mark.long
@pytest.mark.parametrize("tier", [None, "graph"])
def test_stages_that_cannot_run_on_made_up_messages_train_and_instances_infer_as_often_as_they_like(
    instances, tmp_path, tier
):
    torch.manual_seed(0)
    model = Careful()
    optimizer = torch.optim.SGD(model.last.parameters(), lr=0.5)
    generator = torch.Generator().manual_seed(1)
    batch = torch.randn(8, 8, generator=generator), torch.rand(8, 3, generator=generator)
    expected = []
    for _ in range(6):
        losses = [model(*(each[part * 4 : part * 4 + 4] for each in batch)) for part in range(2)]
        optimizer.zero_grad()
        (sum(losses) / 2).backward()
        optimizer.step()
        expected.append([loss.item() for loss in losses])
    arguments = {"cache": str(tmp_path / "cache"), "tier": tier}
    for losses, changes, said, found in patient(instances, train_carefully, 2, stages=2, **arguments):
        torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected))
        # To compiled code, or to the graph if that is faster.
        assert changes == (0 if tier else 1), said
        assert not any("stays on the graph tier" in message or "Not used" in message for message in said), said
        for number, scores in enumerate(found):
            torch.testing.assert_close(scores, Scores()(torch.full((2, 3), float(number))).detach())


def refusal_of_another_tier():
    stage = pilotage.world_here().stage
    model = Waves()
    step = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        distributed=True,
        tier="compiled" if stage else "graph",
    )
    with pytest.raises(DistributedError) as raised:
        step(torch.randn(4, 8), torch.arange(4) % 3)
    return str(raised.value)


@pytest.mark.long
def test_stages_with_different_tiers_are_refused(world):
    for message in world(refusal_of_another_tier, 1, stages=2):
        assert "Give all instances the same tier" in message


def refusal_of_a_stage(cache, why):
    """The error of a process whose pipeline has a stage that cannot compile, and how long it took."""
    stage, begun = pilotage.world_here().stage, time.monotonic()
    if why == "no compiler" and stage == 1:
        os.environ["CXX"] = "no-such-compiler"
    # Stage 1 of this model cannot run on messages that are made up, and stage 0 takes a while to compile.
    model = Careful() if why == "made up" else Waves()
    step = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1), distributed=True, tier="compiled", cache_directory=cache
    )
    y = torch.rand(4, 3) if why == "made up" else torch.arange(4) % 3
    with pytest.raises(OptionError) as raised:
        step(torch.randn(4, 8), y)
    # The processes are still able to work together.
    pipeline_group_here().peers.wait_for_all()
    return str(raised.value), time.monotonic() - begun


@pytest.mark.parametrize(
    ("why", "reason"),
    [("no compiler", "no C++ compiler (no-such-compiler)"), ("made up", "it cannot run on sample inputs")],
)
def test_if_a_stage_cannot_compile_all_processes_stop_with_its_reason(instances, tmp_path, why, reason):
    found = patient(instances, refusal_of_a_stage, 1, stages=2, cache=str(tmp_path / "cache"), why=why)
    messages = {message for message, _ in found}
    assert len(messages) == 1
    (message,) = messages
    assert message.startswith("All processes stop: stage 1 of instance 0 has no compiled code.")
    assert reason in message
    # The other stage does not finish what nobody will use.
    assert not list((tmp_path / "cache").glob("*/manifest.json"))
