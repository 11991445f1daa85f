import json
import runpy
from pathlib import Path

import pytest

from pilotage.proof.comparison import compare
from pilotage.proof.explanations import Alignment, alignment_of, explanations_of
from pilotage.proof.findings.finding import Finding
from pilotage.proof.picture import can_draw, draw
from pilotage.proof.proof import Proof, Request
from pilotage.proof.result_file import as_data, read_request, write_result
from pilotage.proof.running import WatchedRun
from pilotage.proof.screen import lines_of
from pilotage.proof.watching.settings import WatchSettings

digest = runpy.run_path(str(Path(__file__).parent / "conftest.py"))["digest"]
FINDING = Finding(name="wrapper-lost", where="port.py:9", message="It was lost.", remedy="Call it.")


@pytest.fixture
def proof_of(run_of):
    def make(before, after, findings=()):
        def run(name, process):
            settings = WatchSettings(folder="record")
            record = run_of(process)
            return WatchedRun(
                name=name, command=("python", f"{name}.py"), settings=settings, record=record, status=0, seconds=3.2
            )

        original = None if before is None else run("BEFORE", before)
        port = run("AFTER", after)
        comparison = None if original is None else compare(original.record, port.record)
        notes = [] if original is None else explanations_of(original.record, port.record, comparison, None)
        return Proof(
            request=Request(before=("python", "BEFORE.py"), after=("python", "AFTER.py")),
            before=original,
            after=port,
            comparison=comparison,
            findings=list(findings),
            explanations=notes,
        )

    return make


def text_of(proof):
    return "\n".join(text for text, _ in lines_of(proof))


def test_equal_scripts_are_the_same_on_one_screen(process, proof_of):
    proof = proof_of(process(), process())
    assert "Same over 10 updates: bit by bit" in text_of(proof)
    assert "10 updates on cpu (eager), SGD, 3 s" in text_of(proof)
    assert len(lines_of(proof)) < 24
    assert proof.is_same


def test_the_screen_says_where_only_weights_were_compared(process, proof_of):
    apart = {0: [digest(1.0, 2.0)], 10: [digest(1.5001, 2.5)]}
    text = text_of(proof_of(process(each=lambda number: {"losses": []}), process(weights=apart)))
    assert "Same over 10 updates: weights within 0.0001" in text
    assert "The loss of 10 updates of BEFORE was not seen, since no backward pass came before" in text


def test_the_screen_says_where_only_losses_were_compared(process, proof_of):
    other = process(each=lambda number: {"losses": [1.000001 / number]}, weights={0: []})
    text = text_of(proof_of(process(), other))
    assert "Same over 10 updates: losses within 1e-06; rounding" in text
    assert "The weights of AFTER were not seen" in text


def test_a_divergence_names_the_first_difference(process, proof_of):
    other = process(each=lambda number: {"losses": [1.0 / number + (0.1 if number >= 4 else 0.0)]})
    shown = text_of(proof_of(process(), other)).replace("\n", " ")
    assert (
        "Same until step 3, then diverged. The first difference is the loss of step 4: BEFORE 0.25, AFTER 0.35."
        in shown
    )


def test_findings_come_with_line_and_remedy(process, proof_of):
    proof = proof_of(process(), process(), [FINDING])
    assert "wrapper-lost  port.py:9\n  It was lost.\n  → Call it." in text_of(proof)
    assert not proof.is_same


def test_an_audit_counts_its_findings(process, proof_of):
    assert "No findings." in text_of(proof_of(None, process()))
    assert "1 finding." in text_of(proof_of(None, process(), [FINDING]))


def test_a_result_file_is_json_though_a_loss_is_not_finite(process, proof_of, tmp_path):
    numbers = {2: float("nan"), 3: float("inf"), 4: -float("inf")}
    lost = process(each=lambda number: {"losses": [numbers.get(number, 1.0)]})
    write_result(proof_of(process(), lost), tmp_path / "result.json")

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    data = json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse)
    assert data["comparison"]["losses"]["after"][:4] == [1.0, "NaN", "Infinity", "-Infinity"]


def test_a_result_file_holds_all_that_is_needed_to_repeat_the_proof(process, proof_of, tmp_path):
    proof = proof_of(process(), process(), [FINDING])
    write_result(proof, tmp_path / "result.json")
    assert read_request(tmp_path / "result.json") == proof.request
    data = as_data(proof)
    assert data["findings"][0] == {
        "name": "wrapper-lost",
        "file": "port.py",
        "line": 9,
        "message": "It was lost.",
        "remedy": "Call it.",
    }
    assert {"python", "pilotage", "torch"} <= data["versions"].keys()
    assert data["machine"]["cores"] >= 1
    assert data["runs"]["AFTER"]["updates"][2]["indices"] == (8, 9, 10, 11)
    made_by = data["runs"]["AFTER"]["updates"][2]["optimizer"]
    assert [each["kind"] for each in data["runs"]["AFTER"]["optimizers"] if each["number"] == made_by] == ["SGD"]
    assert (data["runs"]["BEFORE"]["batch_factor"], data["runs"]["BEFORE"]["gradient_factor"]) == (1, 1.0)


def larger(number):
    load = {"loader": 0, "epoch": 0, "samples": 12, "indices": None, "content": None}
    return {"loads": [load]}


def test_a_larger_batch_is_explained_and_can_be_aligned(process, run_of, proof_of):
    program = {"event": "program", "reduction": "mean", "gradient_accumulation": 3, "replicas": 1, "instances": 1}
    program |= {"device_iterations": 1, "draws_random_numbers": False, "computed_in": {"float32": 6}}
    after = process(each=larger, events=(program,))
    assert alignment_of(run_of(process()), run_of(after)) == Alignment(3, 1.0)
    assert alignment_of(run_of(process()), run_of(process())) is None
    shown = text_of(proof_of(process(), after)).replace("\n", " ")
    assert "AFTER's options make each update 3 times as large. With --align the original does the same." in shown


def test_a_larger_batch_is_not_explained_by_options_that_no_program_has(process, proof_of):
    """A script may lose the steps of its optimizer."""
    assert "options" not in text_of(proof_of(process(), process(each=larger)))


def test_a_schedule_that_acts_after_the_compared_updates_is_named_if_the_port_has_none(process, proof_of):
    schedule = {"number": 0, "kind": "StepLR", "line": "train.py:6", "steps": 3, "optimizer": 0, "changed": 2}
    schedules = {"schedules": [schedule | {"ignored": 0, "example": []}]}
    before = process(summary=schedules)
    assert "BEFORE's StepLR changes the rate after the compared updates" in text_of(proof_of(before, process()))
    assert "StepLR" not in text_of(proof_of(before, process(summary=schedules)))


def test_summed_gradients_are_explained_and_can_be_aligned(process, run_of):
    program = {"event": "program", "reduction": "sum", "gradient_accumulation": 2, "replicas": 2, "instances": 1}
    after = run_of(process(events=(program | {"device_iterations": 1, "draws_random_numbers": False},)))
    assert alignment_of(run_of(process()), after) == Alignment(1, 4.0)
    assert str(Alignment(2, 4.0)) == "batches 2 times as large and gradients times 4"


@pytest.mark.skipif(not can_draw(), reason="needs matplotlib")
def test_both_curves_are_drawn(process, proof_of, tmp_path):
    other = process(each=lambda number: {"losses": [1.0 / number + (0.1 if number >= 4 else 0.0)]})
    for name, proof in (("pair", proof_of(process(), other)), ("audit", proof_of(None, process()))):
        draw(proof, tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
