import runpy
from pathlib import Path

import pytest

from pilotage.proof.findings import results

digest = runpy.run_path(str(Path(__file__).parents[1] / "conftest.py"))["digest"]


def names(rule, after, before=None):
    return [(each.name, each.where) for each in rule(after, before)]


def saved(holds, after=10, line="port.py:40", file=None):
    return {"event": "saved", "line": line, "holds": holds, "after": after, "tensors": 2, "file": file}


def asked(kind="float16", what="type", **changes):
    return {"event": "asked", "what": what, "type": kind, "line": "port.py:8", **changes}


def computing(kind):
    return lambda number: {"computed_in": {kind: 6} if number == 2 else None}


def test_processes_whose_weights_part_exchange_nothing(process, run_of):
    after = run_of(process(size=2), process(rank=1, size=2, weights={0: [digest(1.0, 2.0)], 10: [digest(1.2, 2.9)]}))
    assert names(results.no_gradient_exchange, after) == [("no-gradient-exchange", "train.py:20")]


def test_equal_weights_need_an_exchange_all_the_same(process, run_of):
    alone = run_of(process(size=2), process(rank=1, size=2))
    assert names(results.no_gradient_exchange, alone) == [("no-gradient-exchange", "train.py:20")]
    together = run_of(*(process(rank=rank, size=2, each=lambda number: {"exchanges": 1}) for rank in range(2)))
    assert not names(results.no_gradient_exchange, together)


def test_equal_weights_after_different_losses_need_an_exchange_that_was_not_seen(process, run_of):
    after = run_of(
        *(process(rank=rank, size=2, each=lambda number, rank=rank: {"losses": [1 + rank]}) for rank in (0, 1))
    )
    assert not names(results.no_gradient_exchange, after)


def test_processes_with_parts_of_the_model_are_not_judged(process, run_of):
    other = process(rank=1, size=2, weights={0: [digest(1.0)], 10: [digest(2.0)]})
    assert not names(results.no_gradient_exchange, run_of(process(size=2), other))


def test_a_narrow_type_that_is_requested_and_not_used_is_found(process, run_of):
    after = run_of(process(events=(asked(),), each=computing("float32")))
    assert names(results.precision_not_as_asked, after) == [("precision-not-as-asked", "port.py:8")]
    assert not names(results.precision_not_as_asked, after, after)
    used = run_of(process(events=(asked(),), each=computing("float16")))
    assert not names(results.precision_not_as_asked, used)


def typed(*kinds):
    """The products of each update in the type that is given for it; the last one holds for the rest."""
    return lambda number: {"product": kinds[min(number, len(kinds)) - 1], "line": f"port.py:{number}"}


def test_a_type_that_changes_while_that_of_the_original_stays_is_found_where_it_changes(process, run_of):
    before = run_of(process(each=typed("bfloat16")))
    after = run_of(process(each=typed("bfloat16", "bfloat16", "float32", "bfloat16")))
    (finding,) = results._changed_types(after.first, before.first)
    assert finding.where == "port.py:3"
    assert "Up to update 2" in finding.message
    assert "those of the original stay in bfloat16" in finding.message
    assert not list(results._changed_types(after.first, after.first))


def test_a_change_is_found_beside_the_other_findings_about_types(process, run_of):
    both = {"computed_in": {"bfloat16": 6}}
    before = run_of(process(each=lambda number: typed("bfloat16")(number) | (both if number == 2 else {})))
    kinds = typed("bfloat16", "bfloat16", "bfloat16", "float32")
    after = run_of(process(each=lambda number: kinds(number) | (both if number == 2 else {})))
    assert names(results.precision_not_as_asked, after, before) == [("precision-not-as-asked", "port.py:4")]


@pytest.mark.parametrize("change", [{"enabled": False, "trains": True}, {"enabled": True, "trains": False}])
def test_autocast_that_is_off_or_for_evaluation_asks_for_nothing(process, run_of, change):
    event = asked("bfloat16", "autocast", device="cpu", **change)
    assert not names(results.precision_not_as_asked, run_of(process(events=(event,), each=computing("float32"))))


