"""Intel's cards."""

import pytest
import torch.distributed as dist

from cosmictagger.devices.xpu import XpuDevice
from cosmictagger.errors import DeviceError
from pilotage import World


def test_gradients_go_through_torchs_backend_or_intels(monkeypatch):
    monkeypatch.setattr(dist, "is_xccl_available", lambda: True)
    assert XpuDevice().exchange(World()) == ("xpu", "xccl")
    monkeypatch.setattr(dist, "is_xccl_available", lambda: False)
    with pytest.raises(DeviceError, match="oneccl_bindings_for_pytorch"):
        XpuDevice().exchange(World())
