"""The IPU's device: which tier is pinned, and which processes a run consists of."""

from __future__ import annotations

import pytest
import torch.distributed as dist

from cosmictagger.configuration.compose import configuration
from cosmictagger.configuration.run import Run
from cosmictagger.devices.graphcore.device import GraphcoreDevice
from cosmictagger.errors import DeviceError


@pytest.fixture
def config():
    return configuration(["run.id=test", "run.compute_mode=IPU"])


def test_the_tier_is_pinned_unless_the_user_has_chosen_one(config, monkeypatch):
    assert GraphcoreDevice().environment(config) == {"PILOTAGE_TIER": "graph"}
    monkeypatch.setenv("PILOTAGE_TIER", "eager")
    assert GraphcoreDevice().environment(config) == {"PILOTAGE_TIER": "eager"}
    config.framework.environment_variables["PILOTAGE_TIER"] = "compiled"
    assert GraphcoreDevice().environment(config) == {"PILOTAGE_TIER": "compiled"}


def test_a_process_on_its_own_exchanges_nothing():
    processes = GraphcoreDevice().join(Run())
    assert (processes.size, processes.backend, processes.per_instance_files) == (1, "none", False)
    assert not dist.is_initialized()


def test_a_single_instance_of_poprun_writes_files_of_its_own(monkeypatch):
    for name, value in {"NUM_TOTAL_REPLICAS": "2", "NUM_LOCAL_REPLICAS": "2", "REPLICA_INDEX_OFFSET": "0"}.items():
        monkeypatch.setenv(f"POPDIST_{name}", value)
    processes = GraphcoreDevice().join(Run())
    assert (processes.size, processes.backend, processes.per_instance_files) == (1, "popdist", True)
    assert not dist.is_initialized()


def test_processes_of_another_launcher_need_a_place_to_meet(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DeviceError, match=r"This is process 1 of 2.*Set MASTER_ADDR"):
        GraphcoreDevice().join(Run(distributed=True))
