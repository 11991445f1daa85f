from dataclasses import replace

from pilotage.prediction.devices import device_model
from pilotage.prediction.document import Change
from pilotage.prediction.reporting import report_of
from pilotage.prediction.screen import NOT_PRICED, bytes_text, lines_of, seconds_text


def test_a_report_fits_on_a_screen_and_says_what_counts(subject_of):
    report = report_of(subject_of(), [device_model("bow"), device_model("h200")], seconds_for_changes=0.0)
    lines = [text for text, _ in lines_of(report)]
    assert len(lines) < 45
    text = "\n".join(lines)
    for part in ("Graphcore Bow IPU", "NVIDIA H200", "fits: ", "weights", "samples/s", "tiles", "expensive"):
        assert part in text


def test_changes_stand_in_the_order_of_what_they_gain(subject_of):
    report = report_of(subject_of(), [device_model("bow")], seconds_for_changes=0.0)
    base = report.devices[0].time.throughput.value
    changes = (
        Change(option="slower", how="x", peak_bytes=1, throughput=base / 2, fits=True),
        Change(option="too large", how="x", peak_bytes=1, throughput=base * 9, fits=False),
        Change(option="faster", how="x", peak_bytes=1, throughput=base * 2, fits=True),
    )
    report = replace(report, devices=(replace(report.devices[0], changes=changes),))
    lines = [text.split()[0] for text, _ in lines_of(report)[-3:]]
    assert lines == ["faster", "slower", "too"]


def test_changes_that_were_left_out_are_named(subject_of):
    report = report_of(subject_of(), [device_model("bow")], seconds_for_changes=1e-9)
    device = replace(report.devices[0], changes=(Change(option="other", how="x", peak_bytes=1, fits=True),))
    text, style = lines_of(replace(report, devices=(device,)))[-1]
    assert "micro-batch 4" in text
    assert text.strip().startswith(NOT_PRICED)
    assert style == "faint"


def test_numbers_are_for_people():
    assert [bytes_text(each) for each in (12, 1536, 2.5 * 2**20, 940_572_672, 1010 * 2**20, 1.5 * 2**40)] == [
        "12 B", "1.5 KiB", "2.5 MiB", "897 MiB", "1010 MiB", "1.5 TiB",
    ]  # fmt: skip
    assert [seconds_text(each) for each in (2.0, 0.0123, 4.2e-6)] == ["2 s", "12.3 ms", "4.2 µs"]
