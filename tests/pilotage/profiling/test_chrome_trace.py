"""Traces that Perfetto and Chrome open."""

import json
from pathlib import Path

from pilotage.prediction.document import read_report
from pilotage.profiling.chrome_trace import trace_of, write_trace

REPORT = read_report(Path(__file__).parents[1] / "prediction/small.json")


def test_every_event_has_what_its_kind_needs(tmp_path):
    write_trace(REPORT, tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace == trace_of(REPORT)
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int)
        match event["ph"]:
            case "X":
                assert min(event["dur"], event["ts"]) >= 0
                assert isinstance(event["tid"], int)
            case "C":
                assert all(isinstance(value, int) for value in event["args"].values())
            case "M":
                assert event["name"] in ("process_name", "thread_name")


def test_operations_lie_end_to_end_with_their_details():
    slices = [event for event in trace_of(REPORT)["traceEvents"] if event["ph"] == "X" and event["pid"] == 2]
    assert [event["name"] for event in slices] == ["aten.addmm", "aten.add_"]
    first, second = slices
    assert first["dur"] == 2 * 0.3 * 1e6
    assert second["ts"] == first["ts"] + first["dur"]
    assert first["args"]["source"] == "train.py:9 return self.first(x)"


def test_the_host_and_the_prediction_have_their_own_rows():
    events = trace_of(REPORT)["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"host", "main thread", "predicted update"} <= names
    predicted = [event["name"] for event in events if event["ph"] == "X" and event["pid"] == 3]
    assert predicted == ["compute", "exchange"]
