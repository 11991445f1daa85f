"""Reports as JSON files: what is written is read again, and what is wrong is named."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from pilotage.errors import ReportError
from pilotage.prediction.document import Range, Report, Timeline, parse_report, read_report, report_text, write_report

EXAMPLE = json.loads((Path(__file__).parents[1] / "small.json").read_text())
"""A small report in which every part of the document occurs."""


def small() -> dict[str, Any]:
    """A copy of the example that a test may change."""
    return copy.deepcopy(EXAMPLE)


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    """The small report with another value at one place."""
    document = small()
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


def problem_of(document: Any) -> str:
    with pytest.raises(ReportError) as raised:
        parse_report(json.dumps(document))
    return str(raised.value)


def test_a_report_that_was_written_is_read_as_it_was(tmp_path):
    report = parse_report(json.dumps(small()))
    write_report(report, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == report
    assert json.loads((tmp_path / "report.json").read_text()) == small()


def test_every_field_is_read_into_its_value():
    device = parse_report(json.dumps(small())).devices[0]
    assert device.peak_bytes == Range(low=1100.0, value=1200.0, high=1300.0)
    assert device.memory.timeline == Timeline(operation=(0, 1), bytes={"weights": (800, 800), "activations": (400, 0)})
    assert device.operations[0].source.text == "return self.first(x)"
    assert device.operations[1].measured_seconds is None
    assert device.pipeline.entries[1].micro_batch is None
    assert device.measured.updates == 5


def test_fields_with_defaults_may_be_missing():
    document = small()
    document["devices"] = [{"name": "cpu", "title": "This processor"}]
    document["program"] = {"name": "model", "mode": "inference"}
    (device,) = parse_report(json.dumps(document)).devices
    assert device.operations == ()
    assert device.memory is None


def test_a_whole_number_is_accepted_where_a_fraction_may_stand():
    report = parse_report(json.dumps(changed(["devices", 0, "time", "unit"], "tokens/s")))
    assert isinstance(report.devices[0].peak_bytes.low, float)
    again = parse_report(json.dumps(changed(["devices", 0, "measured", "throughput"], 14)))
    assert again.devices[0].measured.throughput == 14.0


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["kind"], "guess", "'guess' as kind. Expected 'prediction' or 'profile'"),
        (["title"], 3, "3 as title. Expected text"),
        (["program", "replicas"], 0, "0 as program.replicas. Expected a whole number of at least 1"),
        (["program", "parameters"], 2.5, "2.5 as program.parameters. Expected a whole number"),
        (["program", "parameters"], True, "True as program.parameters. Expected a whole number"),
        (["devices"], {}, "{} as devices. Expected a list"),
        (["devices", 0, "fits"], "yes", "'yes' as devices[0].fits. Expected true or false"),
        (["devices", 0, "memory", "by_category"], [], "[] as devices[0].memory.by_category. Expected a table"),
        (["devices", 0, "memory", "by_category", "weights"], -1, "-1 as devices[0].memory.by_category.weights"),
        (["devices", 0, "operations", 1, "seconds"], "fast", "devices[0].operations[1].seconds. Expected a finite"),
        (["devices", 0, "operations", 1, "seconds"], float("nan"), "nan as devices[0].operations[1].seconds"),
        (["devices", 0, "operations", 1, "seconds"], 10**400, "as devices[0].operations[1].seconds. Expected a finite"),
        (["devices", 0, "operations", 0, "source"], "train.py", "a table with the fields file, line, text"),
        (["devices", 0, "memry"], {}, "unknown field devices[0].memry. Allowed are: name, title"),
    ],
)
def test_a_wrong_value_is_named_with_what_was_given_and_what_is_allowed(path, value, said):
    assert said in problem_of(changed(path, value))


def test_a_missing_field_is_named():
    document = small()
    del document["devices"][0]["memory"]["by_category"]
    assert problem_of(document) == "The report lacks the field devices[0].memory.by_category."


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["devices", 0, "peak_bytes", "low"], 1250, "at devices[0].peak_bytes: a range has low 1250.0"),
        (["devices", 0, "memory", "timeline", "bytes", "weights"], [1], "2 operations but 1 values of 'weights'"),
        (["devices", 0, "memory", "timeline", "operation"], [1, 1], "do not increase"),
        (["devices", 0, "memory", "timeline", "operation"], [0, 7], "timeline is at operation 7"),
        (["devices", 0, "memory", "peak", "operation"], 2, "the peak is at operation 2, but there are only 2"),
        (["devices", 0, "memory", "tiles", "bytes"], [1], "1 values of bytes, but there are 2 tiles"),
        (["devices", 0, "operations", 1, "index"], 5, "operation 1 has index 5"),
        (["devices", 0, "pipeline", "bubble"], 1.5, "the bubble of a pipeline is 1.5"),
        (["devices", 0, "pipeline", "entries", 0, "stage"], 2, "has 2 stages, but an entry is of stage 2"),
        (["devices", 0, "host", "entries", 0, "start"], 9, "an entry starts at 9.0 s and ends before that"),
    ],
)
def test_an_inconsistent_report_is_refused_with_its_place(path, value, said):
    assert said in problem_of(changed(path, value))


@pytest.mark.parametrize("document", [[], {}, {"format": "pilotage report 9"}, 3])
def test_another_format_is_refused(document):
    assert "expected 'pilotage report 1'" in problem_of(document)


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "broken.json"
    with pytest.raises(ReportError, match=r"broken\.json cannot be read: No such file"):
        read_report(path)
    path.write_text("{")
    with pytest.raises(ReportError, match=r"broken\.json: This is not JSON"):
        read_report(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ReportError, match="not text in UTF-8"):
        read_report(path)
    path.write_text("[" * 100_000)
    with pytest.raises(ReportError, match="This is not JSON"):
        read_report(path)


def test_numbers_that_json_lacks_are_never_written():
    report = parse_report(json.dumps(small()))
    broken = Report(**{name: getattr(report, name) for name in report.__slots__} | {"machine": {"load": float("inf")}})
    with pytest.raises(ValueError, match="not JSON compliant"):
        report_text(broken)
