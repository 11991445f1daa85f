"""Tensor locations: their translation for the engine, and the memory that they save on a card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from pilotage.options.locations import Locations
from poptorch import TensorLocationSettings
from poptorch._options.execution import execution_of

OFF_CHIP = TensorLocationSettings().useOnChipStorage(False)


def located(**locations):
    options = poptorch.Options()
    for name, location in locations.items():
        getattr(options.TensorLocations, f"set{name.title()}Location")(location)
    return options


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (located(), Locations()),
        (located(optimizer=TensorLocationSettings().useOnChipStorage(True)), Locations()),
        (located(activation=OFF_CHIP), Locations(activations=2)),
        (located(optimizer=OFF_CHIP), Locations(optimizer=2)),
        (
            located(optimizer=TensorLocationSettings().useOnChipStorage(False).minElementsForOffChip(64)),
            Locations(optimizer=64),
        ),
        (
            located(optimizer=TensorLocationSettings().useReplicatedTensorSharding()),
            Locations(shared_optimizer=8192),
        ),
        (
            located(
                optimizer=TensorLocationSettings()
                .useReplicatedTensorSharding()
                .minElementsForReplicatedTensorSharding(4)
            ),
            Locations(shared_optimizer=4),
        ),
        (
            poptorch.Options().setExecutionStrategy(
                poptorch.SerialPhasedExecution("a").setTensorsLiveness(poptorch.Liveness.OffChipAfterFwd)
            ),
            Locations(activations=2),
        ),
        (
            poptorch.Options().setExecutionStrategy(poptorch.ParallelPhasedExecution("a").sendTensorsOffChipAfterFwd()),
            Locations(activations=2),
        ),
    ],
    ids=lambda value: "" if isinstance(value, poptorch.Options) else str(value),
)
def test_locations_are_translated_for_the_engine(options, expected):
    assert execution_of(options, training=True).locations == expected


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return functional.mse_loss(self.layer(x), x)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (located(weight=OFF_CHIP), "setWeightLocation has no effect: these tensors stay"),
        (located(accumulator=OFF_CHIP), "setAccumulatorLocation has no effect: these tensors stay"),
        (located(weight=TensorLocationSettings().useReplicatedTensorSharding()), "affects only the optimizer state"),
    ],
)
def test_locations_without_effect_give_a_warning_at_compilation(caplog, options, said):
    poptorch.trainingModel(Model(), options).compile(torch.ones(1, 2))
    assert said in caplog.text


def test_on_the_cpu_nothing_is_offloaded_and_results_are_the_same(caplog):
    torch.manual_seed(0)
    runs = []
    for options in (located(), located(activation=OFF_CHIP, optimizer=OFF_CHIP)):
        torch.manual_seed(1)
        module = Model()
        model = poptorch.trainingModel(module, options, poptorch.optim.Adam(module.parameters(), lr=0.1))
        runs.append([float(model(torch.ones(1, 2))) for _ in range(3)])
    assert runs[0] == runs[1]


PROGRAM = """
import gc, json, sys
import torch
from torch import nn
from torch.nn import functional
import poptorch

def check(way):
    torch.manual_seed(0)
    module = Model()
    options = poptorch.Options().runOn("hpu", tier="graph").deviceIterations(2)
    off_chip = poptorch.TensorLocationSettings().useOnChipStorage(False)
    if "activations" in way:
        options.TensorLocations.setActivationLocation(off_chip)
    if "optimizer" in way:
        options.TensorLocations.setOptimizerLocation(off_chip)
    if "recomputation" not in way:
        options._Popart.set("autoRecomputation", 0)
    model = poptorch.trainingModel(module, options, poptorch.optim.AdamW(module.parameters(), lr=0.01))
    x = torch.randn(2 * 128, 64)
    losses = [float(model(x)) for _ in range(2)]
    held = torch.hpu.memory_allocated()
    torch.hpu.reset_peak_memory_stats()
    losses.append(float(model(x)))
    peak = torch.hpu.max_memory_allocated()
    state = model.state_dict()
    digest = float(sum(value.double().abs().sum() for value in state.values()))
    model.destroy()
    gc.collect()
    return {"losses": losses, "held": held, "peak": peak, "digest": digest}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(8))
        self.norm = nn.LayerNorm(64)
    def forward(self, x):
        y = x
        for number, layer in enumerate(self.layers):
            y = y + functional.relu(functional.gelu(layer(self.norm(y))))
            if number % 2:
                y = poptorch.recomputationCheckpoint(y)
        return functional.mse_loss(y, torch.zeros_like(y))

ways = ["", "recomputation", "activations", "optimizer", "activations and optimizer", "recomputation and activations"]
print(json.dumps({way: check(way) for way in ways}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The memory that each setting uses on an emulated card."""
    folder = tmp_path_factory.mktemp("card")
    file = folder / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PILOTAGE_CACHE_DIR": "off", "PILOTAGE_CHECK": "off"}
    ran = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=folder, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.slow
def test_training_is_the_same_for_every_tensor_location(found):
    plain = found[""]
    assert all(way["losses"] == plain["losses"] for way in found.values())
    assert all(way["digest"] == plain["digest"] for way in found.values())


@pytest.mark.slow
def test_offloaded_or_recomputed_activations_are_not_on_the_card(found):
    value = 128 * 64 * 4
    # Each of eight layers keeps four values or more for backward: those of norm, gelu, relu and the product.
    assert found[""]["peak"] - found["activations"]["peak"] > 20 * value
    assert found[""]["peak"] - found["recomputation"]["peak"] > 16 * value
    assert found["recomputation and activations"]["peak"] <= found["recomputation"]["peak"]


@pytest.mark.slow
def test_the_optimizers_state_is_on_the_card_only_while_it_updates(found):
    weights = 8 * (64 * 64 + 64) * 4 + 2 * 64 * 4
    assert found[""]["held"] - found["optimizer"]["held"] >= 2 * weights - weights
    assert found["activations and optimizer"]["held"] == found["optimizer"]["held"]
