"""Connecting the processes of a run."""

import os

import pytest
import torch.distributed as dist

from cosmictagger.configuration.run import Run
from cosmictagger.devices.cpu import CpuDevice
from cosmictagger.errors import DeviceError
from cosmictagger.processes.joining import join


def test_processes_without_an_address_are_refused(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DeviceError, match="Set MASTER_ADDR"):
        join(Run(distributed=True), CpuDevice().exchange)
    assert not dist.is_initialized()
    assert "ID" not in os.environ
