import pytest

from pilotage.proof.steps import losses_of, steps_of


def test_the_loss_of_several_processes_is_their_mean_and_their_samples_are_together(process, run_of):
    run = run_of(
        process(rank=0, size=2, each=lambda number: {"losses": [1.0]}),
        process(rank=1, size=2, each=lambda number: {"losses": [3.0]}),
    )
    step = steps_of(run)[0]
    assert step.mean_loss == 2.0
    assert step.samples == 8


def test_accumulated_losses_are_counted_as_the_other_script_does(process, run_of):
    whole = steps_of(run_of(process(each=lambda number: {"losses": [0.6]})))
    divided = steps_of(run_of(process(each=lambda number: {"losses": [0.2, 0.4]})))
    left, right = losses_of(whole, divided)
    assert left[0] == pytest.approx(right[0]) == 0.6


def test_losses_of_micro_batches_are_averaged_where_that_is_the_original(process, run_of):
    whole = steps_of(run_of(process(each=lambda number: {"losses": [0.3]})))
    parts = steps_of(run_of(process(each=lambda number: {"losses": [0.2, 0.4]})))
    assert losses_of(whole, parts)[1][0] == pytest.approx(0.3)


def test_only_the_first_stage_counts_samples(process, run_of):
    run = run_of(process(stage=0), process(stage=1))
    assert steps_of(run)[0].samples == 4
