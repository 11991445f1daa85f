"""Words of command lines of the original and its versions."""

import pytest

from cosmictagger.configuration.words import accepted, check_form, check_hydra, key_of, suggestion
from cosmictagger.errors import ConfigurationError


def test_entries_of_open_mappings_get_plus_signs():
    assert accepted(["framework.environment_variables.A=1"]) == ["++framework.environment_variables.A=1"]


def test_files_mean_real_data_unless_a_kind_is_named():
    assert accepted(["data.file=a.h5"]) == ["data.file=a.h5", "data=real"]
    assert accepted(["data=generated", "data.data_directory=x"]) == ["data=generated", "data.data_directory=x"]


def test_the_key_of_a_word_has_no_sign():
    assert key_of("++run.id=a=b") == "run.id"


def test_the_nearest_name_is_suggested():
    known = {"run.iterations", "run.id", "network.depth", "network"}
    members = {"network": ("a21", "uresnet", "uresnet3d")}
    assert suggestion(["run.iteration=3"], known, members) == " Did you mean run.iterations?"
    assert suggestion(["depth=3"], known, members) == " Did you mean network.depth?"
    assert suggestion(["run.id=3", "network=a21"], known, members) == ""
    assert suggestion(["network=resnet"], known, members) == " Did you mean network=uresnet?"
    assert suggestion(["network=vgg"], known, members) == ""
    known.add("mode.optimizer.lr_schedule.name")
    for form in ("mode.optimizer.lr_schedule", "mode/optimizer/lr_schedule"):
        assert suggestion([f"{form}=cosine"], known, members) == ""


@pytest.mark.parametrize("words", [["mode", "train"], ["run.id", "=", "x"], ["mode=train", "a21"]])
def test_a_word_without_a_value_is_refused(words):
    with pytest.raises(ConfigurationError, match="is not a setting"):
        check_form(words)


def test_a_field_may_be_removed_or_set_to_nothing():
    check_form(["~hydra.job_logging", "data.aux_file="])


def test_settings_of_hydra_that_hold_anyway_are_accepted():
    check_hydra(["hydra/job_logging=disabled", "hydra.output_subdir=null", "hydra.run.dir=.", "~hydra.job_logging"])
    check_hydra(["run.id=hydra.run", "hydra.job.chdir=False"])


@pytest.mark.parametrize("word", ["hydra.run.dir=elsewhere", "hydra.sweep.dir=x", "++hydra.verbose=true"])
def test_settings_of_hydra_without_effect_are_refused(word):
    with pytest.raises(ConfigurationError, match=r"has no effect here.*output_dir=FOLDER"):
        check_hydra(["run.id=x", word])
