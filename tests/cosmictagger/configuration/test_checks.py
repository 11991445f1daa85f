"""Every invalid combination is refused."""

import re
from functools import cache

import pytest
import torch
from omegaconf import OmegaConf

from cosmictagger.configuration.checks import check
from cosmictagger.configuration.compose import configuration
from cosmictagger.data.generator.file import generate_file
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.data.larcv.predictions import PredictionWriter
from cosmictagger.errors import ConfigurationError


@cache
def of_groups(*words):
    return OmegaConf.structured(configuration(["run.id=x", *words]))


def configured(words):
    """What the command would compose, without running hydra for every field."""
    fields = [word for word in words if "." in word.partition("=")[0]]
    config = of_groups(*(word for word in words if word not in fields)).copy()
    config.merge_with_dotlist(fields)
    return OmegaConf.to_object(config)


REFUSED = [
    (["framework=tensorflow", "network.conv_mode=conv_3D"], "framework=torch"),
    (["framework.sparse=true"], "sparse"),
    (["framework.distributed_mode=horovod"], "horovod"),
    (["run.distributed=true"], "Start it with torchrun, mpirun, srun or poprun"),
    (["run.horovod_num_groups=2"], "horovod"),
    (["run.compute_mode=DPCPP"], "finds no Intel card (xpu). Use run.compute_mode=CPU"),
    (["run.lazy_mode=true"], "HPU"),
    (["run.num_replicas=2"], "IPU"),
    (["run.stages=2"], "IPU"),
    (["run.compute_mode=IPU", "run.num_replicas=0"], "at least 1"),
    (["run.compute_mode=IPU", "run.num_replicas=3"], "Use a multiple of 3"),
    (["run.compute_mode=IPU", "run.stages=15"], "depth 6 can be split into"),
    (["network.vertex=true", "network.depth=1"], "network.depth is 1"),
    (["data=synthetic", "network.event_label=true"], "need events with a neutrino"),
    (['run.id=""'], "use run.id=NAME"),
    (["mode.name=inference"], "Use mode=inference"),
    (["framework.name=tensorflow"], "does not fit framework=torch"),
    (["data.synthetic=true"], "Use data=synthetic"),
    (["mode=visualize", "mode.events=0"], "mode.events is 0"),
    (["mode=iotest", "mode.start_index=-1"], "mode.start_index is -1"),
    (["mode=iotest", "data.downsample=8"], "Use data.downsample=7 or less"),
    (["mode=inference"], "Train first"),
    (["mode.weights_location=/nowhere"], "mode.weights_location=/nowhere holds no checkpoint"),
    (["data.generator_seed=-1"], "at least 0"),
    (["network.depth=-1"], "network.depth is -1"),
    (["network.block_concat=true", "network.conv_mode=conv_3D"], "conv_2D"),
    (["mode.optimizer.learning_rate=0"], "above 0"),
    (["mode.optimizer.learning_rate=.inf"], "finite"),
    (["mode.optimizer.gradient_accumulation=0"], "at least 1"),
    (["mode.checkpoint_iteration=0"], "at least 1"),
    (["run.minibatch_size=0"], "at least 1"),
    (["run.iterations=0"], "at least 1"),
    (["data.downsample=-1"], "at least 0"),
    (["network.depth=7"], "network.depth=6 or less"),
    (["data.downsample=2"], "network.depth=5 or less"),
    (["data.downsample=7"], "data.downsample=1 or less"),
    (["network.normalization=layer"], "conv_3D"),
    (["network.filter_size_deepest=4"], "odd"),
    (["network.weight_decay=0.1"], "TensorFlow"),
    (["run.minibatch_size=500"], "data.events is 400"),
    (["data.aux_events=1"], "data.aux_events is 1"),
    (["data=real"], "cosmic_tagging_train.h5: the folder does not exist"),
    (["data=synthetic", "mode=visualize"], "nothing to show"),
    (["run.compute_mode=IPU", "framework.engine=eager"], "which runs compiled programs"),
    (["run.compute_mode=HPU", "framework.engine=pilotage"], "not available for run.compute_mode=HPU"),
    (["framework.engine=pilotage", "run.precision=mixed"], "does not scale losses"),
    (["framework.engine=pilotage", "mode.optimizer.name=lamb"], "cannot train with mode.optimizer.name=lamb"),
    (["run.run_length=-1"], "run.run_length is -1"),
    (["run.run_length=3", "run.iterations=5"], "Use one of them"),
    (
        ["mode.optimizer.lr_schedule.name=flat", "mode.optimizer.learning_rate=0.1"],
        "Use mode.optimizer.lr_schedule.peak_learning_rate",
    ),
    (
        ["mode.optimizer.lr_schedule.name=flat", "mode.optimizer.lr_schedule.decay_floor=1e-5"],
        "name=standard or one_cycle",
    ),
    (["mode.optimizer.lr_schedule.peak_learning_rate=0.1"], "no meaning for the schedule warmup"),
    (
        ["mode.optimizer.lr_schedule.name=standard", "mode.optimizer.lr_schedule.peak_learning_rate=0"],
        "positive and finite",
    ),
]


