import copy
import io
import pickle

import pytest
import torch
from torch import nn

from pilotage.program.placement import place
from pilotage.program.stages import stage_of
from poptorch._blocks import BeginBlock, Block, BlockFunction, LegacyBeginBlockFn, removeBlocks
from poptorch.enums import AutoStage
from poptorch.options import (
    Options,
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
)
from poptorch.poptorch_core import Error

BATCH = torch.arange(12.0).reshape(4, 3)


class Scopes(nn.Module):
    """Runs a layer in each of the given blocks."""

    def __init__(self, *blocks, after=lambda x: x, before=lambda x: x):
        super().__init__()
        self.blocks = blocks
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in blocks)
        self.before = before
        self.after = after

    def forward(self, x):
        x = self.before(x)
        for layer, (block_id, ipu) in zip(self.layers, self.blocks, strict=True):
            with Block(block_id, ipu_id=ipu):
                x = layer(x)
        return self.after(x)


class Loss(nn.Module):
    """A model together with a loss, in one more block on the same IPU."""

    def __init__(self, model, ipu):
        super().__init__()
        self.model = model
        self.ipu = ipu

    def forward(self, x):
        x = self.model(x)
        with Block("loss", ipu_id=self.ipu):
            return nn.functional.mse_loss(x, torch.zeros_like(x))


def sharded():
    return Options().setExecutionStrategy(ShardedExecution())


def visited(model):
    return [(visit.block_id, visit.placement.stage, visit.placement.ipu) for visit in model.capture.visits]


def test_blocks_do_nothing_outside_of_a_wrapper():
    model = Scopes((None, None), ("a", 3), after=lambda x: x + 1)
    Block.start("anything")
    Block.useAutoId()
    expected = model.layers[1](model.layers[0](BATCH)) + 1
    assert torch.equal(model(BATCH), expected)


def test_a_model_in_blocks_computes_what_it_computes_without(compiled, tier):
    model = Scopes(("a", 0), ("b", 1), ("c", 2), ("d", 3))
    run = compiled(model, Options().deviceIterations(4), tier=tier)
    assert torch.equal(run(BATCH), torch.cat([model(row) for row in BATCH.split(1)]))


def test_training_in_blocks_gives_the_same_weights_as_without(compiled):
    plain, in_blocks = (Loss(Scopes(("a", 0), ("b", 1)), 1) for _ in range(2))
    in_blocks.load_state_dict(plain.state_dict())
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    options = Options()
    options.Training.gradientAccumulation(4)
    sum(plain(row) / 4 for row in BATCH.split(1)).backward()
    optimizer.step()
    run = compiled(in_blocks, options, training=True)
    run(BATCH)
    run.executor.fetch_weights()
    for expected, found in zip(plain.parameters(), in_blocks.parameters(), strict=True):
        assert torch.allclose(expected, found, atol=1e-6)


def test_blocks_are_noted_in_the_order_of_forward(compiled):
    run = compiled(Scopes(("b", 1), ("a", 0), ("b", 1)), sharded()).compile(BATCH)
    assert visited(run) == [("b", 1, 1), ("a", 0, 0), ("b", 1, 1)]
    assert run.capture.reserved_ipus == 2


@pytest.mark.parametrize("ways", ["start", "hooks", "functions"])
def test_every_way_to_begin_a_block_is_noted(compiled, ways):
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

    run = compiled(model, sharded())
    assert torch.equal(run(BATCH), model.second(model.first(BATCH)))
    assert visited(run) == [("first", 0, 0), ("second", 1, 1)]


def test_a_function_keeps_its_name_as_a_block():
    @BlockFunction("a")
    def named(x):
        """Says something."""
        return x

    assert (named.__name__, named.__doc__, named(3)) == ("named", "Says something.", 3)


def test_blocks_without_an_id_are_numbered_in_the_order_of_forward(compiled):
    strategy = PipelinedExecution(AutoStage.AutoIncrement)
    options = Options().setExecutionStrategy(strategy).deviceIterations(4)
    model = Scopes((None, 0), (None, 1), ("named", 2), (None, 3))
    assert visited(compiled(model, options).compile(BATCH)) == [("0", 1, 0), ("1", 2, 1), ("named", 3, 2), ("2", 4, 3)]


def test_automatic_ids_start_again_on_request(compiled):
    class Model(nn.Module):
        def forward(self, x):
            with Block(ipu_id=0):
                x = x + 1
            Block.useAutoId()
            with Block(ipu_id=0):
                return x + 1

    run = compiled(Model())
    assert torch.equal(run(BATCH), BATCH + 2)
    assert [visit.block_id for visit in run.capture.visits] == ["0", "0"]


def test_the_eager_tier_notes_blocks_anew_for_each_micro_batch(compiled):
    run = compiled(Scopes((None, 0), (None, 1)), Options().deviceIterations(4), tier="eager")
    run(BATCH)
    assert visited(run) == [("0", 0, 0), ("1", 1, 1)]


