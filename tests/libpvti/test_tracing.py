from __future__ import annotations

import json

import pytest

import libpvti
from poptorch._observation import trace_file


@pytest.fixture
def events(tmp_path, monkeypatch):
    """Switches tracing on; returns the recorded events."""
    monkeypatch.setenv("PVTI_OPTIONS", json.dumps({"enable": "true", "directory": str(tmp_path), "fileName": "trace"}))

    def recorded():
        (file,) = tmp_path.glob("trace_*.json")
        return json.loads(file.read_text().rstrip().rstrip(",") + "]")

    yield recorded
    trace_file._opened.cache_clear()


def test_tracepoints_are_recorded_by_block_by_pair_and_by_decorator(events):
    channel = libpvti.createTraceChannel("input")
    with libpvti.Tracepoint(channel, "block"):
        libpvti.Tracepoint.begin(channel, "pair")
        libpvti.Tracepoint.end(channel, "pair")
    libpvti.Tracepoint.event(channel, "moment")

    @libpvti.instrument_fn(channel)
    def load(count):
        return count + 1

    assert load(1) == 2
    names = [event["name"] for event in events()]
    assert names[:3] == ["pair", "block", "moment"]
    assert names[3].endswith("load")
    assert {event["cat"] for event in events()} == {"input"}


def test_methods_of_an_object_are_traced(events):
    class Loader:
        def fetch(self):
            return 3

    loader = libpvti.instrument(Loader(), ["fetch"], libpvti.createTraceChannel("loading"))
    assert loader.fetch() == 3
    assert [event["name"] for event in events()] == ["fetch"]


def test_a_graph_records_values_over_time(events):
    series = libpvti.Graph("throughput", "images/s").addSeries("training")
    series.add(12)
    series.add(14.5)
    assert [(event["name"], event["ph"], event["args"]) for event in events()] == [
        ("throughput [images/s]", "C", {"training": 12.0}),
        ("throughput [images/s]", "C", {"training": 14.5}),
    ]


def test_without_the_variable_nothing_is_recorded(monkeypatch):
    monkeypatch.delenv("PVTI_OPTIONS", raising=False)
    assert not libpvti.isEnabled()
    with libpvti.Tracepoint(libpvti.createTraceChannel("quiet"), "nothing"):
        libpvti.Graph("quiet").addSeries("line").add(1)


def test_mistakes_are_named(monkeypatch):
    channel = libpvti.createTraceChannel("input")
    with pytest.raises(ValueError, match=r"No tracepoint 'late' of the channel 'input' is open"):
        libpvti.Tracepoint.end(channel, "late")
    with pytest.raises(TypeError, match="createTraceChannel"):
        libpvti.Tracepoint("input", "label")
