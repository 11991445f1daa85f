"""Words of command lines of the original and its versions."""

from cosmictagger.configuration.words import accepted, key_of, suggestion


def test_entries_of_open_mappings_get_plus_signs():
    assert accepted(["framework.environment_variables.A=1"]) == ["++framework.environment_variables.A=1"]


def test_files_mean_real_data_unless_a_kind_is_named():
    assert accepted(["data.file=a.h5"]) == ["data.file=a.h5", "data=real"]
    assert accepted(["data=generated", "data.data_directory=x"]) == ["data=generated", "data.data_directory=x"]


def test_the_key_of_a_word_has_no_sign():
    assert key_of("++run.id=a=b") == "run.id"


def test_the_nearest_name_is_suggested():
    known = {"run.iterations", "run.id", "network.depth"}
    assert suggestion(["run.iteration=3"], known) == " Did you mean run.iterations?"
    assert suggestion(["depth=3"], known) == " Did you mean network.depth?"
    assert suggestion(["run.id=3"], known) == ""
