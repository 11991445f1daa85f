"""Blocks do not change results, and are recorded in the order of forward."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from poptorch.enums import AutoStage
from poptorch.ops.blocks import BeginBlock, Block, BlockFunction
from poptorch.options import Options, PipelinedExecution


def test_blocks_have_no_effect_without_a_wrapper(scopes, rows):
    model = scopes((None, None), ("a", 3), after=lambda x: x + 1)
    Block.start("anything")
    Block.useAutoId()
    expected = model.layers[1](model.layers[0](rows)) + 1
    assert torch.equal(model(rows), expected)


def test_blocks_do_not_change_the_results_of_a_model(compiled, tier, scopes, rows):
    model = scopes(("a", 0), ("b", 1), ("c", 2), ("d", 3))
    run = compiled(model, Options().deviceIterations(4), tier=tier)
    assert torch.equal(run(rows), torch.cat([model(row) for row in rows.split(1)]))


def test_training_in_blocks_gives_the_same_weights_as_without(compiled, scopes, with_loss, rows):
    plain, in_blocks = (with_loss(scopes(("a", 0), ("b", 1)), 1) for _ in range(2))
    in_blocks.load_state_dict(plain.state_dict())
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    options = Options()
    options.Training.gradientAccumulation(4)
    sum(plain(row) / 4 for row in rows.split(1)).backward()
    optimizer.step()
    run = compiled(in_blocks, options, training=True)
    run(rows)
    run.executor.fetch_weights()
    for expected, found in zip(plain.parameters(), in_blocks.parameters(), strict=True):
        assert torch.allclose(expected, found, atol=1e-6)


def test_blocks_are_noted_in_the_order_of_forward(compiled, scopes, rows, sharded, visited):
    run = compiled(scopes(("b", 1), ("a", 0), ("b", 1)), sharded).compile(rows)
    assert visited(run) == [("b", 1, 1), ("a", 0, 0), ("b", 1, 1)]
    assert run.capture.reserved_ipus == 2


@pytest.mark.parametrize("ways", ["start", "hooks", "functions"])
def test_every_way_to_begin_a_block_is_noted(compiled, ways, rows, sharded, visited):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            if ways == "start":
                Block.start("first", ipu_id=0)
            x = self.first(x)
            if ways == "start":
                Block.start("second", ipu_id=1)
            return self.second(x)

    model = Model()
    if ways == "hooks":
        assert BeginBlock(model.first, "first", 0) is model.first
        BeginBlock(model.second, "second", ipu_id=1)
    if ways == "functions":
        model.forward = lambda x: in_second(in_first(x))

        @BlockFunction("first", ipu_id=0)
        def in_first(x):
            return model.first(x)

        @BlockFunction(user_id="second", ipu_id=1)
        def in_second(x):
            return model.second(x)

    run = compiled(model, sharded)
    assert torch.equal(run(rows), model.second(model.first(rows)))
    assert visited(run) == [("first", 0, 0), ("second", 1, 1)]


def test_a_function_keeps_its_name_as_a_block():
    @BlockFunction("a")
    def named(x):
        """Says something."""
        return x

    assert (named.__name__, named.__doc__, named(3)) == ("named", "Says something.", 3)


def test_blocks_without_an_id_are_numbered_in_the_order_of_forward(compiled, scopes, rows, visited):
    strategy = PipelinedExecution(AutoStage.AutoIncrement)
    options = Options().setExecutionStrategy(strategy).deviceIterations(4)
    model = scopes((None, 0), (None, 1), ("named", 2), (None, 3))
    assert visited(compiled(model, options).compile(rows)) == [("0", 1, 0), ("1", 2, 1), ("named", 3, 2), ("2", 4, 3)]


def test_automatic_ids_start_again_on_request(compiled, rows):
    class Model(nn.Module):
        def forward(self, x):
            with Block(ipu_id=0):
                x = x + 1
            Block.useAutoId()
            with Block(ipu_id=0):
                return x + 1

    run = compiled(Model())
    assert torch.equal(run(rows), rows + 2)
    assert [visit.block_id for visit in run.capture.visits] == ["0", "0"]


def test_the_eager_tier_records_blocks_for_each_micro_batch(compiled, scopes, rows, visited):
    run = compiled(scopes((None, 0), (None, 1)), Options().deviceIterations(4), tier="eager")
    run(rows)
    assert visited(run) == [("0", 0, 0), ("1", 1, 1)]
