"""What a profile leaves: a page, a trace for Perfetto and one for TensorBoard."""

import json

import pytest

pytestmark = pytest.mark.slow


def test_the_page_and_the_trace_are_written(eager):
    assert "Model in train.py" in (eager.folder / "profile.html").read_text()
    trace = json.loads((eager.folder / "profile.trace.json").read_text())
    assert {"aten.addmm", "backward", "update 1"} <= {event["name"] for event in trace["traceEvents"]}


def test_torchs_own_trace_lies_where_tensorboard_looks_for_it(eager):
    (found,) = (eager.folder / "traces").glob("*.pt.trace.json")
    events = json.loads(found.read_text())["traceEvents"]
    assert any(event.get("name") == "aten::addmm" for event in events)
    assert any("Optimizer.step" in event.get("name", "") for event in events)
