"""The device of each compute mode."""

from dataclasses import replace

import pytest
import torch

from cosmictagger.configuration.choices import ComputeMode, ModeKind, OptimizerKind, Precision
from cosmictagger.configuration.framework import Torch
from cosmictagger.configuration.mode import Inference, Optimizer, Train
from cosmictagger.configuration.network import A21
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.devices.choosing import device_for, environment_for
from cosmictagger.devices.eager import EagerExecutor
from cosmictagger.devices.xpu import XpuDevice
from pilotage import World

SMALL = replace(A21, depth=0, n_initial_filters=2, bottleneck_deepest=2)


def configured(mode, **run):
    return Configuration(run=Run(id="x", **run), mode=mode, network=SMALL)


def executor_of(mode, **run):
    config = configured(mode, **run)
    return device_for(config).executor(config)


def test_a_short_run_on_a_cpu_gets_eager_execution_with_the_configured_optimizer():
    mode = Train(optimizer=Optimizer(name=OptimizerKind.rmsprop))
    executor = executor_of(mode, compute_mode=ComputeMode.CPU, iterations=10)
    assert isinstance(executor, EagerExecutor)
    assert executor.placement().optimizer == "RMSprop"


def test_float16_holds_its_weights_in_float16():
    mode = Inference(name=ModeKind.inference)
    executor = executor_of(mode, precision=Precision.float16)
    assert {parameter.dtype for parameter in executor.network.parameters()} == {torch.float16}
    assert executor.placement().precision == "float16 activations, float16 weights (not run)"


def test_an_old_name_of_intels_cards_means_xpu():
    assert isinstance(device_for(configured(Train(), compute_mode=ComputeMode.DPCPP)), XpuDevice)


def test_an_ipu_gets_a_wrapped_network_with_the_configured_optimizer():
    mode = Train(optimizer=Optimizer(name=OptimizerKind.rmsprop))
    executor = executor_of(mode, compute_mode=ComputeMode.IPU, num_replicas=2)
    placement = executor.placement()
    assert (placement.optimizer, placement.replicas, placement.compiled) == ("RMSprop", 2, False)
    assert "poptorch" in placement.backend


@pytest.mark.parametrize(("lazy", "value"), [(True, "1"), (False, "0")])
def test_lazy_mode_is_set_before_habanas_package_is_imported(lazy, value):
    config = Configuration(run=Run(id="x", compute_mode=ComputeMode.HPU, lazy_mode=lazy))
    assert environment_for(config)["PT_HPU_LAZY_MODE"] == value


def test_an_ipus_tier_is_pinned_unless_the_user_pins_another(monkeypatch):
    config = Configuration(run=Run(id="x", compute_mode=ComputeMode.IPU))
    assert environment_for(config)["PILOTAGE_TIER"] == "graph"
    monkeypatch.setenv("PILOTAGE_TIER", "eager")
    assert environment_for(config)["PILOTAGE_TIER"] == "eager"
    config.framework = Torch(environment_variables={"PILOTAGE_TIER": "compiled"})
    assert environment_for(config)["PILOTAGE_TIER"] == "compiled"


@pytest.mark.parametrize(("visible", "own"), [("", "1"), ("4,5,6", "5"), ("7", "7")])
def test_each_process_sees_only_its_own_card(monkeypatch, visible, own):
    config = Configuration(run=Run(id="x", compute_mode=ComputeMode.GPU, distributed=True))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert "CUDA_VISIBLE_DEVICES" not in environment_for(config)
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    assert environment_for(config)["CUDA_VISIBLE_DEVICES"] == own


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (ComputeMode.CPU, ("cpu", "gloo")),
        (ComputeMode.GPU, ("cuda", "nccl")),
    ],
)
def test_each_device_has_its_own_backend(mode, expected):
    assert device_for(configured(Train(), compute_mode=mode)).exchange(World()) == expected
