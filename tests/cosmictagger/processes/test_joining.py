"""Which library carries gradients where."""

import os

import pytest
import torch.distributed as dist

from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.run import Run
from cosmictagger.errors import DeviceError
from cosmictagger.processes.joining import exchange_of, join
from pilotage import World


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (ComputeMode.CPU, ("cpu", "gloo")),
        (ComputeMode.GPU, ("cuda", "nccl")),
    ],
)
def test_each_kind_of_device_has_its_own(mode, expected):
    assert exchange_of(mode, World()) == expected


def test_intels_cards_take_torchs_own_or_intels(monkeypatch):
    monkeypatch.setattr(dist, "is_xccl_available", lambda: True)
    assert exchange_of(ComputeMode.XPU, World()) == ("xpu", "xccl")
    monkeypatch.setattr(dist, "is_xccl_available", lambda: False)
    with pytest.raises(DeviceError, match="oneccl_bindings_for_pytorch"):
        exchange_of(ComputeMode.XPU, World())


def test_processes_that_do_not_know_where_to_meet_are_told(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DeviceError, match="Set MASTER_ADDR"):
        join(Run(distributed=True))
    assert not dist.is_initialized()
    assert "ID" not in os.environ
