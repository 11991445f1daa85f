"""Programs of PopTorch and Pilotage are profiled in the form in which they run."""

import pytest

pytestmark = pytest.mark.slow


def test_the_operations_of_a_program_have_phases_modules_lines_and_times(poptorch):
    operations = poptorch.device["operations"]
    names = [each["name"] for each in operations]
    first = operations[names.index("aten.addmm")]
    assert (first["module"], first["phase"], first["times"]) == ("body.0", "forward", 2)
    assert first["source"]["text"] == "scores = self.head(self.body(x))"
    assert all(each["measured_seconds"] is not None for each in operations)
    assert {each["phase"] for each in operations} == {"forward", "backward", "update"}
    assert all(each["times"] == 1 for each in operations if each["phase"] == "update")


def test_the_program_is_described(poptorch):
    program, measured = poptorch.report["program"], poptorch.device["measured"]
    assert (program["mode"], program["accumulation"], program["micro_batch"]) == ("training", 2, 8)
    assert measured["updates"] == 4
    assert "program of Pilotage" in measured["how"]
    assert poptorch.device["memory"]["by_category"]["weights"] > 0
    assert {"call", "next batch", "update 1"} <= {entry["name"] for entry in poptorch.device["host"]["entries"]}


def test_the_prediction_of_the_same_script_is_shown_next_to_the_measurement(poptorch):
    device = poptorch.device
    assert device["peak_bytes"]["value"] > 0
    assert device["time"]["update_seconds"]["value"] > 0
    predicted = [each for each in device["operations"] if each["seconds"] is not None]
    assert len(predicted) > len(device["operations"]) / 2
    assert "predicted" in poptorch.run.stdout


def test_inference_is_measured_call_by_call(inference):
    assert inference.report["program"]["mode"] == "inference"
    assert inference.device["measured"]["updates"] == 4
    assert {each["phase"] for each in inference.device["operations"]} == {"forward"}
