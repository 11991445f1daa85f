import runpy
from pathlib import Path

import pytest

from pilotage.proof.findings import training
from pilotage.proof.findings.finding import NAMES, Finding, in_order

digest = runpy.run_path(str(Path(__file__).parents[1] / "conftest.py"))["digest"]


def found(rule, after, before=None):
    return [(each.name, each.where) for each in rule(after, before)]


def wrapper(**changes):
    plain = {"number": 0, "kind": "poptorch.trainingModel", "line": "port.py:9", "trains": True, "error": None}
    return plain | {"calls": 0} | changes


def schedule(**changes):
    plain = {"number": 0, "kind": "StepLR", "line": "port.py:12", "steps": 5, "optimizer": 0}
    return plain | {"changed": 4, "ignored": 0, "example": []} | changes


def test_a_wrapper_that_is_never_called_is_lost(process, run_of):
    run = run_of(process(summary={"wrappers": [wrapper()]}))
    assert found(training.wrapper_lost, run) == [("wrapper-lost", "port.py:9")]


def test_a_wrapper_that_trains_is_not_lost_whatever_failed_before(process, run_of):
    wrappers = [wrapper(error="ValueError: no"), wrapper(number=1, calls=8)]
    assert not found(training.wrapper_lost, run_of(process(summary={"wrappers": wrappers})))


def test_a_wrapper_that_failed_is_lost_if_the_host_trains(process, run_of):
    run = run_of(process(summary={"wrappers": [wrapper(error="ValueError: no")]}))
    assert found(training.wrapper_lost, run) == [("wrapper-lost", "port.py:9")]


def test_a_wrapper_for_inference_beside_one_that_trains_is_not_lost(process, run_of):
    wrappers = [wrapper(calls=8), wrapper(number=1, trains=False, kind="poptorch.inferenceModel")]
    run = run_of(process(summary={"wrappers": wrappers}, each=lambda number: {"mode": "program"}))
    assert not found(training.wrapper_lost, run)


def by_program(*numbers, optimizer=0):
    """Updates with these numbers are those of a program, the others are eager; by the optimizers 0 and `optimizer`."""

    def fields(number):
        return {"mode": "program", "wrapper": 0} if number in numbers else {"optimizer": optimizer}

    return fields


ONE_MODEL = {0: [digest(1.0, 2.0)], 2: [digest(1.2, 2.2)], 3: [digest(1.3, 2.3)]}


def test_a_program_that_is_left_for_the_plain_module_is_lost_at_the_step(process, run_of):
    run = run_of(process(summary={"wrappers": [wrapper(calls=1)]}, each=by_program(1)))
    (finding,) = training.wrapper_lost(run, None)
    assert (finding.name, finding.where) == ("wrapper-lost", "train.py:20")
    assert "poptorch.trainingModel trained up to update 1, and from update 2 on" in finding.message
    assert "9 updates" in finding.message
    assert found(training.wrapper_lost, run, run_of(process())) == [("wrapper-lost", "train.py:20")]
    assert not found(training.wrapper_lost, run, run)


def test_a_program_that_keeps_training_is_not_reported(process, run_of):
    """The rest of each epoch may be trained eagerly."""
    rests = process(summary={"wrappers": [wrapper(calls=8)]}, each=by_program(1, 2, 3, 4, 6, 7, 8, 9))
    assert not found(training.wrapper_lost, run_of(rests))


def test_a_program_is_left_for_another_optimizer_of_the_same_weights(process, run_of):
    run = run_of(process(weights=ONE_MODEL, each=by_program(1, 2, optimizer=1)))
    assert found(training.wrapper_lost, run) == [("wrapper-lost", "train.py:20")]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(digest(1.3, 2.3, 1.0), id="another shape"),
        pytest.param(digest(-2.0, 0.5), id="another start"),
        pytest.param(digest(1.05, 2.05), id="a copy that begins as the program began"),
    ],
)
def test_another_model_may_be_trained_eagerly_after_a_program(process, run_of, other):
    run = run_of(process(weights=ONE_MODEL | {3: [other]}, each=by_program(1, 2, optimizer=1)))
    assert not found(training.wrapper_lost, run)


def test_a_copy_that_is_trained_as_often_as_the_program_is_not_reported(process, run_of):
    run = run_of(process(4, weights=ONE_MODEL, each=by_program(1, 2, optimizer=1)))
    assert not found(training.wrapper_lost, run)


def test_a_port_that_trains_eagerly_fell_back_to_the_host(process, run_of):
    run = run_of(process(summary={"imported": ["poptorch"]}))
    assert found(training.host_fallback, run) == [("host-fallback", "train.py:20")]
    asked = {"event": "asked", "what": "device", "device": "cuda", "error": "no card", "line": "port.py:3"}
    assert found(training.host_fallback, run_of(process(events=(asked,)))) == [("host-fallback", "train.py:20")]


