import runpy
from pathlib import Path

from pilotage.proof.comparison import Verdict, compare

digest = runpy.run_path(str(Path(__file__).parent / "conftest.py"))["digest"]


def test_equal_runs_are_the_same(process, run_of):
    found = compare(run_of(process()), run_of(process()))
    assert found.verdict is Verdict.SAME
    assert found.steps == 10
    assert found.sentence == "same"


def test_rounding_is_not_a_difference(process, run_of):
    other = process(each=lambda number: {"losses": [(1 + 1e-6) / number]})
    assert compare(run_of(process()), run_of(other)).verdict is Verdict.SAME


def test_a_loss_that_differs_is_named_with_its_step(process, run_of):
    other = process(each=lambda number: {"losses": [1.0 / number + (0.1 if number >= 4 else 0.0)]})
    found = compare(run_of(process()), run_of(other))
    assert (found.verdict, found.step, found.quantity) == (Verdict.DIVERGED, 4, "loss")
    assert found.sentence == "same until step 3, then diverged"


def test_the_learning_rate_is_named_before_the_loss_that_follows_from_it(process, run_of):
    other = process(
        each=lambda number: {
            "losses": [1.0 / number + (0.1 if number >= 4 else 0.0)],
            "rates": [0.1 if number < 3 else 0.2],
        }
    )
    found = compare(run_of(process()), run_of(other))
    assert (found.step, found.quantity, found.values) == (3, "learning rate", ("0.1", "0.2"))


def test_other_samples_are_named_before_the_loss_that_follows_from_them(process, run_of):
    load = {"loader": 0, "epoch": 0, "samples": 4, "indices": [7, 8, 9, 10], "content": None}
    other = process(each=lambda number: {"losses": [9.0], "loads": [load]})
    found = compare(run_of(process()), run_of(other))
    assert (found.step, found.quantity) == (1, "samples")


def test_weights_that_differ_diverge_though_losses_agree(process, run_of):
    other = process(weights={0: [digest(1.0, 2.0)], 10: [digest(1.6, 2.5)]})
    found = compare(run_of(process()), run_of(other))
    assert (found.verdict, found.step, found.quantity) == (Verdict.DIVERGED, 10, "weights")


def test_other_initial_weights_cannot_be_compared(process, run_of):
    other = process(weights={0: [digest(1.0, 2.1)], 10: [digest(1.5, 2.5)]})
    found = compare(run_of(process()), run_of(other))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "different weights" in found.reason


def test_a_larger_batch_cannot_be_compared_and_the_options_are_named(process, run_of):
    load = {"loader": 0, "epoch": 0, "samples": 8, "indices": None, "content": None}
    program = {
        "event": "program",
        "gradient_accumulation": 2,
        "replicas": 1,
        "instances": 1,
        "draws_random_numbers": False,
        "computed_in": {"float32": 3},
    }
    other = process(each=lambda number: {"loads": [load]}, events=(program,))
    found = compare(run_of(process()), run_of(other))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "takes 4 samples and one of AFTER 8 (gradient accumulation 2)" in found.reason


def test_a_shorter_run_is_compared_as_far_as_it_goes(process, run_of):
    assert compare(run_of(process(10)), run_of(process(6, weights={0: [digest(1.0, 2.0)]}))).steps == 6


def test_losses_that_are_not_numbers_in_both_are_equal(process, run_of):
    nan = process(each=lambda number: {"losses": [float("nan")]})
    assert compare(run_of(nan), run_of(nan)).verdict is Verdict.SAME
    assert compare(run_of(process()), run_of(nan)).verdict is Verdict.DIVERGED


def test_where_losses_were_not_seen_only_weights_are_compared(process, run_of):
    unseen = process(each=lambda number: {"losses": []})
    found = compare(run_of(unseen), run_of(process()))
    assert found.verdict is Verdict.SAME
    other = process(weights={0: [digest(1.0, 2.0)], 10: [digest(1.6, 2.5)]})
    found = compare(run_of(unseen), run_of(other))
    assert (found.verdict, found.step, found.quantity) == (Verdict.DIVERGED, 10, "weights")


def test_scripts_of_which_neither_losses_nor_weights_were_seen_cannot_be_compared(process, run_of):
    unseen = process(each=lambda number: {"losses": []}, weights={})
    found = compare(run_of(process()), run_of(unseen))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.reason == "neither losses nor weights were seen in both scripts (no losses in AFTER)"
