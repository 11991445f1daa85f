"""Converting optimizer states and back."""

import pytest
import torch
from torch import nn

from cosmictagger.devices.graphcore.optimizer_state import SLOTS, as_poptorch, as_torch, has_stepped

MODULE = nn.Linear(2, 3)
GROUPS = {"state": {}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}


@pytest.mark.parametrize("kind", SLOTS)
def test_a_state_survives_the_round_trip(kind):
    optimizer_state = {
        f"{slot}___{name}": torch.rand_like(value) for slot in SLOTS[kind] for name, value in MODULE.named_parameters()
    }
    state = as_torch({**GROUPS, "ipu_state": optimizer_state, "ipu_param": {}}, kind, MODULE, updates=4)
    assert state["param_groups"] == GROUPS["param_groups"]
    assert all(float(entries["step"]) == 4 for entries in state["state"].values())
    back = as_poptorch(state, GROUPS, kind, MODULE)["ipu_state"]
    assert all(torch.equal(back[name], tensor) for name, tensor in optimizer_state.items())


def test_an_unused_optimizer_has_not_stepped():
    assert not has_stepped({"ipu_state": None})
    assert not has_stepped({"ipu_state": {"Accl1___weight": torch.zeros(2)}})
    assert has_stepped({"ipu_state": {"Accl1___weight": torch.ones(2)}})
