"""Ways of running a program that agree with its graph."""

from __future__ import annotations

import pytest
import torch

from pilotage.compiler.accuracy import agreement
from pilotage.compiler.accuracy.tolerance import Tolerance


@pytest.mark.parametrize(("shown_later", "kept"), [(0.5, ["graph", "compiled"]), (0.0, ["graph"])])
def test_more_noise_is_tried_before_a_candidate_is_refused(monkeypatch, shown_later, kept):
    right = torch.arange(100.0)

    class Result:
        def __init__(self, values):
            self.values = values

        def fresh_copy(self):
            return self

    ways = {"graph": Result(right), "compiled": Result(right + 40)}
    asked = []

    def rounded_differently(job, seeds, amplitude=1.0):
        asked.extend(seeds)
        return [[right * (1 + shown_later)]]

    monkeypatch.setattr(agreement, "results", lambda trial: [trial.values])
    monkeypatch.setattr(agreement, "results_rounded_differently", rounded_differently)
    problems = []
    agreeing = agreement.agreeing(ways, Tolerance([right], names=["weight"]), None, problems)
    assert list(agreeing) == kept
    assert asked
    assert len(problems) == 2 - len(kept)
    assert all("does not agree with the graph: weight, (100,) of float32, is off by" in each for each in problems)
