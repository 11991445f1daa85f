"""Composing configurations from command lines."""

import pytest

from cosmictagger.configuration.choices import ComputeMode, Connection, ConvMode, ModeKind, Norm, Precision
from cosmictagger.configuration.compose import MEMBERS, configuration, resolved_lines
from cosmictagger.configuration.data import Generated, Real, Synthetic
from cosmictagger.configuration.recipes import RECIPES
from cosmictagger.errors import ConfigurationError

pytestmark = pytest.mark.slow


def test_the_defaults_are_one_cpu_process_on_generated_data():
    config = configuration(["run.id=x"])
    assert config.framework.name == "torch"
    assert not config.run.distributed
    assert isinstance(config.data, Generated)
    assert config.run.compute_mode is ComputeMode.CPU
    assert config.output_dir == "output/torch/uresnet/x/"
    assert (config.run.lazy_mode, config.run.num_replicas) == (False, 1)


def test_compute_modes_have_the_numbers_of_the_original():
    numbers = {mode.name: mode.value for mode in ComputeMode}
    assert numbers == {"CPU": 0, "GPU": 1, "DPCPP": 2, "XPU": 3, "HPU": 4, "IPU": 5}
    assert configuration(["run.id=x", "run.compute_mode=5"]).run.compute_mode is ComputeMode.IPU


def test_choices_may_be_given_by_number():
    assert configuration(["run.id=x", "run.precision=2"]).run.precision is Precision.bfloat16
    assert configuration(["run.id=x", "network.connections=1"]).network.connections is Connection.sum


@pytest.mark.parametrize(
    ("mode", "data", "kind"),
    [
        ("train", "real", Real),
        ("iotest", "synthetic", Synthetic),
        ("inference", "real", Real),
        ("visualize", "generated", Generated),
    ],
)
def test_every_mode_and_every_kind_of_data_can_be_named(mode, data, kind):
    config = configuration([f"mode={mode}", f"data={data}", "run.id=x"])
    assert config.mode.name is ModeKind[mode]
    assert type(config.data) is kind


@pytest.mark.parametrize("network", MEMBERS["network"])
def test_a_preset_may_be_changed_field_by_field(network):
    assert configuration([f"network={network}", "network.depth=4", "run.id=x"]).network.depth == 4


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_composes(recipe):
    assert configuration(["run.id=x"], recipe).run.id == "x"


def test_the_recipes_match_the_originals():
    deterministic = configuration(["run.id=x"], "a21-deterministic")
    assert (deterministic.data.seed, deterministic.framework.seed) == (12345, 54321)
    assert (deterministic.run.minibatch_size, deterministic.run.iterations) == (32, 5000)
    assert configuration(["run.id=x"], "SCC_21").network.normalization is Norm.none
    samba = configuration(["run.id=x"], "sn-at")
    assert (samba.network.conv_mode, samba.network.depth, samba.data.downsample) == (ConvMode.conv_3D, 7, 0)
    assert configuration(["run.id=x"], "polaris").network.bottleneck_deepest == 96
    assert configuration(["run.id=x"], "a21").data.synthetic


def test_environment_variables_need_no_plus_sign():
    config = configuration(["run.id=x", "framework.environment_variables.FOO=bar"])
    assert config.framework.environment_variables == {"FOO": "bar"}


def test_the_network_gets_the_format_of_the_data():
    config = configuration(["run.id=x", "data.data_format=channels_last"])
    assert config.network.data_format is config.data.data_format


@pytest.mark.parametrize(
    ("words", "recipe", "message"),
    [
        ([], "config", "use run.id=NAME"),
        (["run.id=x", "+foo=1"], "config", "No field named foo"),
        (["run.id=x", "network.data_format=channels_last"], "config", "Set that"),
        (["run.id=x", "++mode.optimizer.foo=1"], "config", "No field named mode.optimizer.foo"),
        (["run.id=x", "run.foo=3"], "config", "foo"),
        (["run.id=x", "network=vgg"], "config", "uresnet3d"),
        (["run.id=x", "run.precision=double"], "config", "bfloat16"),
        (["run.id=x", "run.iterations=many"], "config", "run.iterations"),
        (["run.id=x", "mode=iotest", "mode.checkpoint_iteration=3"], "config", "checkpoint_iteration"),
        (["run.id=x", "nonsense"], "config", "nonsense"),
        (["run.id=x"], "frontier", "polaris"),
    ],
)
def test_unknown_names_are_refused_in_one_line(words, recipe, message):
    with pytest.raises(ConfigurationError, match=message) as refused:
        configuration(words, recipe)
    assert "\n" not in str(refused.value)


def test_the_whole_configuration_can_be_printed():
    lines = resolved_lines(configuration(["run.id=x"]))
    assert lines == sorted(lines)
    assert "run.id........................: x" in lines
    assert "output_dir....................: output/torch/uresnet/x/" in lines
