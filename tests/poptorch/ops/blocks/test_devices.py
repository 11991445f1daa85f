"""Blocks on several devices."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pilotage.passes.stage_placement import place
from pilotage.program.graphs.origins import stage_of
from poptorch.options import Options, SerialPhasedExecution, ShardedExecution, Stage


def stages_of_operations(model, name):
    """The stage of each operation of this name, in the order of the program."""
    graphs = [computation.graph for computation in model.executor.session.program.computations.values()]
    return [stage_of(node) for graph in graphs for node in graph.graph.nodes if name in str(node.target)]


@pytest.mark.parametrize(
    ("strategy", "ipus"),
    [
        (ShardedExecution(), [0, 1, 0, 3]),
        (ShardedExecution("a", "b", "c", "d"), [0, 1, 0, 3]),
        (ShardedExecution(Stage("a", "b").ipu(2), Stage("c").ipu(1), Stage("d").ipu(0)), [2, 2, 1, 0]),
        (SerialPhasedExecution("a", "b", "c", "d"), [0, 1, 0, 3]),
    ],
)
def test_every_operation_knows_the_ipu_of_its_block(compiled, strategy, ipus, scopes, rows):
    model = scopes(("a", 0), ("b", 1), ("c", 0), ("d", 3))
    program = compiled(model, Options().setExecutionStrategy(strategy).autoRoundNumIPUs(True)).compile(rows)
    assert stages_of_operations(program, "addmm") == ipus


def test_backward_runs_on_the_ipus_of_forward_and_the_update_on_none(compiled, scopes, with_loss, rows, sharded):
    model = with_loss(scopes(("a", 0), ("b", 1), ("c", 2)), 3)
    program = compiled(model, sharded, training=True).compile(rows)
    assert stages_of_operations(program, "addmm") == [0, 1, 2]
    assert stages_of_operations(program, "mse_loss_backward") == [3]
    # Of each layer the gradient of the weight, and of its input except for the first.
    assert stages_of_operations(program, "mm.default")[3:] == [2, 2, 1, 1, 0]
    assert set(stages_of_operations(program, "foreach")) == {None}


def test_a_model_without_blocks_is_in_no_stage(compiled, rows):
    program = compiled(nn.Linear(3, 3)).compile(rows)
    assert set(stages_of_operations(program, "")) == {None}


def test_blocks_are_distributed_over_the_available_devices(compiled, scopes, rows, sharded):
    program = compiled(scopes(("a", 0), ("b", 1), ("c", 2), ("d", 3)), sharded).compile(rows)
    cards = (torch.device("cpu"), torch.device("cuda", 1))
    state_devices = place(program.executor.session.program, cards).state_devices
    assert {name: state_devices[f"layers.{number}.weight"] for number, name in enumerate("abcd")} == {
        "a": cards[0],
        "b": cards[1],
        "c": cards[0],
        "d": cards[1],
    }
