"""Programs that environment variables export or log."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import poptorch
from pilotage.storage.archive import read_archive


@pytest.mark.parametrize("as_binary", [False, True])
def test_a_compiled_program_is_written_to_the_given_file(tmp_path, monkeypatch, as_binary):
    file = tmp_path / "new" / "program"
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_FILE", str(file))
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_FILE_AS_BINARY", str(int(as_binary)))
    poptorch.inferenceModel(nn.Linear(2, 3)).compile(torch.ones(1, 2))
    content = read_archive(file)[0] if as_binary else json.loads(file.read_text())
    targets = [node["target"] for node in content["computations"]["infer"]["nodes"]]
    assert any(target.startswith("aten::addmm") for target in targets)


def test_in_the_eager_tier_a_warning_says_there_is_no_program(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("POPTORCH_EXPORT_PROTO_FILE", str(tmp_path / "program"))
    poptorch.inferenceModel(nn.Linear(2, 3), poptorch.Options().runOn(tier="eager")).compile(torch.ones(1, 2))
    assert "no program to write" in caplog.text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("longest", "expected"), [(None, "return"), ("20", "more characters"), ("100000", "return")])
def test_the_log_shows_the_graph_up_to_a_length(monkeypatch, caplog, longest, expected):
    if longest is not None:
        monkeypatch.setenv("POPTORCH_MAX_GRAPH_LEN", longest)
    with caplog.at_level(1, logger="poptorch::backend"):
        poptorch.inferenceModel(nn.Linear(2, 3)).compile(torch.ones(1, 2))
    (text,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("infer:")]
    assert expected in text
    assert longest != "20" or len(text) < 60


def test_a_length_that_is_not_a_number_is_refused(monkeypatch, caplog):
    monkeypatch.setenv("POPTORCH_MAX_GRAPH_LEN", "long")
    refusal = pytest.raises(ValueError, match="POPTORCH_MAX_GRAPH_LEN is 'long'")
    with caplog.at_level(1, logger="poptorch::backend"), refusal:
        poptorch.inferenceModel(nn.Linear(2, 3)).compile(torch.ones(1, 2))
