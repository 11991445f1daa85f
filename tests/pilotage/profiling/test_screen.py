"""A profile on one screen."""

from dataclasses import replace
from pathlib import Path

from pilotage.prediction.document import read_report
from pilotage.profiling.screen import lines_of, size_text, time_text

REPORT = read_report(Path(__file__).parents[1] / "prediction/small.json")


def test_the_screen_shows_measurements_next_to_predictions():
    text = "\n".join(line for line, _ in lines_of(REPORT))
    assert "Two layers: training on Graphcore Bow IPU" in text
    assert "1.1 s (median of 5, 900 ms to 1.2 s), predicted 1 s" in text
    assert "14.5 samples/s, predicted 16" in text
    assert "peak memory 1.2 KiB of 1000 B, predicted 1.2 KiB" in text
    assert "weights 800 B, activations 400 B" in text
    assert "aten.addmm" in text
    assert "It does not fit." in text


def test_the_work_of_the_script_between_updates_is_shown_apart():
    (device,) = REPORT.devices
    measured = replace(device.measured, loop_seconds=1.375)
    text = "\n".join(line for line, _ in lines_of(replace(REPORT, devices=(replace(device, measured=measured),))))
    assert "loop        1.38 s an update, 275 ms (20%) of it the script's own work: loading, logging" in text
    assert "14.5 samples/s of the loop, 18.12 counting only updates, predicted 16" in text


def test_no_line_is_wider_than_the_terminal():
    assert max(len(line) for line, _ in lines_of(REPORT, 60)) <= 60


def test_numbers_have_units():
    assert [time_text(each) for each in (2.5e-6, 0.0125, 3.0)] == ["2.5 µs", "12.5 ms", "3 s"]
    assert [size_text(each) for each in (12, 1536, 3 * 2**30)] == ["12 B", "1.5 KiB", "3.0 GiB"]