def test_a_narrow_type_that_was_not_requested_is_found(process, run_of):
    after, before = run_of(process(each=computing("float16"))), run_of(process(each=computing("float32")))
    assert names(results.precision_not_as_asked, after, before) == [("precision-not-as-asked", "train.py:20")]
    assert not names(results.precision_not_as_asked, after)


def test_a_narrow_type_of_the_original_that_the_port_does_not_request_is_found(process, run_of):
    autocast = asked("bfloat16", "autocast", enabled=True, trains=True)
    before = run_of(process(events=(autocast,), each=computing("bfloat16")))
    after = run_of(process(each=computing("float32")))
    assert names(results.precision_not_as_asked, after, before) == [("precision-not-as-asked", "train.py:20")]
    assert not names(results.precision_not_as_asked, before, before)
    unused = run_of(process(events=(autocast,), each=computing("float32")))
    assert not names(results.precision_not_as_asked, after, unused)


@pytest.mark.parametrize("holds", ["initial", "other"])
def test_a_file_without_the_trained_weights_is_found_at_its_line(process, run_of, holds):
    after = run_of(process(events=(saved(holds),)))
    assert names(results.weights_not_saved, after) == [("weights-not-saved", "port.py:40")]


def test_files_with_trained_weights_give_no_finding(process, run_of):
    events = (saved("early", after=0, line="port.py:5"), saved("present"), saved("trained"))
    assert not names(results.weights_not_saved, run_of(process(events=events)))


def test_a_file_from_before_training_is_a_finding_if_there_is_no_later_one(process, run_of):
    after = run_of(process(events=(saved("early", after=0),)))
    assert names(results.weights_not_saved, after) == [("weights-not-saved", "port.py:40")]
    ended = run_of(process(events=(saved("early", after=0),), end="stopped"))
    assert not names(results.weights_not_saved, ended)


def test_a_port_that_saves_nothing_is_found_if_the_original_saves(process, run_of):
    before = run_of(process(events=(saved("present"),)))
    assert names(results.weights_not_saved, run_of(process()), before) == [("weights-not-saved", "train.py:20")]
    assert not names(results.weights_not_saved, run_of(process()))


def test_a_copy_that_the_original_saves_too_is_not_reported(process, run_of):
    run = run_of(process(events=(saved("initial", line="port.py:39", file="teacher.pt"), saved("present"))))
    assert not names(results.weights_not_saved, run, run)
    assert names(results.weights_not_saved, run, run_of(process())) == [("weights-not-saved", "port.py:39")]
    only = run_of(process(events=(saved("other", file="statistics.pt"),)))
    assert not names(results.weights_not_saved, only, only)


def test_a_copy_of_the_original_does_not_excuse_another_file(process, run_of):
    teacher = saved("initial", line="port.py:39", file="teacher.pt")
    before = run_of(process(events=(teacher, saved("present", file="student.pt"))))
    lost = run_of(process(events=(saved("initial", file="student.pt"),)))
    assert names(results.weights_not_saved, lost, before) == [("weights-not-saved", "port.py:40")]
    both = run_of(process(events=(saved("initial", file="renamed.pt"), teacher)))
    assert names(results.weights_not_saved, both, before) == [("weights-not-saved", "port.py:40")]


def test_a_port_that_saves_only_the_originals_copy_lacks_the_trained_weights(process, run_of):
    teacher = saved("initial", line="port.py:39", file="teacher.pt")
    before = run_of(process(events=(teacher, saved("present"))))
    after = run_of(process(events=(teacher,)))
    assert names(results.weights_not_saved, after, before) == [("weights-not-saved", "train.py:20")]


def test_what_is_saved_only_before_training_in_both_is_not_reported(process, run_of):
    run = run_of(process(events=(saved("early", after=0),)))
    assert not names(results.weights_not_saved, run, run)
    cut = run_of(process(events=(saved("early", after=0),), end="stopped"))
    assert names(results.weights_not_saved, run, cut) == [("weights-not-saved", "port.py:40")]
