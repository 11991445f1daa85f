"""The report of a profile from what was measured."""

import dataclasses
import json
import time
from pathlib import Path

import pytest
import torch

from pilotage.prediction.document import parse_report, report_text
from pilotage.profiling.assembly import report_of, source_of
from pilotage.profiling.device_memory import Holding
from pilotage.profiling.observation import Observed, PeakSeen, Sighting, Table
from pilotage.profiling.request import Request
from pilotage.profiling.subject import Facts, Stage, Subject
from pilotage.profiling.watch import ScriptWatch

REQUEST = Request(script=Path("train.py"), arguments=("--fast",), warmup=1, updates=4, looks=2)


def subject_of(watch: ScriptWatch) -> Subject:
    """A subject that was timed and looked at."""
    facts = Facts(name="Model", trains=True, device=torch.device("cpu"), label="cpu", samples=8, micro_batch=8)
    subject = Subject(watch.request, watch.timeline, facts)
    moment = time.perf_counter()
    for seconds in (9.0, 0.4, 0.1, 0.2, 0.3, 5.0, 5.0):
        subject.after(moment, moment + seconds)
        moment += seconds
    forward = Observed(name="aten.addmm", phase="forward", module="layer", line=f"{__file__}:3", flops=100, bytes=40)
    backward = Observed(name="aten.mm", phase="backward", module="layer")
    table = Table([Sighting(forward, [0.2, 0.1, 0.3], 50, {"weights": 40, "activations": 10}, 1)])
    table.sightings.append(Sighting(backward, [0.1, 0.1], 45, {"weights": 40, "temporaries": 5}, 2))
    live = [
        Holding("layer.weight", 40, "weights", "layer"),
        Holding("addmm", 10, "activations", "layer", f"{__file__}:3"),
    ]
    table.peak = PeakSeen(0, 50, {"weights": 40, "activations": 10}, live)
    subject.table = table
    return subject


@pytest.fixture
def report():
    watch = ScriptWatch(REQUEST)
    return report_of(REQUEST, subject_of(watch), watch)


def test_a_report_of_a_profile_can_be_written_and_read(report):
    assert parse_report(report_text(report)) == report
    assert json.loads(report_text(report))["command"] == ["pilotage", "profile", "train.py", "--", "--fast"]


def test_whole_updates_are_those_after_the_warm_up(report):
    measured = report.devices[0].measured
    assert measured.updates == 4
    assert measured.update_seconds.value == pytest.approx(0.3)
    assert measured.update_seconds.low == pytest.approx(0.1)
    assert measured.update_seconds.high == pytest.approx(0.4)
    assert measured.unit == "samples/s"


def test_operations_have_the_median_of_their_times(report):
    first, second = report.devices[0].operations
    assert first.measured_seconds == pytest.approx(0.2)
    assert first.measured_bytes == 50
    assert (second.times, second.phase) == (2, "backward")
    assert (first.source.line, first.source.text) == (3, "import dataclasses")


def test_the_peak_is_listed_by_tensor_and_by_module(report):
    memory = report.devices[0].memory
    assert report.devices[0].measured.peak_bytes == 50
    assert [each.name for each in memory.peak.live] == ["layer.weight", "addmm"]
    assert memory.by_layer[0].bytes == 50
    assert memory.timeline.operation == (0, 1)
    assert memory.timeline.bytes["activations"] == (10, 0)


def test_the_most_expensive_things_and_phases_are_named(report):
    device = report.devices[0]
    assert device.expensive[0].what == "aten.addmm in layer"
    assert "50 %" in device.expensive[0].why
    assert any("forward 50 %" in text for text in device.insights)


def test_a_long_timeline_is_thinned_but_keeps_the_peak():
    watch = ScriptWatch(REQUEST)
    subject = subject_of(watch)
    sighting = subject.table.sightings[1]
    subject.table.sightings = [dataclasses.replace(sighting) for _ in range(9001)]
    subject.table.peak = dataclasses.replace(subject.table.peak, operation=4321)
    timeline = report_of(REQUEST, subject, watch).devices[0].memory.timeline
    assert len(timeline.operation) <= 2001
    assert 4321 in timeline.operation


def test_a_line_without_a_file_has_no_source(tmp_path, monkeypatch):
    assert source_of(None) is None
    assert source_of("somewhere") is None
    (tmp_path / "model.py").write_text("first\n    second\n")
    monkeypatch.chdir(tmp_path)
    source = source_of(f"{tmp_path}/model.py:2")
    assert (source.file, source.line, source.text) == ("model.py", 2, "second")


def test_a_subject_goes_through_its_stages_in_order():
    watch = ScriptWatch(Request(script=Path("train.py"), warmup=1, updates=2, looks=1, tensorboard=Path("traces")))
    facts = Facts(name="Model", trains=True, device=torch.device("cpu"), label="cpu")
    subject, seen = Subject(watch.request, watch.timeline, facts), []
    while not subject.is_done:
        seen.append(subject.stage)
        subject.after(0.0, 1.0)
    assert seen == [Stage.WARMING, Stage.TIMING, Stage.TIMING, Stage.LOOKING, Stage.TRACING]
