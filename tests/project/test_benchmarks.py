"""The benchmarks can be started; their results are not tested."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

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
