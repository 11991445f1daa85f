"""A prediction beside a profile."""

from dataclasses import replace
from pathlib import Path

import pytest

from pilotage.prediction.document import read_report
from pilotage.profiling.beside import model_for, with_predicted_device, with_prediction
from pilotage.profiling.request import Request

REPORT = read_report(Path(__file__).parents[1] / "prediction/small.json")
(DEVICE,) = REPORT.devices


def test_a_model_is_found_by_the_type_or_a_word_of_the_title():
    assert model_for(replace(DEVICE, name="cuda", title="NVIDIA H200"), ["bow", "h200"]) == "h200"
    assert model_for(replace(DEVICE, name="cpu", title="CPU, 2 threads"), ["bow", "cpu"]) == "cpu"
    assert model_for(replace(DEVICE, name="cuda", title="NVIDIA L4"), ["bow", "cpu"]) is None


def test_each_operation_gets_the_time_of_its_own_prediction():
    first, second = DEVICE.operations
    measured = replace(DEVICE, peak_bytes=None, time=None, operations=tuple(
        replace(each, index=place, seconds=None) for place, each in enumerate((first, first, second))
    ))  # fmt: skip
    predicted = replace(DEVICE, operations=tuple(
        replace(each, index=place, seconds=seconds)
        for place, (each, seconds) in enumerate(((first, 1.0), (replace(first, output="f32[9]"), 2.0), (first, 3.0)))
    ))  # fmt: skip
    together = with_predicted_device(measured, predicted)
    assert [each.seconds for each in together.operations] == [1.0, 3.0, None]
    assert together.time == DEVICE.time
    assert together.peak_bytes == DEVICE.peak_bytes
    assert together.measured == measured.measured


@pytest.mark.slow
def test_a_script_that_cannot_be_predicted_keeps_its_profile_and_says_why(tmp_path):
    unknown = replace(REPORT, devices=(replace(DEVICE, name="cuda", title="NVIDIA L4"),))
    request = Request(script=tmp_path / "missing.py")
    assert "no model of NVIDIA L4" in with_prediction(unknown, request).devices[0].assumptions[-1]
    failed = with_prediction(REPORT, request).devices[0]
    assert "Nothing was predicted" in failed.assumptions[-1]
    assert "missing.py" in failed.assumptions[-1]
    assert failed.operations == DEVICE.operations
