"""Traces of single steps."""

from __future__ import annotations

import json

import pytest
import torch

from cosmictagger.records.trace import traced


def test_a_trace_holds_the_operations_of_its_step(tmp_path):
    with traced(tmp_path / "traces", 7, wanted=True):
        torch.ones(2, 2) @ torch.ones(2, 2)
    events = json.loads((tmp_path / "traces" / "timeline_7.json").read_text())["traceEvents"]
    assert "aten::mm" in {event.get("name") for event in events}


def test_a_step_that_is_not_wanted_leaves_no_file(tmp_path):
    with traced(tmp_path / "traces", 7, wanted=False):
        torch.ones(2) + 1
    assert not (tmp_path / "traces").exists()


def test_an_error_of_the_step_is_raised_and_leaves_no_trace(tmp_path):
    with pytest.raises(ValueError, match="broken"), traced(tmp_path, 1, wanted=True):
        raise ValueError("broken")
    assert list(tmp_path.iterdir()) == []
