"""From a module to a session: devices, capture, passes, strategy."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.distributed.peers import Peers
from pilotage.distributed.pipeline_group import PipelineGroup
from pilotage.distributed.world import World
from pilotage.errors import OptionError
from pilotage.events import BackendChosen, CompilationProgress
from pilotage.options.batching import Batching
from pilotage.options.choices import Tier
from pilotage.strategies.replicas.strategy import ReplicasOnCards
from pilotage.strategies.single import SingleDevice
from pilotage.strategies.stages.strategy import Pipeline

X, TARGET = torch.randn(3, 4), torch.randn(3, 2)
SEVERAL = ("cpu", "cpu")


class TwoStages(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 2)

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = self.first(x)
        pilotage.enter_stage(1)
        output = self.last(hidden)
        return output, functional.mse_loss(output, target)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, target):
        output = self.layer(x)
        return output, functional.mse_loss(output, target)


STRATEGIES = [
    (Plain, {}, SingleDevice),
    (Plain, {"batching": Batching(replicas=2)}, SingleDevice),
    (Plain, {"batching": Batching(replicas=2), "cards": SEVERAL}, ReplicasOnCards),
    (TwoStages, {"batching": Batching(gradient_accumulation=2)}, SingleDevice),
    (TwoStages, {"batching": Batching(gradient_accumulation=2), "cards": SEVERAL}, Pipeline),
    # One micro-batch at a time passes through the stages too, so that they can be compiled.
    (TwoStages, {"cards": SEVERAL}, Pipeline),
    (TwoStages, {"batching": Batching(gradient_accumulation=2), "cards": SEVERAL, "tier": Tier.EAGER}, SingleDevice),
]


@pytest.mark.parametrize(("network", "settings", "strategy"), STRATEGIES)
def test_a_program_gets_its_strategy_by_options_and_by_its_stages(compilation, network, settings, strategy):
    compiled, call, _ = compilation(network(), X, TARGET, **settings)
    session = compiled.session(*call)
    assert type(session.strategy) is strategy
    assert session.strategy.state is None
    assert session.schedule.micro_batches == compiled.execution.batching.micro_batches_per_call
    assert session.tier is settings.get("tier", Tier.GRAPH)
    assert session.captured.trains


def test_events_are_emitted_in_order(compilation):
    compiled, call, events = compilation(Plain(), X, TARGET)
    compiled.session(*call)
    progress = [event for event in events if isinstance(event, CompilationProgress)]
    assert [each.doing for each in progress] == ["choosing a device", "capturing", "loading"]
    assert [each.fraction for each in progress] == sorted(each.fraction for each in progress)
    (chosen,) = (event for event in events if isinstance(event, BackendChosen))
    assert (chosen.backend, chosen.device, chosen.tier) == ("cpu", "cpu", "graph")


def test_a_captured_program_is_loaded_without_another_capture(compilation):
    compiled, call, events = compilation(Plain(), X, TARGET)
    program = compiled.session(*call).captured
    events.clear()
    session = compiled.session_of(program)
    assert session.program is program
    assert "capturing" not in [event.doing for event in events if isinstance(event, CompilationProgress)]


def pipeline_group(stage):
    return PipelineGroup(peers=Peers(world=World(size=1, stages_per_replica=2, stage=stage)))


@pytest.mark.parametrize("stage", [0, 1])
def test_one_stage_of_several_processes_has_its_part_of_the_weights(compilation, stage):
    compiled, call, _ = compilation(TwoStages(), X, TARGET, pipeline_group=pipeline_group(stage))
    session = compiled.session(*call)
    assert isinstance(session.strategy, Pipeline)
    assert {name.partition(".")[0] for name in session.program.layout.parameters} == {("first", "last")[stage]}
    assert session.gather is not None
    assert len(session.captured.layout.parameters) == 4


def test_stages_in_processes_need_a_graph(compilation):
    compiled, call, _ = compilation(TwoStages(), X, TARGET, pipeline_group=pipeline_group(0), tier=Tier.EAGER)
    with pytest.raises(OptionError, match=r"The tier is 'eager'\. Stages"):
        compiled.session(*call)


def test_a_program_that_was_compiled_before_cannot_be_cut_into_stages(compilation):
    compiled, call, _ = compilation(TwoStages(), X, TARGET)
    program = compiled.session(*call).captured
    of_stage, _, _ = compilation(TwoStages(), X, TARGET, pipeline_group=pipeline_group(0))
    with pytest.raises(OptionError, match="cannot be cut into stages"):
        of_stage.session_of(program)


def test_inference_exchanges_nothing(compilation):
    compiled, call, _ = compilation(nn.Linear(4, 2), X, trains=False)
    session = compiled.session(*call)
    assert not session.captured.trains
    assert session.gather is None
    assert session.optimizer_state() is None
