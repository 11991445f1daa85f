"""Tracepoints in a file."""

from __future__ import annotations

import json
import os

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch
from poptorch._observation.trace_file import trace_file
from poptorch.profiling import Channel


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Asks for tracepoints, and reads what was written; the process has its own file for each test."""

    def ask(**options):
        monkeypatch.setenv("PVTI_OPTIONS", json.dumps({"enable": "true", "directory": str(tmp_path), **options}))

    return ask


def events(path):
    # Like other readers of the format, accept a missing bracket at the end.
    return json.loads(path.read_text().rstrip().rstrip(",") + "]")


def test_without_the_variable_nothing_is_written(monkeypatch):
    monkeypatch.delenv("PVTI_OPTIONS", raising=False)
    assert trace_file() is None


def test_tracing_can_be_disabled_by_the_variable(asked, tmp_path):
    asked(enable="false")
    assert trace_file() is None
    assert not list(tmp_path.iterdir())


def test_a_variable_that_is_not_json_is_refused(monkeypatch):
    monkeypatch.setenv("PVTI_OPTIONS", "yes")
    with pytest.raises(ValueError, match="PVTI_OPTIONS is not JSON"):
        trace_file()


def test_a_tracepoint_is_in_the_file_once_it_has_ended_even_by_an_error(asked, tmp_path):
    asked(fileName="mine.pvti")
    with pytest.raises(KeyError), Channel("work").tracepoint("failing"):
        raise KeyError
    (event,) = events(tmp_path / f"mine_{os.getpid()}.json")
    assert (event["name"], event["cat"], event["ph"], event["pid"]) == ("failing", "work", "X", os.getpid())
    assert event["dur"] > 0


def test_compiling_loading_and_running_are_in_the_file(asked, tmp_path):
    asked()
    loader = poptorch.DataLoader(poptorch.Options(), TensorDataset(torch.ones(6, 2)), batch_size=2)
    model = poptorch.inferenceModel(nn.Linear(2, 3))
    for (x,) in loader:
        model(x)
    found = [(event["cat"], event["name"]) for event in events(tmp_path / f"poptorch_{os.getpid()}.json")]
    assert found.count(("dataset", "__getitem__")) == 6
    assert found.count(("poptorch.inferenceModel", "modelExecution")) == 3
    assert found.count(("poptorch.DataLoader", "next")) == 4
    assert found.count(("poptorch.inferenceModel", "graphPreprocessing")) == 1
    assert found.count(("poptorch.inferenceModel", "modelCompilation")) == 1


@pytest.mark.slow
def test_each_loader_process_writes_its_own_file(asked, tmp_path):
    asked()
    loader = poptorch.DataLoader(poptorch.Options(), TensorDataset(torch.ones(6, 2)), batch_size=2, num_workers=2)
    assert len(list(loader)) == 3
    del loader
    files = [file for file in tmp_path.iterdir() if file.name != f"poptorch_{os.getpid()}.json"]
    assert sum(event["name"] == "__getitem__" for file in files for event in events(file)) == 6
    assert len(files) == 2
