import copy
import pickle

import pytest

from poptorch.enums import AutoStage, Liveness
from poptorch.options import (
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
)

PHASED = [ParallelPhasedExecution, SerialPhasedExecution]
STAGED = [PipelinedExecution, ShardedExecution]


@pytest.mark.parametrize("kind", STAGED)
def test_stages_can_be_given_as_stages_ids_or_lists(kind):
    strategy = kind(Stage("a", "b"), "c", ["d", "e"])
    assert [strategy.stage(block)._stage_id for block in "abcde"] == [0, 0, 1, 2, 2]
    assert strategy.stage("d").blocks == ["d", "e"]


@pytest.mark.parametrize("kind", STAGED + PHASED)
def test_a_block_belongs_to_one_stage(kind):
    with pytest.raises(AssertionError, match="associated with more than one stage"):
        kind("a", ["b", "a"])


@pytest.mark.parametrize("kind", STAGED + PHASED)
def test_a_block_that_was_not_listed_is_unknown(kind):
    with pytest.raises(AssertionError, match="Unknown block"):
        kind("a").stage("b")


def test_automatic_stages_have_no_lookup():
    with pytest.raises(AssertionError, match="Unknown block"):
        PipelinedExecution().stage("a")


@pytest.mark.parametrize("argument", [1, None, {"a"}, [1], AutoStage])
@pytest.mark.parametrize("kind", STAGED)
def test_a_stage_of_anything_else_is_refused(kind, argument):
    with pytest.raises(AssertionError):
        kind(argument)


def test_automatic_and_listed_stages_do_not_mix():
    with pytest.raises(AssertionError, match="A stage must be"):
        PipelinedExecution(AutoStage.SameAsIpu, "a")


def test_sharding_is_a_kind_of_pipeline():
    assert issubclass(ShardedExecution, PipelinedExecution)
    assert PipelinedExecution("a").backendOptions() == {"execution_mode": 0}
    assert ShardedExecution("a").backendOptions() == {"execution_mode": 1}


@pytest.mark.parametrize("kind", PHASED)
def test_phases_can_be_given_as_phases_lists_or_ids(kind):
    strategy = kind(Phase(Stage("a"), Stage("b")), [Stage("c"), Stage("d")], ["e", "f"], "g")
    places = {block: (strategy.stage(block)._phase_id, strategy.stage(block)._stage_id) for block in "abcdefg"}
    assert places == {"a": (0, 0), "b": (0, 1), "c": (1, 0), "d": (1, 1), "e": (2, 0), "f": (2, 0), "g": (3, 0)}
    assert strategy.phase(1).stages == [strategy.stage("c"), strategy.stage("d")]


@pytest.mark.parametrize("kind", PHASED)
def test_a_phased_execution_needs_at_least_one_phase(kind):
    with pytest.raises(AssertionError, match="at least one phase"):
        kind()


@pytest.mark.parametrize("index", [-1, 2, "0", None])
@pytest.mark.parametrize("kind", PHASED)
def test_phases_are_looked_up_by_number(kind, index):
    with pytest.raises(AssertionError, match=r"Phase .* does not exist"):
        kind("a", "b").phase(index)


@pytest.mark.parametrize("argument", [1, None, {"a"}])
@pytest.mark.parametrize("kind", PHASED)
def test_a_phase_of_anything_else_is_refused(kind, argument):
    with pytest.raises(AssertionError):
        kind(argument)


@pytest.mark.parametrize(("kind", "serial"), [(ParallelPhasedExecution, False), (SerialPhasedExecution, True)])
def test_the_backend_gets_the_phases(kind, serial):
    strategy = kind("a")
    expected = {
        "execution_mode": 2,
        "separate_backward_phase": False,
        "tensors_liveness": Liveness.AlwaysLive,
        "serial_phases_execution": serial,
    }
    assert strategy.backendOptions() == expected
    assert strategy.useSeparateBackwardPhase() is strategy
    assert strategy.backendOptions() == expected | {"separate_backward_phase": True}
    assert strategy.useSeparateBackwardPhase(False).backendOptions() == expected
    with pytest.raises(AssertionError, match="True or False"):
        strategy.useSeparateBackwardPhase(1)


def test_parallel_phases_can_move_tensors_off_the_chip():
    strategy = ParallelPhasedExecution("a")
    assert strategy.sendTensorsOffChipAfterFwd() is strategy
    assert strategy.backendOptions()["tensors_liveness"] == Liveness.OffChipAfterFwd
    assert strategy.sendTensorsOffChipAfterFwd(False).backendOptions()["tensors_liveness"] == Liveness.AlwaysLive
    with pytest.raises(AssertionError, match="True or False"):
        strategy.sendTensorsOffChipAfterFwd(1)


@pytest.mark.parametrize("liveness", Liveness)
def test_serial_phases_say_when_tensors_move_off_the_chip(liveness):
    strategy = SerialPhasedExecution("a").setTensorsLiveness(liveness)
    assert strategy.backendOptions()["tensors_liveness"] == liveness
    with pytest.raises(AssertionError, match=r"poptorch.Liveness"):
        strategy.setTensorsLiveness(0)


@pytest.mark.parametrize(
    "strategy",
    [
        PipelinedExecution(),
        PipelinedExecution(AutoStage.AutoIncrement),
        ShardedExecution(Stage("a").ipu(1), "b"),
        ParallelPhasedExecution("a", "b").sendTensorsOffChipAfterFwd(),
        SerialPhasedExecution(["a"], Phase(Stage("b"), Stage("c")).ipus(0, 1)),
    ],
)
def test_a_strategy_survives_copies_and_pickling(strategy):
    for duplicate in (copy.deepcopy(strategy), pickle.loads(pickle.dumps(strategy))):
        assert repr(duplicate) == repr(strategy)
        assert duplicate.backendOptions() == strategy.backendOptions()


def test_the_default_is_to_number_stages_by_ipu():
    assert repr(PipelinedExecution()) == repr(PipelinedExecution(AutoStage.SameAsIpu))