# Checks


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_pipeline_needs_enough_device_iterations(compiled, tier):
    model = Scopes(("a", 0), ("b", 1), ("c", 2), ("d", 3))
    with pytest.raises(Error, match=r"deviceIterations must be greater than or equal to .* stages \(4\)"):
        compiled(model, Options().deviceIterations(2), tier=tier)(BATCH)


def test_a_pipeline_needs_enough_accumulated_gradients(compiled):
    options = Options()
    options.Training.gradientAccumulation(2)
    with pytest.raises(Error, match=r"number of pipeline stages \(3\)"):
        compiled(Loss(Scopes(("a", 0), ("b", 1)), 1), options, training=True)(BATCH)


def test_returning_to_an_earlier_ipu_makes_the_pipeline_deeper(compiled):
    model = Scopes(("a", 0), ("b", 1), ("c", 0))
    with pytest.raises(Error, match=r"stages \(3\)"):
        compiled(model, Options().deviceIterations(2))(BATCH)


def test_neighbouring_blocks_on_one_ipu_are_one_stage(compiled):
    compiled(Scopes(("a", 0), ("b", 0), ("c", 1), ("d", 1)), Options().deviceIterations(2)).compile(BATCH)


def test_sharded_execution_needs_no_depth(compiled):
    compiled(Scopes(("a", 0), ("b", 1)), sharded())(BATCH)


def test_ipus_come_in_powers_of_two_unless_rounding_is_allowed(compiled):
    model = Scopes(("a", 0), ("b", 1), ("c", 2))
    with pytest.raises(Error, match=r"specifies the use of 3 IPUs, however PopTorch must reserve a minimum of 4"):
        compiled(model, sharded())(BATCH)
    assert compiled(model, sharded().autoRoundNumIPUs(True)).compile(BATCH).capture.reserved_ipus == 4


def test_more_than_64_ipus_are_refused(compiled):
    with pytest.raises(Error, match=r"Too many IPUs requested \(128\). Experiments that need more"):
        compiled(Scopes(("a", 127)), sharded())(BATCH)


def test_replicas_count_as_ipus(compiled):
    with pytest.raises(Error, match="the use of 3 IPUs"):
        compiled(nn.Linear(3, 3), Options().replicationFactor(3))(torch.zeros(3, 3))


def test_an_operation_after_a_closed_block_is_refused_with_its_line(compiled, tier):
    with pytest.raises(Error, match="No active Block") as caught:
        compiled(Scopes(("a", 0), after=lambda x: x * 17.0), tier=tier)(BATCH)
    assert "aten::mul" in str(caught.value)
    assert "x * 17.0" in str(caught.value)


def test_an_operation_between_two_blocks_is_refused(compiled):
    class Model(nn.Module):
        def forward(self, x):
            with Block("a", 0):
                x = x + 1
            x = x + 1
            with Block("b", 0):
                return x + 1

    with pytest.raises(Error, match="No active Block"):
        compiled(Model())(BATCH)


def test_operations_before_the_first_block_and_questions_about_shapes_are_fine(compiled):
    def after(x):
        assert x.shape[0] == len(x) == x.size(0)
        assert x.device.type == "cpu"
        assert x.is_contiguous()
        return {"x": x, "again": x.contiguous()}

    model = Scopes(("a", 0), before=lambda x: x * 2, after=after)
    assert torch.equal(compiled(model)(BATCH)["x"], model(BATCH)["x"])


def test_a_started_block_stays_open_until_the_end(compiled):
    class Model(nn.Module):
        def forward(self, x):
            Block.start("a", ipu_id=0)
            return x * 2

    assert torch.equal(compiled(Model())(BATCH), BATCH * 2)


def test_the_outer_block_goes_on_after_an_inner_one(compiled):
    class Model(nn.Module):
        def forward(self, x):
            with Block("outer", 0):
                x = x + 1
                with Block("inner", 1):
                    x = x + 1
                return x + 1

    run = compiled(Model(), sharded())
    assert torch.equal(run(BATCH), BATCH + 3)
    assert visited(run) == [("outer", 0, 0), ("inner", 1, 1), ("outer", 0, 0)]


def test_an_outer_block_in_which_nothing_runs_any_more_is_not_entered_again(compiled):
    class Model(nn.Module):
        def forward(self, x):
            with Block("outer", 0):
                x = x + 1
                with Block("inner", 1):
                    return x + 1

    assert visited(compiled(Model(), sharded()).compile(BATCH)) == [("outer", 0, 0), ("inner", 1, 1)]


def test_a_block_that_the_strategy_does_not_list_is_refused(compiled):
    options = Options().setExecutionStrategy(PipelinedExecution("a", "b")).deviceIterations(2)
    with pytest.raises(AssertionError, match="Unknown Block 'c'"):
        compiled(Scopes(("a", None), ("c", None)), options)(BATCH)


def test_a_block_without_ipu_is_refused_where_stages_are_numbered_by_ipu(compiled):
    with pytest.raises(AssertionError, match="has no ipu_id"):
        compiled(Scopes(("a", None)))(BATCH)


