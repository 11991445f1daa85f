from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from poptorch.options import (
    Options,
    ParallelPhasedExecution,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
)


@pytest.mark.parametrize(
    "strategy",
    [PipelinedExecution(), ShardedExecution(), ParallelPhasedExecution("a"), SerialPhasedExecution("a")],
)
def test_a_strategy_is_stored(strategy):
    assert Options().setExecutionStrategy(strategy)._execution_strategy is strategy


@pytest.mark.parametrize("strategy", [PipelinedExecution, "pipelined", None])
def test_a_strategy_of_another_type_is_refused(strategy):
    with pytest.raises(AssertionError, match=r"poptorch.PipelinedExecution"):
        Options().setExecutionStrategy(strategy)


@pytest.mark.parametrize("path", ["somewhere", Path("somewhere")])
def test_compiled_programs_are_kept_in_a_directory(path):
    options = Options().enableExecutableCaching(path)
    assert options._Popart.options["cachePath"] == "somewhere"
    assert options._Popart.options["enableEngineCaching"] is True


def test_none_disables_the_executable_cache():
    options = Options().enableExecutableCaching("somewhere").enableExecutableCaching(None)
    assert "cachePath" not in options._Popart.options
    assert options._Popart.options["enableEngineCaching"] is False


def test_a_model_has_a_name():
    assert not Options().exists("model_name")
    assert Options().modelName("net").modelName("mesh").model_name == "mesh"
    with pytest.raises(AssertionError, match="string"):
        Options().modelName(1)


@pytest.mark.parametrize(
    ("method", "argument", "key", "value"),
    [
        ("enableStableNorm", True, "enableStableNorm", True),
        ("enableStableNorm", False, "enableStableNorm", False),
        ("enableSyntheticData", True, "syntheticDataMode", 2),
        ("enableSyntheticData", False, "syntheticDataMode", 0),
        ("enableSyntheticData", 2, "syntheticDataMode", 2),
        ("updatableNamedBuffers", ["a", "b"], "updatableNamedBuffers", ["a", "b"]),
    ],
)
def test_settings_for_the_backend_are_passed_on(method, argument, key, value):
    options = getattr(Options(), method)(argument)
    assert options._Popart.options[key] == value


@pytest.mark.parametrize(
    ("method", "argument"),
    [
        ("enableStableNorm", 1),
        ("enableSyntheticData", "yes"),
        ("updatableNamedBuffers", "a"),
        ("updatableNamedBuffers", [1]),
    ],
)
def test_settings_of_another_type_are_refused(method, argument):
    with pytest.raises(AssertionError):
        getattr(Options(), method)(argument)


def test_checks_of_optimizers_are_relaxed_on_request():
    assert Options().relaxOptimizerAttributesChecks()._relax_optimizer_checks is True
    assert Options().relaxOptimizerAttributesChecks(False)._relax_optimizer_checks is False


def test_names_of_modules_are_left_out_on_request():
    assert Options().disableModuleNamescope()._module_namescope_enabled is False


def test_a_model_with_synthetic_inputs_ignores_the_hosts():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x, labels):
            output = self.layer(x)
            return output, functional.cross_entropy(output, labels)

    module = Model()
    before = module.layer.weight.detach().clone()
    model = poptorch.trainingModel(module, Options().enableSyntheticData(True))
    output, loss = model(torch.full((4, 3), torch.nan), torch.full((4,), 99))
    assert output.shape == (4, 2)
    assert torch.isfinite(loss)
    assert not torch.equal(module.layer.weight, before)


def test_the_name_of_a_model_is_in_the_log(caplog):
    caplog.set_level("INFO", "pilotage")
    poptorch.inferenceModel(nn.Identity(), Options().modelName("encoder"))(torch.ones(1))
    assert any("Running 'encoder' on cpu" in message for message in caplog.messages)
