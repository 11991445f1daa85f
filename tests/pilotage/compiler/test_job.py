"""A job of the compiling process survives its file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import pilotage
from pilotage.compiler.job import CompileJob
from pilotage.compiler.target import precision_settings
from pilotage.program.program import Action
from pilotage.storage.fingerprint import Fingerprint


def test_a_job_is_read_as_it_was_written(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    trainer = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=nn.MSELoss(), tier="graph")
    trainer(torch.randn(5, 4), torch.randn(5, 3))
    inputs = {
        Action.FORWARD: [torch.randn(5, 4), torch.arange(3)],
        # Transposed and gapped.
        Action.BACKWARD: [torch.randn(4, 5).t(), torch.randn(6, 8)[:, ::2], torch.tensor(2.0)],
    }
    job = CompileJob(
        program=trainer._executor.session.program,
        fingerprint=Fingerprint({"part": "value"}),
        cache=tmp_path / "cache",
        device=torch.device("cpu"),
        runs={Action.TRAIN: 3},
        inputs=inputs,
        buffers={name: buffer.clone() for name, buffer in model.named_buffers()},
        threads=2,
        compiler_threads=1,
        precision=precision_settings(),
        must_compile=True,
        about={"name": "Model"},
    )
    job.write(Path(tmp_path / "job"))
    read = CompileJob.read(tmp_path / "job")
    for name in ("fingerprint", "cache", "device", "runs", "threads", "compiler_threads", "precision", "about"):
        assert getattr(read, name) == getattr(job, name), name
    assert read.must_compile
    torch.testing.assert_close(read.inputs, job.inputs, rtol=0, atol=0)
    torch.testing.assert_close(read.buffers, job.buffers, rtol=0, atol=0)
    strides = {action: [tensor.stride() for tensor in tensors] for action, tensors in read.inputs.items()}
    assert strides == {Action.FORWARD: [(4, 1), (1,)], Action.BACKWARD: [(1, 5), (4, 1), ()]}
    assert read.program.layout == job.program.layout