def test_phases_alternate_between_even_and_odd_ipus(compiled):
    phases = Phase("a").ipus(1), Phase("b").ipus(0)
    model = Scopes(("a", None), ("b", None))
    with pytest.raises(Error, match="even phases have to be on even IPUs"):
        compiled(model, Options().setExecutionStrategy(ParallelPhasedExecution(*phases)))(BATCH)


@pytest.mark.parametrize("strategy", [ParallelPhasedExecution("a", "b"), SerialPhasedExecution("a", "b")])
def test_phases_give_the_same_results(compiled, strategy):
    model = Scopes(("a", None), ("b", None))
    assert torch.equal(compiled(model, Options().setExecutionStrategy(strategy))(BATCH), model(BATCH))


def test_the_models_own_error_is_the_one_that_is_raised(compiled):
    def after(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        compiled(Scopes(("a", 127), after=after))(BATCH)


# Hooks


def test_the_hook_of_a_block_says_what_it_is():
    layer = BeginBlock(nn.Linear(1, 1), ipu_id=1)
    assert [repr(hook) for hook in layer._forward_pre_hooks.values()] == ["BeginBlock(user_id=None, ipu_id=1)"]


def through_pickle(module):
    return pickle.loads(pickle.dumps(module))


def through_a_file(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, through_pickle, through_a_file])
def test_blocks_survive_copies_and_files(compiled, way):
    model = way(nn.Sequential(BeginBlock(nn.Linear(3, 3), "a", 0), BeginBlock(nn.Linear(3, 3), "b", 1)))
    assert visited(compiled(model, sharded()).compile(BATCH)) == [("a", 0, 0), ("b", 1, 1)]
    with pytest.raises(Error, match="already been assigned"):
        BeginBlock(model[0])


def test_a_module_belongs_to_one_block():
    layer = BeginBlock(nn.Linear(1, 1))
    with pytest.raises(Error, match=r"module has already been assigned to a block\."):
        BeginBlock(layer)


def test_a_function_becomes_a_module_that_begins_a_block(compiled):
    model = BeginBlock(torch.relu, "a", ipu_id=1)
    assert isinstance(model, LegacyBeginBlockFn)
    run = compiled(model, sharded())
    assert torch.equal(run(-BATCH), torch.relu(-BATCH))
    assert visited(run) == [("a", 1, 1)]
    assert "BeginBlock(user_id=a, ipu_id=1)" in repr(model)


def test_nothing_else_begins_a_block():
    with pytest.raises(Error, match="not with int"):
        BeginBlock(3)


def test_blocks_can_be_removed(compiled):
    layers = [BeginBlock(nn.Linear(3, 3), ipu_id=0), nn.ReLU(), BeginBlock(torch.neg, ipu_id=1)]
    model = nn.Sequential(*layers)
    other_hook = layers[0].register_forward_pre_hook(lambda module, inputs: None)
    removeBlocks(model)
    run = compiled(model)
    assert torch.equal(run(BATCH), model(BATCH))
    assert visited(run) == []
    assert list(layers[0]._forward_pre_hooks) == [other_hook.id]
    BeginBlock(layers[0])


# Several devices


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
def test_every_operation_knows_the_ipu_of_its_block(compiled, strategy, ipus):
    model = Scopes(("a", 0), ("b", 1), ("c", 0), ("d", 3))
    program = compiled(model, Options().setExecutionStrategy(strategy).autoRoundNumIPUs(True)).compile(BATCH)
    assert stages_of_operations(program, "addmm") == ipus


def test_backward_runs_on_the_ipus_of_forward_and_the_update_on_none(compiled):
    model = Loss(Scopes(("a", 0), ("b", 1), ("c", 2)), 3)
    program = compiled(model, sharded(), training=True).compile(BATCH)
    assert stages_of_operations(program, "addmm") == [0, 1, 2]
    assert stages_of_operations(program, "mse_loss_backward") == [3]
    # Of each layer the gradient of the weight, and of its input except for the first.
    assert stages_of_operations(program, "mm.default")[3:] == [2, 2, 1, 1, 0]
    assert set(stages_of_operations(program, "foreach")) == {None}


def test_a_model_without_blocks_is_in_no_stage(compiled):
    program = compiled(nn.Linear(3, 3)).compile(BATCH)
    assert set(stages_of_operations(program, "")) == {None}


def test_blocks_are_shared_out_to_the_devices_that_there_are(compiled):
    program = compiled(Scopes(("a", 0), ("b", 1), ("c", 2), ("d", 3)), sharded()).compile(BATCH)
    cards = (torch.device("cpu"), torch.device("cuda", 1))
    homes = place(program.executor.session.program, cards).homes
    assert {name: homes[f"layers.{number}.weight"] for number, name in enumerate("abcd")} == {
        "a": cards[0],
        "b": cards[1],
        "c": cards[0],
        "d": cards[1],
    }
