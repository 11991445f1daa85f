"""An optimizer's state that is saved and loaded."""

from __future__ import annotations

import copy
import json
import logging
import subprocess
import sys
import textwrap

import pytest
import torch

import poptorch
from poptorch import optim

pytestmark = pytest.mark.slow

SETTINGS = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "Adam": {"lr": 0.1},
    "AdamW": {"lr": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.9},
    "LAMB": {"lr": 0.1},
}


@pytest.mark.parametrize(("kind", "settings"), SETTINGS.items(), ids=SETTINGS)
@pytest.mark.parametrize("when", ["before wrapping", "before compiling", "after compiling"])
def test_a_saved_state_resumes_bit_by_bit(kind, settings, when, tmp_path, network, batch, training):
    module = network()
    optimizer = getattr(optim, kind)(module.parameters(), **settings)
    model = training(module, optimizer)
    for _ in range(2):
        model(*batch)
    optimizer.param_groups[0]["lr"] = 0.07
    model.setOptimizer(optimizer)
    model(*batch)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint")
    expected = [model(*batch).item() for _ in range(3)]

    saved = torch.load(tmp_path / "checkpoint")
    module = network()
    optimizer = getattr(optim, kind)(module.parameters(), **settings)
    if when == "before wrapping":
        optimizer.load_state_dict(saved["optimizer"])
    model = training(module, optimizer)
    if when == "after compiling":
        model(*batch)
    model.load_state_dict(saved["model"])
    if when != "before wrapping":
        optimizer.load_state_dict(saved["optimizer"])
    assert [model(*batch).item() for _ in range(3)] == expected


def test_a_saved_state_resumes_in_another_process(tmp_path):
    source = """
        import torch, poptorch
        from torch import nn

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.layer = nn.Linear(3, 2)

            def forward(self, x, y):
                return nn.functional.mse_loss(self.layer(x), y)

        X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.zeros(4, 2)
        module = Network()
        optimizer = poptorch.optim.Adam(module.parameters(), lr=0.1)
        model = poptorch.trainingModel(module, optimizer=optimizer)
    """
    save = "torch.save([model.state_dict(), optimizer.state_dict()], PATH)"
    restore = "weights, state = torch.load(PATH); model.load_state_dict(weights); optimizer.load_state_dict(state)"
    run = "print([model(X, Y).item() for _ in range(3)])"

    def printed(*lines):
        program = "\n".join([textwrap.dedent(source), f"PATH = {str(tmp_path / 'checkpoint')!r}", *lines])
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    _, expected = printed(run, save, run)
    assert printed(restore, run) == [expected]


