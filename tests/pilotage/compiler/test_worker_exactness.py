"""Versions of a program that the compiling process refuses because they are less accurate."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import pilotage
from pilotage.compiler import worker
from pilotage.compiler.job import Job
from pilotage.compiler.target import precision_settings
from pilotage.program.program import Action
from pilotage.storage.fingerprint import Fingerprint


class Scaled(nn.Module):
    """A convolution followed by normalisation, on images far from zero."""

    def __init__(self, normalisation: nn.Module) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 16, 1)
        self.normalisation = normalisation

    def forward(self, x, y):
        return nn.functional.mse_loss(self.normalisation(self.first(x)), y)


def job_of(model: nn.Module, inputs: list[torch.Tensor], place) -> Job:
    trainer = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), backend="cpu", tier="graph")
    trainer(*inputs)
    return Job(
        program=trainer._executor.session.program,
        fingerprint=Fingerprint({}),
        cache=place,
        device=torch.device("cpu"),
        runs={Action.TRAIN: 1},
        inputs=inputs,
        buffers={name: buffer.clone() for name, buffer in model.named_buffers()},
        threads=1,
        compiler_threads=1,
        precision=precision_settings(),
    )


def tuned(job: Job, place, monkeypatch):
    """The choice of a memory layout, without compiling."""
    monkeypatch.setattr(worker, "_compiled", lambda *_: None)
    found = []
    with ThreadPoolExecutor(max_workers=1) as clock:
        worker._tune(job, place, clock, lambda tuning, code: found.append(tuning))
    (tuning,) = found
    return tuning


def pictures(size):
    torch.manual_seed(0)
    return [torch.randn(1, 4, size, size) + 10, torch.randn(1, 16, size, size)]


@pytest.mark.slow
def test_a_layout_with_an_inaccurate_kernel_is_refused_even_if_it_is_fast(tmp_path, monkeypatch):
    torch.manual_seed(0)
    job = job_of(Scaled(nn.BatchNorm2d(16)), pictures(256), tmp_path)
    tuning = tuned(job, tmp_path, monkeypatch)
    assert list(tuning.seconds) == ["graph"], tuning
    assert not tuning.channels_last
    assert "graph, channels last does not agree with the graph" in tuning.reason
    assert "is off float64 by" in tuning.reason
    assert tuning.note == ""
