"""Plain PyTorch scripts are profiled as they are."""

import pytest

pytestmark = pytest.mark.slow


def test_operations_are_those_of_the_script(eager):
    operations = eager.device["operations"]
    names = [each["name"] for each in operations]
    assert names.count("aten.addmm") == 2
    first = operations[names.index("aten.addmm")]
    assert (first["module"], first["phase"], first["output"]) == ("body.0", "forward", "f32[16,64]")
    assert first["source"]["file"] == "train.py"
    assert first["source"]["text"] == "scores = self.head(self.body(x))"
    assert first["measured_seconds"] > 0
    assert {each["phase"] for each in operations} == {"forward", "backward", "update"}
    assert any(each["module"] == "head" for each in operations if each["phase"] == "backward")


def test_updates_and_memory_are_measured(eager):
    measured, program = eager.device["measured"], eager.report["program"]
    parameters = 32 * 64 + 64 + 64 * 4 + 4
    assert (program["name"], program["parameters"], program["micro_batch"]) == ("Model", parameters, 16)
    assert measured["updates"] == 4
    assert measured["update_seconds"]["value"] > 0
    assert measured["peak_bytes"] > 16 * parameters - 4096
    assert eager.device["memory"]["by_category"]["optimizer"] >= 8 * parameters


def test_the_host_waits_computes_and_updates(eager):
    entries = eager.device["host"]["entries"]
    names = {entry["name"] for entry in entries}
    assert {"next batch", "forward of Model", "backward", "Adam.step", "update 4"} <= names
    assert "update 5" not in names


def test_the_script_ends_once_everything_is_measured(eager):
    assert "the end" not in eager.run.stdout
    assert eager.run.stdout.count("aten.addmm") >= 1
