from pilotage.proof.findings import training
from pilotage.proof.findings.finding import NAMES, Finding, in_order


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
