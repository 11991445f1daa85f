"""Machine code and tiers in files."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from pilotage.options.choices import Tier
from poptorch import Options

pytestmark = pytest.mark.slow


def test_machine_code_in_a_file_is_used_only_if_trusted(tmp_path, caplog):
    options = Options().runOn("cpu", tier="compiled").enableExecutableCaching(tmp_path / "own")
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    executor = poptorch.inferenceModel(model, options)
    inputs = torch.randn(3, 4)
    expected = executor(inputs)
    executor.save(tmp_path / "model.poptorch")

    def elsewhere(options):
        options.enableExecutableCaching(tmp_path / "elsewhere")
        options.runOn(tier="graph")

    def trusting(options):
        options.enableExecutableCaching(tmp_path / "trusting")

    with caplog.at_level("WARNING"):
        careful = poptorch.load(tmp_path / "model.poptorch", elsewhere)
    assert any("trusted=True" in record.getMessage() for record in caplog.records)
    assert careful.engine.session.tier is Tier.GRAPH
    assert torch.equal(careful(inputs), model(inputs))

    trusted = poptorch.load(tmp_path / "model.poptorch", trusting, trusted=True)
    # No compiler was needed: the code from the file is now in the other cache.
    assert trusted.engine.session.tier is Tier.COMPILED
    assert torch.equal(trusted(inputs), expected)
    (entry,) = [path for path in (tmp_path / "trusting").iterdir() if path.is_dir()]
    assert {path.name for path in entry.iterdir()} == {"manifest.json", "infer"}


def test_a_tier_pinned_by_the_environment_is_saved(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTAGE_TIER", "graph")
    executor = poptorch.inferenceModel(nn.Linear(4, 2), Options().runOn("cpu"))
    executor(torch.randn(3, 4))
    executor.save(tmp_path / "model.poptorch")
    monkeypatch.delenv("PILOTAGE_TIER")
    assert poptorch.load(tmp_path / "model.poptorch").engine.session.choice.rises is False
