from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("tools.model_table")


@pytest.fixture
def results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.twelve.results")


def model(results, peers=(10.0, 20.0), ours=(15.0, 24.0), eager=8.0, memory=1.0, left_out=()):
    modes, iterations = ("default", "max-autotune"), (1, 10)
    ways = {results.EAGER: results.Way([eager], 100)}
    ways |= {f"torch.compile, {mode}": results.Way([rate], 100) for mode, rate in zip(modes, peers, strict=True)}
    ways |= {
        f"Pilotage, deviceIterations {count}": results.Way([rate], int(100 * memory))
        for count, rate in zip(iterations, ours, strict=True)
    }
    return results.Model(ways, list(left_out))


def test_the_best_ways_are_compared(tool, results):
    text = tool.table([{"a": model(results, memory=1.04)}])
    assert "| a | 1 | 8.0 | 20.0 (max-autotune) | 24.0 | 1.20 | 1.04 |" in text


def test_several_starts_make_ranges_and_the_median_counts(tool, results):
    starts = [{"a": model(results, ours=(15.0, rate))} for rate in (22.0, 24.0, 30.0)]
    text = tool.table(starts)
    assert "| a | 3 | 8.0 | 20.0 (max-autotune) | 22.0 to 30.0 | 1.10 to 1.50 | 1.00 |" in text
    assert "1 models: geometric mean 1.20, lowest 1.20 (a); most peak memory 1.00 (a)." in text


def test_the_summary_has_the_lowest_and_the_mean_of_large_models(tool, results):
    small, large = model(results, ours=(20.0, 40.0), eager=60.0), model(results, ours=(10.0, 10.0), memory=1.5)
    text = tool.table([{"a": small, "b": large}])
    assert "2 models: geometric mean 1.00, lowest 0.50 (b); most peak memory 1.50 (b)." in text
    assert "1 models whose eager step takes more than 20 ms: geometric mean 0.50." in text
    assert "20 ms" not in tool.table([{"a": small}])


def test_what_is_left_out_is_named_and_not_compared(tool, results):
    lacking = results.Model({results.EAGER: results.Way([1.0])}, ["torch.compile, max-autotune"])
    text = tool.table([{"a": lacking}])
    assert "No model was compared." in text
    assert "Left out in a start: a: torch.compile, max-autotune." in text


def test_results_are_written_and_read(results, tmp_path):
    models = {"a": model(results, left_out=["torch.compile, default"])}
    assert results.models_from_data(results.models_to_data(models)) == models
    assert results.details_of(tmp_path / "missing.json") == {}
