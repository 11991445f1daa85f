"""What compiling checks about blocks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from poptorch.ops.blocks import Block
from poptorch.options import Options, ParallelPhasedExecution, Phase, PipelinedExecution, SerialPhasedExecution
from poptorch.poptorch_core import Error


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_pipeline_needs_enough_device_iterations(compiled, tier, scopes, rows):
    model = scopes(("a", 0), ("b", 1), ("c", 2), ("d", 3))
    with pytest.raises(Error, match=r"deviceIterations must be greater than or equal to .* stages \(4\)"):
        compiled(model, Options().deviceIterations(2), tier=tier)(rows)


def test_a_pipeline_needs_enough_accumulated_gradients(compiled, scopes, with_loss, rows):
    options = Options()
    options.Training.gradientAccumulation(2)
    with pytest.raises(Error, match=r"number of pipeline stages \(3\)"):
        compiled(with_loss(scopes(("a", 0), ("b", 1)), 1), options, training=True)(rows)


def test_returning_to_an_earlier_ipu_makes_the_pipeline_deeper(compiled, scopes, rows):
    model = scopes(("a", 0), ("b", 1), ("c", 0))
    with pytest.raises(Error, match=r"stages \(3\)"):
        compiled(model, Options().deviceIterations(2))(rows)


def test_neighbouring_blocks_on_one_ipu_are_one_stage(compiled, scopes, rows):
    model = scopes(("a", 0), ("b", 0), ("c", 1), ("d", 1))
    assert compiled(model, Options().deviceIterations(2)).compile(rows).capture.reserved_ipus == 2


def test_sharded_execution_needs_no_depth(compiled, scopes, rows, sharded):
    model = compiled(scopes(("a", 0), ("b", 1)), sharded)
    assert torch.equal(model(rows), model.module(rows))
    assert model.capture.reserved_ipus == 2


def test_ipus_come_in_powers_of_two_unless_rounding_is_allowed(compiled, scopes, rows, sharded):
    model = scopes(("a", 0), ("b", 1), ("c", 2))
    with pytest.raises(Error, match=r"specifies the use of 3 IPUs, however PopTorch must reserve a minimum of 4"):
        compiled(model, sharded)(rows)
    assert compiled(model, sharded.autoRoundNumIPUs(True)).compile(rows).capture.reserved_ipus == 4


def test_more_than_64_ipus_are_refused(compiled, scopes, rows, sharded):
    with pytest.raises(Error, match=r"Too many IPUs requested \(128\). Experiments that need more"):
        compiled(scopes(("a", 127)), sharded)(rows)


def test_replicas_count_as_ipus(compiled):
    with pytest.raises(Error, match="the use of 3 IPUs"):
        compiled(nn.Linear(3, 3), Options().replicationFactor(3))(torch.zeros(3, 3))


def test_an_operation_after_a_closed_block_is_refused_with_its_line(compiled, tier, scopes, rows):
    with pytest.raises(Error, match="No active Block") as caught:
        compiled(scopes(("a", 0), after=lambda x: x * 17.0), tier=tier)(rows)
    assert "aten::mul" in str(caught.value)
    assert "x * 17.0" in str(caught.value)


def test_an_operation_between_two_blocks_is_refused(compiled, rows):
    class Model(nn.Module):
        def forward(self, x):
            with Block("a", 0):
                x = x + 1
            x = x + 1
            with Block("b", 0):
                return x + 1

    with pytest.raises(Error, match="No active Block"):
        compiled(Model())(rows)


def test_operations_before_the_first_block_and_shape_queries_are_allowed(compiled, scopes, rows):
    def after(x):
        assert x.shape[0] == len(x) == x.size(0)
        assert x.device.type == "cpu"
        assert x.is_contiguous()
        return {"x": x, "again": x.contiguous()}

    model = scopes(("a", 0), before=lambda x: x * 2, after=after)
    assert torch.equal(compiled(model)(rows)["x"], model(rows)["x"])


def test_a_started_block_stays_open_until_the_end(compiled, rows):
    class Model(nn.Module):
        def forward(self, x):
            Block.start("a", ipu_id=0)
            return x * 2

    assert torch.equal(compiled(Model())(rows), rows * 2)


def test_the_outer_block_continues_after_an_inner_one(compiled, rows, sharded, visited):
    class Model(nn.Module):
        def forward(self, x):
            with Block("outer", 0):
                x = x + 1
                with Block("inner", 1):
                    x = x + 1
                return x + 1

    run = compiled(Model(), sharded)
    assert torch.equal(run(rows), rows + 3)
    assert visited(run) == [("outer", 0, 0), ("inner", 1, 1), ("outer", 0, 0)]


def test_an_outer_block_is_entered_again_only_if_something_runs_in_it(compiled, rows, sharded, visited):
    class Model(nn.Module):
        def forward(self, x):
            with Block("outer", 0):
                x = x + 1
                with Block("inner", 1):
                    return x + 1

    assert visited(compiled(Model(), sharded).compile(rows)) == [("outer", 0, 0), ("inner", 1, 1)]


def test_a_block_that_the_strategy_does_not_list_is_refused(compiled, scopes, rows):
    options = Options().setExecutionStrategy(PipelinedExecution("a", "b")).deviceIterations(2)
    with pytest.raises(AssertionError, match="Unknown Block 'c'"):
        compiled(scopes(("a", None), ("c", None)), options)(rows)


def test_a_block_without_ipu_is_refused_if_stages_are_numbered_by_ipu(compiled, scopes, rows):
    with pytest.raises(AssertionError, match="has no ipu_id"):
        compiled(scopes(("a", None)))(rows)


def test_phases_alternate_between_even_and_odd_ipus(compiled, scopes, rows):
    phases = Phase("a").ipus(1), Phase("b").ipus(0)
    model = scopes(("a", None), ("b", None))
    with pytest.raises(Error, match="even phases must be on even IPUs"):
        compiled(model, Options().setExecutionStrategy(ParallelPhasedExecution(*phases)))(rows)


@pytest.mark.parametrize("strategy", [ParallelPhasedExecution("a", "b"), SerialPhasedExecution("a", "b")])
def test_phases_give_the_same_results(compiled, strategy, scopes, rows):
    model = scopes(("a", None), ("b", None))
    assert torch.equal(compiled(model, Options().setExecutionStrategy(strategy))(rows), model(rows))


def test_the_models_own_error_is_the_one_that_is_raised(compiled, scopes, rows):
    def after(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        compiled(scopes(("a", 127), after=after))(rows)
