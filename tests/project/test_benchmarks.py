"""The benchmarks can be started; their results are not tested."""

from __future__ import annotations

import importlib
import math
import re
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def from_the_root(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


def benchmarks():
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("benchmarks.__main__").BENCHMARKS
    finally:
        sys.path.remove(str(ROOT))


@pytest.mark.parametrize("name", benchmarks())
def test_each_benchmark_has_a_measure_function(name):
    assert callable(importlib.import_module(f"benchmarks.{name}").measure)


def test_all_benchmarks_are_listed():
    helpers = {"__init__", "__main__", "baselines", "comparison", "regression", "report", "separate_processes"}
    helpers |= {"watched_classifier"}
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - helpers
    assert modules == set(benchmarks())


def twelve():
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("benchmarks.twelve").SUBJECTS
    finally:
        sys.path.remove(str(ROOT))


def test_there_are_twelve_models():
    assert len(twelve()) == 12


@pytest.mark.slow
@pytest.mark.parametrize("name", twelve())
def test_each_of_the_twelve_models_trains_in_tiny_size(name):
    subject = twelve()[name]
    if subject.package is not None:
        pytest.importorskip(subject.package)
    torch.manual_seed(0)
    model, batch = subject.make(**subject.tiny)
    optimizer = subject.optimizer(model.parameters())
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert all(map(math.isfinite, losses))
    assert losses[0] != losses[1]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_benchmark_of_models_prints_rates_memory_and_a_verdict(monkeypatch, tmp_path):
    models = importlib.import_module("benchmarks.models")
    name = "DLRM, 26 tables of 100,000 x 64, batch 2048"
    monkeypatch.setenv("BENCHMARK_TINY", "1")
    monkeypatch.setenv("PILOTAGE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(models, "SUBJECTS", {name: models.SUBJECTS[name]})
    monkeypatch.setattr(models, "_BASELINES", ("eager PyTorch", "torch.compile, default"))
    table = models.measure("cpu", 1)
    text = str(table)
    assert f"{name}: Pilotage, deviceIterations 1 " in text
    assert f"{name}: torch.compile, default, peak" in text
    assert "times its peak memory" in table.verdict
    assert "Geometric mean" in table.verdict
    assert list(table.details["models"]) == [name]


COSMIC = {
    "cosmic_reading": ({"EVENTS": 4, "DOWNSAMPLE": 4}, "times as fast as with larcv"),
    "cosmic_step": ({"SIZE": (64, 128)}, "times as fast as plain eager"),
    "cosmic_modes": ({}, "IPU mode trains at"),
    "cosmic_card": ({}, "This needs an NVIDIA card"),
    "cosmic_precision": ({}, "This needs an NVIDIA card"),
}
"""Benchmarks on the pages of CosmicTagger: sizes for a test, and what they say on a processor."""


def test_the_benchmarks_that_pages_name_exist():
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    named = {page: set(re.findall(r"--only ([a-z_]+)", page.read_text())) for page in pages}
    assert not [(page.name, names) for page, names in named.items() if names - set(benchmarks())]
    cosmic = set().union(*(names for page, names in named.items() if page.name.startswith("cosmictagger")))
    assert cosmic == {*COSMIC, "cosmic_frameworks"}


@pytest.mark.long
@pytest.mark.parametrize("name", COSMIC)
def test_the_benchmarks_of_cosmictagger_run_on_a_processor(name, monkeypatch, tmp_path):
    module = importlib.import_module(f"benchmarks.{name}")
    monkeypatch.chdir(tmp_path)
    sizes, said = COSMIC[name]
    for constant, value in sizes.items():
        monkeypatch.setattr(module, constant, value)
    assert said in str(module.measure("cpu", 1))


@pytest.mark.slow
def test_how_far_float32_strays_is_measured_without_tensorflow_too(monkeypatch, tmp_path):
    frameworks = importlib.import_module("benchmarks.cosmic_frameworks")
    monkeypatch.chdir(tmp_path)
    sizes = {"STEPS": 2, "EVENTS": 4, "DEPTH": 1, "DOWNSAMPLE": 6, "DRAWS": 2, "CASES": (("a21", "focal"),)}
    for name, value in sizes.items():
        monkeypatch.setattr(frameworks, name, value)
    monkeypatch.setattr(frameworks, "find_spec", lambda name: None)
    table = frameworks.measure("cpu", 1)
    far = {row.name.removeprefix("a21, focal: "): row.value for row in table.rows}
    assert far["torch, float32"] > far["torch, float64, from weights changed in float64's last digit"]
    draws = [
        far[f"torch, float64, from weights changed in float32's last digit, {which} of 2 draws"]
        for which in ("least", "largest")
    ]
    assert 0.0 < draws[0] <= draws[1]
    assert "torch, float32, two threads, from one thread" in far
    assert not any("TensorFlow" in name for name in far)
    assert "TensorFlow was not compared" in table.verdict
