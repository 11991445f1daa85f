from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest
import torch
from torch import nn

import poptorch
from pilotage.errors import OptionError
from poptorch._options.popart import PopartSettings, is_backend_option

READ = {
    "automatic_loss_scaling": ("automaticLossScalingSettings.enabled", True, True),
    "stochastic_rounding": ("enableStochasticRounding", True, True),
    "floating_point_checks": ("enableFloatingPointChecks", 1, True),
    "counts_cycles": ("instrumentWithHardwareCycleCounter", True, True),
    "synthetic_data": ("syntheticDataMode", 2, True),
    "updatable_buffers": ("updatableNamedBuffers", ["mean"], ("mean",)),
    "engine_options": ("engineOptions", {"opt.level": "1"}, {"opt.level": "1"}),
    "cache_directory": ("enableEngineCaching", True, Path("session_cache")),
    "partials_type": ("partialsTypeMatMuls", "half", "half"),
    "recomputation": ("autoRecomputation", 3, True),
    "strided_groups": ("groupNormStridedChannelGrouping", True, True),
}


def test_every_setting_is_read_from_an_option_that_a_backend_has():
    assert READ.keys() == {field.name for field in fields(PopartSettings)}
    assert all(is_backend_option(name) for name, _, _ in READ.values())


@pytest.mark.parametrize("setting", READ)
def test_a_setting_is_read_from_its_option(setting):
    name, given, expected = READ[setting]
    read = PopartSettings.read({name: given})
    assert getattr(read, setting) == expected
    others = [field.name for field in fields(PopartSettings) if field.name != setting]
    assert all(getattr(read, other) == getattr(PopartSettings(), other) for other in others)


def test_the_defaults_are_those_of_new_options():
    assert poptorch.Options()._Popart.settings == PopartSettings()


def test_settings_are_immutable():
    with pytest.raises(FrozenInstanceError):
        PopartSettings().stochastic_rounding = True


def test_compiled_programs_are_stored_at_the_given_path():
    assert PopartSettings.read({"enableEngineCaching": True, "cachePath": "here"}).cache_directory == Path("here")
    assert PopartSettings.read({"enableEngineCaching": False, "cachePath": "here"}).cache_directory is None


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("enableStochasticRounding", "yes", "one of False, True"),
        ("enableFloatingPointChecks", torch.ones(2), "one of False, True"),
        ("partialsTypeMatMuls", "hafl", "one of 'float', 'half'"),
        ("autoRecomputation", "1", "one of 0, 1, 2, 3, 4"),
        ("syntheticDataMode", 9, "one of 0, 1, 2, 3"),
        ("updatableNamedBuffers", "mean", "a list of names"),
        ("engineOptions", ["opt.level"], "a dictionary"),
    ],
)
def test_a_wrong_value_is_refused_when_the_model_is_wrapped(name, value, allowed):
    options = poptorch.Options()
    options._Popart.set(name, value)
    with pytest.raises(OptionError, match=f"The PopART option {name} is .*It must be {allowed}"):
        poptorch.inferenceModel(nn.Linear(1, 1), options)


def test_a_cache_path_has_to_be_a_path():
    with pytest.raises(OptionError, match=r"cachePath is 3\. It must be a path"):
        PopartSettings.read({"enableEngineCaching": True, "cachePath": 3})


@pytest.mark.parametrize(
    "name", ["enableStochasticRoundign", "automaticLossScalingSettings.enabeld", "cachePath.enabled"]
)
def test_a_misspelt_name_is_refused_when_the_model_is_compiled(name):
    options = poptorch.Options()
    options._Popart.set(name, True)
    with pytest.raises(poptorch.Error, match=f"Unknown bool option {name}"):
        poptorch.inferenceModel(nn.Linear(1, 1), options).compile(torch.ones(1, 1))


def test_groups_without_a_meaning_accept_any_member():
    assert is_backend_option("batchSerializationSettings.factor")
    assert not is_backend_option("noSettings.factor")
