"""Composing configurations from command lines."""

import pytest

from cosmictagger.configuration.choices import (
    ComputeMode,
    Connection,
    ConvMode,
    ModeKind,
    Norm,
    Precision,
    ScheduleKind,
)
from cosmictagger.configuration.compose import MEMBERS, configuration, resolved_lines, shown, sweeps
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


def test_version_21_calls_a_gpu_cuda():
    assert configuration(["run.id=x", "run.compute_mode=CUDA"]).run.compute_mode is ComputeMode.GPU


def test_naming_files_means_real_data():
    for recipe in ("config", "a21"):
        config = configuration(["run.id=x", "data.data_directory=/events/"], recipe)
        assert isinstance(config.data, Real)
        assert config.data.file == "cosmic_tagging_train.h5"
    words = ["run.id=x", "data=generated", "data.data_directory=/new/"]
    assert isinstance(configuration(words).data, Generated)


@pytest.mark.parametrize(
    "words",
    [
        ["mode.optimizer.lr_schedule.name=one_cycle"],
        ["mode.optimizer.lr_schedule=one_cycle", "+mode.optimizer.lr_schedule.decay_floor=1e-5"],
        ["mode/optimizer/lr_schedule=one_cycle"],
    ],
)
def test_a_schedule_of_version_21_may_be_named_in_every_form(words):
    schedule = configuration(["run.id=x", *words]).mode.optimizer.lr_schedule
    assert schedule.name is ScheduleKind.one_cycle
    assert schedule.decay_floor == (1e-5 if len(words) == 2 else 1e-4)


def test_a_rate_of_version_21_without_a_name_is_flat():
    words = ["run.id=x", "mode.optimizer.lr_schedule.peak_learning_rate=0.01"]
    schedule = configuration(words).mode.optimizer.lr_schedule
    assert (schedule.name, schedule.peak_learning_rate) == (ScheduleKind.flat, 0.01)


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
        (["run.id=x", "run.minibatchsize=3"], "config", r"Did you mean run\.minibatch_size\?"),
        (["run.id=x", "iterations=3"], "config", r"Did you mean run\.iterations\?"),
        (["run.id=x", "+run.iteration=3"], "config", r"Did you mean run\.iterations\?"),
        (["run.id=x", "network=vgg"], "config", "uresnet3d"),
        (["run.id=x", "network=a22"], "config", r"Did you mean network=a21\?"),
        (["run.id=x", "run.foo=3"], "config", r"Key 'foo' not in 'Run'\."),
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


def test_the_configuration_is_shown_as_hydra_shows_it():
    assert "id: ???" in shown("job", ["network=a21"])
    assert shown("job", ["run.id=x", "network.depth=4"], package="network").startswith("name: uresnet")
    assert "output_dir: output/torch/A21/x/" in shown("job", ["run.id=x", "network=a21"], resolve=True)
    assert "job_logging" in shown("hydra", ["run.id=x"])
    assert shown("all", ["run.id=x"]).startswith("hydra:")
    with pytest.raises(ConfigurationError, match="names nothing"):
        shown("job", ["run.id=x"], package="nowhere")


def test_lists_of_values_are_combined():
    jobs = sweeps(["run.id=x", "network.depth=3,4", "network=a21,uresnet"])
    assert [words[1:] for words in jobs] == [
        ["network.depth=3", "network=a21"],
        ["network.depth=3", "network=uresnet"],
        ["network.depth=4", "network=a21"],
        ["network.depth=4", "network=uresnet"],
    ]
    assert sweeps(["run.id=x", "run.minibatch_size=range(1,3)"])[1][1] == "run.minibatch_size=2"
