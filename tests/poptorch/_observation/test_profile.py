"""Profiles requested by `enableProfiling` and by the environment."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import poptorch
from poptorch._observation.profile import profile_of
from poptorch.options import Options


@pytest.fixture(autouse=True)
def _no_engine_options_in_the_environment(monkeypatch):
    monkeypatch.delenv("POPLAR_ENGINE_OPTIONS", raising=False)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "directory"), [(None, "inference"), ("mnist", "mnist")])
def test_the_first_run_of_a_profiled_model_is_written_below_its_name(tmp_path, name, directory):
    options = Options().enableProfiling(tmp_path / "reports")
    if name is not None:
        options.modelName(name)
    model = poptorch.inferenceModel(nn.Linear(2, 3), options)
    x = torch.ones(1, 2)
    model.compile(x)
    assert not list(tmp_path.iterdir())
    model(x)
    written = tmp_path / "reports" / directory / "profile.pop"
    names = {event["name"] for event in json.loads(written.read_text())["traceEvents"]}
    assert {"poptorch.inferenceModel: modelExecution", "aten::addmm"} <= names
    before = written.stat().st_mtime_ns
    model(x)
    assert written.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_failed_run_is_not_profiled(tmp_path):
    profile = profile_of(Options().enableProfiling(tmp_path), training=False)
    with pytest.raises(ZeroDivisionError), profile.following():
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())
    with profile.following():
        torch.ones(1)
    assert (tmp_path / "inference" / "profile.pop").exists()


def test_nothing_is_profiled_by_default(tmp_path, monkeypatch):
    assert profile_of(Options(), training=True) is None
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps({"autoReport.directory": str(tmp_path)}))
    assert profile_of(Options(), training=True) is None


def test_profiling_can_be_enabled_by_the_environment(tmp_path, monkeypatch):
    asked = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(asked))
    profile = profile_of(Options(), training=True)
    assert profile is not None
    assert profile._file == tmp_path / "training" / "profile.pop"
