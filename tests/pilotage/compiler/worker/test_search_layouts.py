"""Versions of a program that the compiling process refuses because they are less accurate."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import pilotage
from pilotage.compiler.job import CompileJob
from pilotage.compiler.target import precision_settings
from pilotage.compiler.worker import search as searching
from pilotage.compiler.worker.ways import Build
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


def job_of(model: nn.Module, inputs: list[torch.Tensor], place) -> CompileJob:
    trainer = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), backend="cpu", tier="graph")
    trainer(*inputs)
    return CompileJob(
        program=trainer._executor.session.program,
        fingerprint=Fingerprint({}),
        cache=place,
        device=torch.device("cpu"),
        runs={Action.TRAIN: 1},
        inputs={Action.TRAIN: inputs},
        buffers={name: buffer.clone() for name, buffer in model.named_buffers()},
        threads=1,
        compiler_threads=1,
        precision=precision_settings(),
    )


def tuned(job: CompileJob, place, monkeypatch):
    """The choice of a memory layout, without compiling."""
    monkeypatch.setattr(searching, "compiled", lambda *_: None)
    found = []
    with ThreadPoolExecutor(max_workers=1) as clock:
        searching.search(job, place, clock, lambda tuning, code: found.append(tuning))
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


@pytest.mark.slow
@pytest.mark.parametrize("is_right", [False, True])
def test_a_slow_layout_is_compiled_only_if_the_fast_one_fails(is_right, tmp_path, monkeypatch):
    job = job_of(nn.Sequential(nn.Conv2d(4, 4, 1), Loss()), [torch.randn(1, 4, 8, 8)], tmp_path)
    tried = []

    def compiled(way, trial, *_):
        tried.append(str(way))
        return Build(way, trial, (), (), tmp_path) if is_right or not way.channels_last else None

    monkeypatch.setattr(searching, "compiled", compiled)
    monkeypatch.setattr(searching, "measure", lambda ways, *_: {way: 1.0 if way.channels_last else 2.0 for way in ways})
    with ThreadPoolExecutor(max_workers=1) as clock:
        searching.search(job, tmp_path, clock, lambda tuning, code: None)
    assert tried == ["compiled, channels last", "compiled"][: 1 if is_right else 2]


class Loss(nn.Module):
    def forward(self, x):
        return pilotage.mark_loss(x.square().mean())


class Residual(nn.Module):
    """Batch normalisation and decisions: one value near a threshold changes gradients by far more than rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)),
        )

    def forward(self, x):
        return torch.relu(x + self.inner(x))


class Residuals(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), Residual(), nn.MaxPool2d(2), Residual()
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x, labels):
        return nn.functional.cross_entropy(self.head(self.features(x).mean((2, 3))), labels)


@pytest.mark.long
def test_a_residual_network_with_batch_normalisation_reaches_compiled_code(tmp_path):
    torch.manual_seed(0)
    model = Residuals()
    step = pilotage.training(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        backend="cpu",
        tier="compiled",
        cache_directory=tmp_path,
    )
    step(torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,)))
    assert step.record.latest_tier == "compiled"
