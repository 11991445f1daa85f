import pytest

from poptorch.enums import AutoStage
from poptorch.options import (
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
)
from poptorch.options.placement import Placement
from poptorch.poptorch_core import Error


@pytest.mark.parametrize("kind", [PipelinedExecution, ShardedExecution])
def test_the_ipu_comes_from_the_stage_then_the_block_then_its_number(kind):
    placer = kind("a", Stage("b").ipu(5), "c").placer()
    assert placer.place("b", 3) == Placement(stage=1, phase=-1, ipu=5)
    assert placer.place("c", 3) == Placement(stage=2, phase=-1, ipu=3)
    assert placer.place("c", None) == Placement(stage=2, phase=-1, ipu=2)
    assert placer.place("a", None) == Placement(stage=0, phase=-1, ipu=0)


@pytest.mark.parametrize(
    "strategy", [PipelinedExecution("a"), SerialPhasedExecution("a"), ParallelPhasedExecution("a")]
)
def test_a_block_that_was_not_listed_is_refused(strategy):
    with pytest.raises(AssertionError, match="Unknown Block"):
        strategy.placer().place("b", 0)


def test_a_stage_can_have_the_number_of_its_ipu():
    placer = PipelinedExecution().placer()
    assert [placer.place(block, ipu).stage for block, ipu in [("a", 2), ("b", 0), ("a", 1)]] == [2, 0, 1]
    with pytest.raises(AssertionError, match="ipu_id"):
        placer.place("c", None)


def test_stages_can_be_numbered_as_blocks_appear():
    placer = PipelinedExecution(AutoStage.AutoIncrement).placer()
    placements = [placer.place(block, ipu) for block, ipu in [("a", None), ("b", 7), ("a", None), ("c", None)]]
    assert [placement.stage for placement in placements] == [1, 2, 1, 3]
    assert [placement.ipu for placement in placements] == [1, 7, 1, 3]


def test_numbering_restarts_with_each_capture():
    strategy = PipelinedExecution(AutoStage.AutoIncrement)
    assert [strategy.placer().place(block, None).stage for block in "ab"] == [1, 1]


def test_serial_phases_share_their_ipus():
    placer = SerialPhasedExecution([Stage("a"), Stage("b")], [Stage("c"), Stage("d").ipu(3)]).placer()
    assert [placer.place(block, None) for block in "abcd"] == [
        Placement(stage=0, phase=0, ipu=0),
        Placement(stage=1, phase=0, ipu=1),
        Placement(stage=0, phase=1, ipu=0),
        Placement(stage=1, phase=1, ipu=3),
    ]


def test_parallel_phases_take_turns_on_even_and_odd_ipus():
    placer = ParallelPhasedExecution([Stage("a"), Stage("b")], [Stage("c"), Stage("d")], "e").placer()
    assert [placer.place(block, None).ipu for block in "abcde"] == [0, 2, 1, 3, 0]


def test_a_parallel_phase_on_an_ipu_of_the_wrong_parity_is_refused():
    placer = ParallelPhasedExecution("a", Phase("b").ipus(2)).placer()
    with pytest.raises(Error, match="even phases must be on even IPUs"):
        placer.place("b", None)
    with pytest.raises(Error, match="phase 0 is on IPU 1"):
        placer.place("a", 1)
