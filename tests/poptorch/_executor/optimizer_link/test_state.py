"""The device's optimizer state, as the optimizer shows it."""

from __future__ import annotations

import math

import pytest
import torch

from poptorch import optim

pytestmark = pytest.mark.slow

KINDS = {
    "SGD": ({"lr": 0.1, "momentum": 0.9}, {"Accl1"}, {"scaledLearningRate0", "weightDecayScaleFactor0", "momentum"}),
    "Adam": ({"lr": 0.1}, {"Accl1", "Accl2", "Step"}, {"learningRate", "weightDecay", "beta1", "beta2", "eps"}),
    "AdamW": ({"lr": 0.1}, {"Accl1", "Accl2", "Step"}, {"learningRate", "weightDecay", "beta1", "beta2", "eps"}),
    "RMSprop": ({"lr": 0.1, "momentum": 0.9}, {"Accl1", "Accl3"}, {"learningRate", "weightDecay", "alpha", "eps"}),
    "LAMB": ({"lr": 0.1}, {"Accl1", "Accl2", "Step"}, {"learningRate", "maxWeightNorm", "beta1"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_exists_once_the_model_is_compiled(kind, network, batch, training):
    settings, slots, values = KINDS[kind]
    module = network()
    optimizer = getattr(optim, kind)(module.parameters(), **settings)
    model = training(module, optimizer)
    assert (optimizer.state_dict()["ipu_state"], optimizer.state_dict()["ipu_param"]) == (None, None)
    model.compile(*batch)
    state = optimizer.state_dict()
    names = [name for name, _ in module.named_parameters()]
    assert state["ipu_state"].keys() == {f"{slot}___{name}" for slot in slots for name in names}
    assert state["ipu_param"].keys() >= {f"{value}___specific___{name}" for value in values for name in names}
    assert state["ipu_param"]["lossScaling_FLOAT"].item() == 1.0
    model(*batch)
    moved = optimizer.state_dict()["ipu_state"]
    assert not torch.equal(
        moved["Accl2___first.weight" if "Accl2" in slots else "Accl1___first.weight"], torch.zeros(4, 3)
    )


def test_plain_sgd_has_values_but_no_state(network, batch, training):
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    training(module, optimizer)(*batch)
    assert optimizer.state_dict()["ipu_state"] == {}
    assert optimizer.state_dict()["ipu_param"]


def test_the_values_of_sgd_are_written_as_in_poptorch(network, batch, training):
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.2, momentum=0.9, dampening=0.25, weight_decay=0.5, loss_scaling=4.0)
    training(module, optimizer).compile(*batch)
    values = optimizer.state_dict()["ipu_param"]
    assert math.isclose(values["scaledLearningRate0___specific___first.bias"].item(), 0.2 * 0.75 / 4.0, rel_tol=1e-6)
    assert math.isclose(values["weightDecayScaleFactor0___specific___first.bias"].item(), 1 - 0.15 * 0.5, rel_tol=1e-6)
    assert values["lossScaling_FLOAT"].item() == 4.0


def test_the_state_equals_that_of_torchs_own_optimizer(network, batch, training, step_eagerly):
    module, twin = network(), network()
    optimizer, reference = optim.Adam(module.parameters(), lr=0.1), torch.optim.Adam(twin.parameters(), lr=0.1)
    model = training(module, optimizer)
    for _ in range(3):
        model(*batch)
        step_eagerly(twin, reference)
    state = optimizer.state_dict()["ipu_state"]
    for name, parameter in twin.named_parameters():
        torch.testing.assert_close(state[f"Accl1___{name}"], reference.state[parameter]["exp_avg"], rtol=0, atol=1e-7)
        torch.testing.assert_close(
            state[f"Accl2___{name}"], reference.state[parameter]["exp_avg_sq"], rtol=0, atol=1e-7
        )
        assert state[f"Step___{name}"].item() == 3.0


def test_setting_new_values_shows_in_the_state(network, batch, training):
    module = network()
    optimizer = optim.Adam(module.parameters(), lr=0.5)
    model = training(module, optimizer)
    model(*batch)
    assert optimizer.state_dict()["ipu_param"]["learningRate___specific___first.bias"].item() == 0.5
    optimizer.param_groups[0]["lr"] = 0.25
    model.setOptimizer(optimizer)
    assert optimizer.state_dict()["ipu_param"]["learningRate___specific___first.bias"].item() == 0.25


def test_the_device_is_read_only_if_its_state_is_newer(network, batch, training):
    module = network()
    optimizer = optim.Adam(module.parameters(), lr=0.5)
    model = training(module, optimizer)
    model(*batch)
    assert optimizer.ipu_state_is_dirty
    first = optimizer.state_dict()["ipu_state"]
    assert not optimizer.ipu_state_is_dirty
    assert optimizer.state_dict()["ipu_state"] is first
    model(*batch)
    assert optimizer.state_dict()["ipu_state"] is not first


@pytest.mark.parametrize("leave", ["destroy", "detachFromDevice"])
def test_the_state_outlives_the_program_and_the_attachment(leave, network, batch, training, step_eagerly, assert_same):
    module, twin = network(), network()
    optimizer, reference = optim.Adam(module.parameters(), lr=0.1), torch.optim.Adam(twin.parameters(), lr=0.1)
    model = training(module, optimizer)
    for step in range(4):
        if step == 2:
            getattr(model, leave)()
            assert optimizer.state_dict()["ipu_state"]["Step___first.bias"].item() == 2.0
        model(*batch)
        step_eagerly(twin, reference)
    assert_same(module, twin)


def test_an_optimizer_brings_its_state_to_a_new_wrapper(network, batch, training, step_eagerly, assert_same):
    module, twin = network(), network()
    optimizer, reference = optim.Adam(module.parameters(), lr=0.1), torch.optim.Adam(twin.parameters(), lr=0.1)
    for _ in range(3):
        model = training(module, optimizer)
        model(*batch)
        step_eagerly(twin, reference)
        model.destroy()
    assert_same(module, twin)
    assert optimizer.state_dict()["ipu_state"]["Step___first.bias"].item() == 3.0


def test_a_replaced_optimizer_keeps_its_last_state(network, batch, training):
    module = network()
    first, second = optim.Adam(module.parameters(), lr=0.1), optim.Adam(module.parameters(), lr=0.2)
    model = training(module, first)
    model(*batch)
    model.setOptimizer(second)
    model(*batch)
    assert first.state_dict()["ipu_state"]["Step___first.bias"].item() == 1.0
    assert second.state_dict()["ipu_state"]["Step___first.bias"].item() == 2.0
