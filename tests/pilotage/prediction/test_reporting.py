from pilotage.prediction.devices import device_model
from pilotage.prediction.document import parse_report, report_text
from pilotage.prediction.reporting import report_of


def test_a_report_can_be_written_and_read_again(subject_of):
    report = report_of(subject_of(), [device_model("bow")], seconds_for_changes=0.0, notes=["a note"])
    assert parse_report(report_text(report)) == report
    (device,) = report.devices
    assert "a note" in device.assumptions
    assert report.program.parameters == 4 * (64 * 64 + 64)
    assert (report.program.mode, report.program.micro_batch, report.program.precision) == ("training", 8, "float32")
