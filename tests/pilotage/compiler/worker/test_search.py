"""What the compiling process stores in the cache, and when."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from pilotage.compiler.changes import BLOCK_SIZES
from pilotage.compiler.worker import search as searching
from pilotage.compiler.worker.ways import Build

GRAPH, STORED = "graph", "graph, channels last"
COMPILED, COMPILED_STORED, QUICK = "compiled", "compiled, channels last", "compiled, quickly"


class Trial:
    """A program that only has a name."""

    def __init__(self, *_):
        pass

    def names(self, count):
        return ["loss"] * count


@pytest.fixture
def tuned(monkeypatch, tmp_path):
    """Runs the search with given timings; returns what was published, and what was compiled."""

    def run(timings, *, device="cpu", wrong=(), failing=(), must_compile=False):
        published, compiled = [], []

        def build(way, trial, job, scratch, problems, without=()):
            compiled.append((str(way), tuple(without)))
            if str(way) in failing:
                return None
            return Build(way, Trial(), ("a change",) if not without else (), (), Path(str(way)))

        def agreeing(ways, *_):
            return {way: trial for way, trial in ways.items() if (str(way), len(compiled)) not in wrong}

        monkeypatch.setattr(searching, "Trial", Trial)
        monkeypatch.setattr(searching, "results", lambda _: [torch.ones(1)])
        monkeypatch.setattr(searching, "float64_results", lambda _: (None, ""))
        monkeypatch.setattr(searching, "results_rounded_differently", lambda *_: [])
        monkeypatch.setattr(searching, "_in_channels_last", lambda *_: Trial() if STORED in timings else None)
        monkeypatch.setattr(searching, "agreeing", agreeing)
        monkeypatch.setattr(searching, "compiled", build)
        monkeypatch.setattr(searching, "measure", lambda ways, *_: {way: timings[str(way)] for way in ways})
        job = SimpleNamespace(program=None, device=torch.device(device), must_compile=must_compile)
        searching.search(
            job, tmp_path, None, lambda tuning, code: published.append((code and str(code), len(compiled)))
        )
        return published, compiled

    return run


def test_the_first_right_code_is_published_before_the_second_is_compiled(tuned):
    published, _ = tuned({GRAPH: 2.0, STORED: 1.8, COMPILED_STORED: 1.0, COMPILED: 0.5})
    assert published == [(COMPILED_STORED, 1), (COMPILED, 2)]


def test_the_first_code_stays_if_nothing_is_faster(tuned):
    published, compiled = tuned({GRAPH: 1.0, STORED: 1.2, COMPILED: 0.5, COMPILED_STORED: 0.6})
    assert published == [(COMPILED, 1)]
    assert compiled == [(COMPILED, ()), (COMPILED_STORED, ())]


def test_first_code_that_is_slower_than_the_graph_is_not_published(tuned):
    published, _ = tuned({GRAPH: 1.0, STORED: 1.2, COMPILED: 1.5, COMPILED_STORED: 0.6})
    assert published == [(COMPILED_STORED, 2)]


def test_if_nothing_is_faster_the_graph_is_published_without_code(tuned):
    assert tuned({GRAPH: 1.0, COMPILED: 1.5})[0] == [(None, 1)]


def test_a_layout_whose_graph_is_much_slower_is_not_compiled(tuned):
    _, compiled = tuned({GRAPH: 1.0, STORED: 1.4, COMPILED: 0.5})
    assert compiled == [(COMPILED, ())]


def test_code_that_cannot_be_compiled_is_left_out(tuned):
    published, _ = tuned({GRAPH: 1.0, STORED: 0.9, COMPILED: 0.5, COMPILED_STORED: 0.1}, failing=[COMPILED_STORED])
    assert published == [(COMPILED, 2)]


def test_on_a_card_the_first_code_is_compiled_without_trying_many_block_sizes(tuned):
    published, compiled = tuned({GRAPH: 1.0, QUICK: 0.5, COMPILED: 0.4}, device="cuda")
    assert compiled == [(QUICK, (BLOCK_SIZES,)), (COMPILED, ())]
    assert published == [(QUICK, 1), (COMPILED, 2)]


def test_if_the_caller_waits_for_the_best_code_nothing_is_compiled_quickly(tuned):
    _, compiled = tuned({GRAPH: 1.0, COMPILED: 0.4}, device="cuda", must_compile=True)
    assert compiled == [(COMPILED, ())]


def test_code_that_disagrees_is_compiled_again_without_our_changes(tuned):
    published, compiled = tuned({GRAPH: 1.0, COMPILED: 0.5}, wrong=[(COMPILED, 1)])
    assert compiled == [(COMPILED, ()), (COMPILED, ("a change",))]
    assert published == [(COMPILED, 2)]


def test_code_that_still_disagrees_is_not_used(tuned):
    published, _ = tuned({GRAPH: 1.0, COMPILED: 0.5}, wrong=[(COMPILED, 1), (COMPILED, 2)])
    assert published == [(None, 2)]
