import pytest

from poptorch.options import Phase, Stage


def test_a_stage_consists_of_blocks():
    stage = Stage("a", "b")
    assert stage.blocks == ["a", "b"]
    assert (stage._stage_id, stage._phase_id) == (-1, -1)
    with pytest.raises(AssertionError, match="Block ids must be strings"):
        Stage("a", 1)


def test_a_stage_can_be_placed_on_an_ipu():
    stage = Stage("a")
    assert stage.ipu(3) is stage
    assert repr(stage) == "Stage('a').ipu(3)"
    with pytest.raises(AssertionError, match="whole number"):
        stage.ipu("3")


def test_a_phase_consists_of_stages():
    one, other = Stage("a"), Stage("b")
    phase = Phase(one, other)
    assert phase.stages == [one, other]
    assert phase.stage(1) is other


def test_a_phase_made_of_block_ids_has_one_stage():
    [stage] = Phase("a", "b").stages
    assert stage.blocks == ["a", "b"]


@pytest.mark.parametrize("arguments", [("a", Stage("b")), (1,), (["a"],)])
def test_a_phase_cannot_mix_stages_and_block_ids(arguments):
    with pytest.raises(AssertionError, match="only of stages or only of block ids"):
        Phase(*arguments)


def test_a_phase_needs_one_ipu_per_stage():
    phase = Phase(Stage("a"), Stage("b"))
    assert phase.ipus(0, 2) is phase
    assert [stage._ipu for stage in phase.stages] == [0, 2]
    for wrong in ((), (0,), (0, 1, 2)):
        with pytest.raises(AssertionError, match="Give one for each"):
            phase.ipus(*wrong)
