"""An optimizer's state that is saved and loaded."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import textwrap

import pytest
import torch

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
