from __future__ import annotations

import copy

import pytest
import torch

from poptorch.optim import LAMB, SGD, Adam, AdamW, RMSprop

KINDS = [(SGD, {"lr": 0.1}), (Adam, {}), (AdamW, {}), (RMSprop, {}), (LAMB, {})]
DEVICE = {"ipu_state": {"Accl1___w": torch.ones(2)}, "ipu_param": {"lossScaling_FLOAT": torch.tensor(2.0)}}


@pytest.fixture(params=KINDS, ids=lambda pair: pair[0].__name__)
def optimizer(request):
    kind, required = request.param
    return kind([torch.nn.Parameter(torch.ones(2))], **required)


def test_before_compilation_there_is_no_device_state(optimizer):
    state = optimizer.state_dict()
    assert state.keys() == {"state", "param_groups", "ipu_state", "ipu_param"}
    assert state["ipu_state"] is None
    assert state["ipu_param"] is None
    assert not optimizer.has_state()
    assert not optimizer.ipu_state_is_dirty
    assert not optimizer.host_state_is_dirty


def test_the_device_state_is_read_only_when_needed_and_changed(optimizer):
    reads = []
    optimizer.follow(lambda: reads.append("read") or DEVICE)
    optimizer.state_dict()
    assert reads == []
    optimizer.ipu_state_is_dirty = True
    assert optimizer.state_dict()["ipu_state"] is DEVICE["ipu_state"]
    optimizer.state_dict()
    assert reads == ["read"]
    assert optimizer.has_state()
    assert not optimizer.ipu_state_is_dirty


def test_a_replaced_optimizer_reads_the_device_one_last_time(optimizer):
    reads = []
    optimizer.follow(lambda: reads.append("read") or DEVICE)
    optimizer.ipu_state_is_dirty = True
    optimizer.stop_following()
    optimizer.ipu_state_is_dirty = True
    assert optimizer.state_dict()["ipu_param"] is DEVICE["ipu_param"]
    assert reads == ["read"]


def test_a_copy_reads_the_device_once_and_stops_following_it(optimizer):
    optimizer.follow(lambda: DEVICE)
    optimizer.ipu_state_is_dirty = True
    twin = copy.deepcopy(optimizer)
    assert torch.equal(twin.get_state_dict()["ipu_state"]["Accl1___w"], torch.ones(2))
    twin.ipu_state_is_dirty = True
    assert twin.state_dict()["ipu_state"] is not DEVICE["ipu_state"]


def test_a_loaded_state_waits_for_the_device(optimizer, tmp_path):
    optimizer.set_state_dict(DEVICE)
    optimizer.param_groups[0]["lr"] = 0.125
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    other = copy.deepcopy(optimizer)
    other.param_groups[0]["lr"] = 1.0
    other.set_state_dict({"ipu_state": None, "ipu_param": None})
    other.load_state_dict(torch.load(tmp_path / "optimizer.pt"))
    assert other.param_groups[0]["lr"] == 0.125
    assert torch.equal(other.state_dict()["ipu_state"]["Accl1___w"], torch.ones(2))
    assert other.host_state_is_dirty
    assert not other.ipu_state_is_dirty


def test_a_state_saved_before_compilation_leaves_nothing_to_send(optimizer):
    optimizer.load_state_dict(optimizer.state_dict())
    assert not optimizer.host_state_is_dirty


def test_the_device_part_may_be_loaded_by_itself(optimizer):
    optimizer.load_state_dict(DEVICE)
    assert optimizer.get_state_dict() == DEVICE
    assert optimizer.host_state_is_dirty


def test_an_empty_state_is_refused(optimizer):
    with pytest.raises(RuntimeError, match=r"Cannot load optimizer state dictionary because it is empty\."):
        optimizer.load_state_dict({})


def test_a_state_without_the_device_part_is_refused(optimizer):
    plain = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1).state_dict()
    with pytest.raises(RuntimeError, match=r"Only IPU optimizer states can be loaded onto the IPU\."):
        optimizer.load_state_dict(plain)