def test_a_plain_script_on_the_host_is_not_a_fallback(process, run_of):
    assert not found(training.host_fallback, run_of(process()))
    on_card = run_of(process(each=lambda number: {"device": "cuda"}))
    assert found(training.host_fallback, run_of(process()), on_card) == [("host-fallback", "train.py:20")]


def test_a_lost_wrapper_is_not_reported_as_fallback_too(process, run_of):
    run = run_of(process(summary={"imported": ["poptorch"], "wrappers": [wrapper()]}))
    assert not found(training.host_fallback, run)


def test_an_optimizer_without_updates_is_unused(process, run_of):
    idle = {"number": 1, "kind": "Adam", "line": "port.py:6", "steps": 0, "updates": 0, "parameters": 9, "after": 0}
    run = run_of(process(summary={"optimizers": [idle]}))
    assert found(training.optimizer_unused, run) == [("optimizer-unused", "port.py:6")]
    assert not found(training.optimizer_unused, run, run)


def test_an_optimizer_for_later_is_not_judged_if_the_script_was_ended(process, run_of):
    later = {"number": 1, "kind": "Adam", "line": "port.py:6", "steps": 0, "updates": 0, "parameters": 9, "after": 30}
    assert not found(training.optimizer_unused, run_of(process(end="stopped", summary={"optimizers": [later]})))


def test_a_schedule_that_is_ignored_or_never_stepped_is_found(process, run_of):
    ignored = schedule(ignored=3, example=[[0.05], [0.1]])
    run = run_of(process(summary={"schedules": [ignored]}))
    assert found(training.schedule_not_applied, run) == [("schedule-not-applied", "port.py:12")]
    never = run_of(process(summary={"schedules": [schedule(steps=0)]}))
    assert found(training.schedule_not_applied, never) == [("schedule-not-applied", "port.py:12")]


def test_a_schedule_is_not_missed_in_a_script_that_was_ended(process, run_of):
    run = run_of(process(end="stopped", summary={"schedules": [schedule(steps=0)]}))
    assert not found(training.schedule_not_applied, run)
    assert not found(training.schedule_not_applied, run_of(process(summary={"schedules": [schedule()]})))


def decaying(number):
    return {"rates": [0.1 if number < 4 else 0.01]}


def test_a_schedule_that_the_port_lacks_is_found_at_its_optimizer(process, run_of):
    (finding,) = training.schedule_not_applied(run_of(process()), run_of(process(each=decaying)))
    assert (finding.name, finding.where) == ("schedule-not-applied", "train.py:5")
    assert "in update 4 the original applied 0.01, and this script 0.1" in finding.message


@pytest.mark.parametrize(
    "port",
    [
        pytest.param({"each": decaying}, id="the same rates"),
        pytest.param({"each": lambda number: {"rates": [3 * decaying(number)["rates"][0]]}}, id="a constant factor"),
        pytest.param({"count": 3}, id="the original's rate has not changed yet"),
        pytest.param({"summary": {"schedules": [schedule()]}}, id="a schedule of its own"),
        pytest.param(
            {"each": lambda number: decaying(number) | {"optimizer": number // 4}}, id="a new optimizer for each rate"
        ),
    ],
)
def test_a_port_with_rates_that_change_lacks_no_schedule(process, run_of, port):
    assert not found(training.schedule_not_applied, run_of(process(**port)), run_of(process(each=decaying)))


def test_alternating_optimizers_are_not_a_schedule(process, run_of):
    before = process(each=lambda number: {"rates": [0.1 * (1 + number % 2)], "optimizer": number % 2})
    assert not found(training.schedule_not_applied, run_of(process()), run_of(before))


def test_updates_in_evaluation_mode_are_found_at_the_call_of_eval(process, run_of):
    run = run_of(process(each=lambda number: {"in_eval_mode": number > 5, "eval_line": "port.py:30"}))
    assert found(training.eval_mode_in_training, run) == [("eval-mode-in-training", "port.py:30")]
    assert not found(training.eval_mode_in_training, run, run)


def test_work_after_the_loss_is_found_at_the_loss(process, run_of):
    program = {"event": "program", "dropped": {"loss": "port.py:14", "operation": "port.py:15"}}
    run = run_of(process(events=(program,)))
    assert found(training.loss_root_differs, run) == [("loss-root-differs", "port.py:14")]


def test_a_backward_pass_that_misses_the_returned_loss_is_found_at_its_root(process, run_of):
    split = {"event": "split", "line": None, "root": "port.py:17"}
    run = run_of(process(events=(split,), each=lambda number: {"misses_returned_loss": number < 3}))
    assert found(training.loss_root_differs, run) == [("loss-root-differs", "port.py:17")]
    assert not found(training.loss_root_differs, run, run)


def test_findings_come_once_and_in_order():
    def finding(name, where):
        return Finding(name=name, where=where, message="", remedy="")

    given = [finding(NAMES[3], "b:1"), finding(NAMES[0], "a:1"), finding(NAMES[3], "b:1")]
    assert [(each.name, each.file, each.line) for each in in_order(given)] == [(NAMES[0], "a", 1), (NAMES[3], "b", 1)]