@pytest.mark.parametrize(
    ("words", "message"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_invalid_settings_are_refused_in_one_line(words, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)) as refused:
        check(configured(words))
    assert "\n" not in str(refused.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_a_missing_card_is_refused():
    with pytest.raises(ConfigurationError, match=r"run\.compute_mode=CPU"):
        check(configured(["run.compute_mode=GPU"]))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["mode=visualize", "run.precision=float16"],
        ["run.precision=bfloat16"],
        ["run.precision=float16"],
        ["run.precision=mixed"],
        ["run.compute_mode=HPU", "run.precision=float16"],
        ["mode=iotest", "mode.start_index=3"],
        ["run.run_length=3", "run.run_units=iteration"],
        ["mode.optimizer.lr_schedule.name=one_cycle", "mode.optimizer.lr_schedule.min_learning_rate=1e-4"],
        ["data=synthetic"],
        ["network.depth=6", "data.downsample=1"],
        ["network.conv_mode=conv_3D", "network.normalization=layer"],
        ["mode=iotest", "data=synthetic"],
        ["mode=iotest", "network.depth=6", "data.downsample=4"],
    ],
)
def test_valid_settings_pass(words):
    check(configured(words))


def test_a_minibatch_larger_than_the_file_is_refused(tmp_path):
    generate_file(tmp_path / "two.h5", events=2, seed=1)
    words = ["data=real", f"data.data_directory={tmp_path}", "data.file=two.h5", "data.aux_file=two.h5"]
    check(configured([*words, "run.minibatch_size=2"]))
    with pytest.raises(ConfigurationError, match="which holds 2 events"):
        check(configured([*words, "run.minibatch_size=3"]))


def test_a_missing_validation_file_is_allowed(tmp_path):
    generate_file(tmp_path / "two.h5", events=2, seed=1)
    words = ["data=real", f"data.data_directory={tmp_path}", "data.file=two.h5"]
    check(configured([*words, "data.aux_file=missing.h5"]))
    check(configured([*words, 'data.aux_file=""']))
    with pytest.raises(ConfigurationError, match=r"No file .*missing\.h5"):
        check(configured([*words, "data.file=missing.h5", "data.aux_file=two.h5"]))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "the folder has no .h5 file"),
        (("light.h5", "notes.txt"), "the folder has light.h5"),
        ([f"{number}.h5" for number in range(6)], "the folder has 0.h5, 1.h5, 2.h5, 3.h5 and 2 more"),
    ],
)
def test_a_message_about_a_missing_file_names_those_beside_it(tmp_path, names, said):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ConfigurationError) as refused:
        check(configured(["data=real", f"data.data_directory={tmp_path}"]))
    assert f"No file {tmp_path}/cosmic_tagging_train.h5: {said}. Set data.data_directory" in str(refused.value)


def test_a_network_too_deep_for_the_images_of_a_file_is_refused(tmp_path):
    generate_file(tmp_path / "large.h5", events=2, seed=1)
    with (
        EventFile(tmp_path / "large.h5") as source,
        PredictionWriter(tmp_path / "small.h5", source=source, downsample=3) as writer,
    ):
        batch = source.dense_batch([0, 1], 3)
        writer.write(batch, batch.label)
    words = ["data=real", f"data.data_directory={tmp_path}", "data.file=small.h5", "data.aux_file=small.h5"]
    check(configured([*words, "network.depth=4", "data.downsample=1"]))
    with pytest.raises(ConfigurationError, match="images of 160 x 256, which cannot be halved 6 times"):
        check(configured([*words, "network.depth=5", "data.downsample=1"]))