def test_a_rate_set_after_loading_overrides_the_loaded_one(network, batch, training, changed_by):
    module = network()
    optimizer = optim.Adam(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    model(*batch)
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(saved)
    optimizer.param_groups[0]["lr"] = 0.0
    model.setOptimizer(optimizer)
    assert not changed_by(model, module)
    assert optimizer.state_dict()["ipu_state"]["Step___first.bias"].item() == 2.0


@pytest.mark.parametrize("is_new", [False, True])
def test_setting_an_optimizer_as_it_was_loaded_keeps_the_loaded_values(is_new, network, batch, training):
    module = network()
    optimizer = optim.Adam(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    model(*batch)
    state = copy.deepcopy(optimizer.state_dict())
    state["ipu_param"]["learningRate___specific___first.bias"] = torch.tensor(0.25)
    loading = optim.Adam(module.parameters(), lr=0.3) if is_new else optimizer
    loading.load_state_dict(state)
    model.setOptimizer(loading)
    model(*batch)
    assert loading.state_dict()["ipu_param"]["learningRate___specific___first.bias"].item() == 0.25
    model.setOptimizer(loading)
    model(*batch)
    assert round(loading.state_dict()["ipu_param"]["learningRate___specific___first.bias"].item(), 6) == 0.1


def test_a_rate_loaded_after_setting_is_used(network, batch, training, changed_by):
    module = network()
    optimizer = optim.Adam(module.parameters(), lr=0.0)
    model = training(module, optimizer)
    model(*batch)
    still = copy.deepcopy(optimizer.state_dict())
    optimizer.param_groups[0]["lr"] = 0.1
    model.setOptimizer(optimizer)
    assert changed_by(model, module)
    optimizer.load_state_dict(still)
    assert not changed_by(model, module)


def test_an_incomplete_state_is_merged_at_the_next_run(network, batch, training):
    module = network()
    optimizer = optim.Adam(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    model(*batch)
    state = optimizer.state_dict()
    kept = state["ipu_state"]["Accl1___second.bias"].clone()
    marked = torch.full_like(state["ipu_state"]["Accl1___first.bias"], 100.0)
    optimizer.load_state_dict({**state, "ipu_state": {"Accl1___first.bias": marked}})
    model(*batch)
    after = optimizer.state_dict()["ipu_state"]
    assert after["Accl1___first.bias"].min() > 80.0
    assert after["Accl1___second.bias"].abs().max() < 10 * kept.abs().max() + 1


def test_missing_states_are_refused(network, batch, training):
    module = network()
    optimizer = optim.Adam(module.parameters(), lr=0.1)
    training(module, optimizer)(*batch)
    with pytest.raises(RuntimeError, match=r"Cannot load optimizer state dictionary because it is empty\."):
        optimizer.load_state_dict({})
    with pytest.raises(RuntimeError, match=r"Only IPU optimizer states can be loaded onto the IPU\."):
        optimizer.load_state_dict(torch.optim.Adam(module.parameters()).state_dict())


def test_an_incomplete_state_is_shown_as_loaded_and_completed_by_the_next_call(network, batch, training, caplog):
    module = network()
    optimizer = poptorch.optim.Adam(module.parameters(), lr=0.1, weight_decay=0.0)
    model = training(module, optimizer)
    model(*batch)
    complete = optimizer.state_dict()
    partial = {
        **complete,
        "ipu_state": {"Accl1___first.bias": torch.full((4,), 3.0)},
        "ipu_param": {"lossScaling_FLOAT": complete["ipu_param"]["lossScaling_FLOAT"]},
    }
    optimizer.load_state_dict(partial)
    shown = optimizer.state_dict()
    assert list(shown["ipu_state"]) == ["Accl1___first.bias"]
    assert list(shown["ipu_param"]) == ["lossScaling_FLOAT"]
    model(*batch)
    assert optimizer.state_dict()["ipu_state"].keys() == complete["ipu_state"].keys()
    assert optimizer.state_dict()["ipu_param"].keys() == complete["ipu_param"].keys()
    for missing in (
        "state Accl2___first.bias",
        "state Accl1___second.bias",
        "parameter learningRate___specific___first.bias",
    ):
        assert caplog.messages.count(f"writeOptimizerState: ignoring missing {missing}") == 1
    assert "ignoring missing state Accl1___first.bias" not in caplog.text


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_loaded_values_of_single_parameters_are_used_and_read_back(kind, network, batch, training):
    module = network()
    optimizer = getattr(poptorch.optim, kind)(module.parameters(), lr=0.1, weight_decay=0.01)
    model = training(module, optimizer)
    model(*batch)
    state = optimizer.state_dict()
    generator = torch.Generator().manual_seed(3)
    values = {name: torch.rand((), generator=generator) for name in state["ipu_param"]}
    still = [name for name in values if "earningRate" in name and name.endswith("second.weight")]
    values[still[0]] = torch.zeros(())
    values["lossScaling_FLOAT"] = torch.ones(())
    optimizer.load_state_dict({**state, "ipu_param": values})
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    model(*batch)
    after = optimizer.state_dict()["ipu_param"]
    rates = [name for name in values if "earningRate" in name and name not in still]
    assert all(torch.equal(after[name], values[name]) for name in (*rates, *still, "lossScaling_FLOAT"))
    if kind == "Adam":
        assert torch.equal(module.second.weight, before["second.weight"])
    assert not torch.equal(module.first.weight, before["first.weight"])
    # The optimizer's own settings count again once they are set.
    optimizer.param_groups[0]["lr"] = 0.5
    model.setOptimizer(optimizer)
    model(*batch)
    assert {round(value.item(), 6) for name, value in optimizer.state_dict()["ipu_param"].items() if name in rates} == {
        0.5
    }


@pytest.mark.parametrize("kind", [optim.Adam, optim.LAMB])
def test_a_count_of_updates_may_be_any_number_and_agrees_with_eager_pytorch(kind, network, batch, training, caplog):
    caplog.set_level(logging.INFO, logger="pilotage")
    module = network()
    optimizer = kind(module.parameters(), lr=0.1)
    model = training(module, optimizer, poptorch.Options().check("first"))
    model.compile(*batch)
    state = optimizer.state_dict()
    counted = {name: torch.full_like(each, 0.37) for name, each in state["ipu_state"].items()}
    optimizer.load_state_dict({**state, "ipu_state": counted})
    model(*batch)
    assert "Agrees with eager PyTorch" in caplog.text
    assert round(optimizer.state_dict()["ipu_state"]["Step___first.bias"].item(), 6) == 1.37


def test_reads_and_writes_of_the_state_are_logged(network, batch, training, caplog):
    module = network()
    optimizer = poptorch.optim.Adam(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    with caplog.at_level("DEBUG", "poptorch::python"):
        model(*batch)
        state = optimizer.state_dict()
        assert "Writing optimiser state tensors from IPU to host." in caplog.messages
        optimizer.state_dict()
        assert "Using cached optimiser state dict" in caplog.messages
        optimizer.load_state_dict(state)
        model(*batch)
        assert "Writing optimiser state tensors from host to IPU memory" in caplog.messages
        model.setOptimizer(optimizer)
        assert "Updating group 0 optimizer" not in caplog.messages
        optimizer.param_groups[0]["lr"] = 0.2
        model.setOptimizer(optimizer)
        assert "Updating group 0 optimizer" in caplog.messages


def test_an_offline_compilation_has_no_state(network, batch, training):
    module = network()
    optimizer = poptorch.optim.Adam(module.parameters(), lr=0.1)
    model = training(module, optimizer, poptorch.Options().connectionType(poptorch.ConnectionType.Never))
    model.compile(*batch)
    state = optimizer.state_dict()
    assert state["ipu_state"] is state["ipu_param"] is None
