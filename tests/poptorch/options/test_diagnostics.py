import importlib
from pathlib import Path

import pytest
import torch
from torch import nn

import poptorch
from poptorch.options import Options


@pytest.fixture(autouse=True)
def _no_engine_options_in_the_environment(monkeypatch):
    monkeypatch.delenv("POPLAR_ENGINE_OPTIONS", raising=False)


def test_the_directory_of_logs_is_stored():
    assert Options().logDir("logs").log_dir == "logs"
    with pytest.raises(AssertionError, match="Unexpected type"):
        Options().logDir(None)


def test_the_number_of_repeats_is_stored():
    assert Options().maxRepeatLogs(10).max_repeat_logs == 10
    assert Options().maxRepeatLogs(None).max_repeat_logs == 2**64 - 1
    for wrong in (-1, "3", 1.5):
        with pytest.raises(AssertionError, match="maxRepeatLogs"):
            Options().maxRepeatLogs(wrong)


def test_excluded_locations_can_be_replaced_or_extended():
    options = Options().sourceLocationExcludes(["a"]).appendToLocationExcludes("b", "c")
    assert options._source_location_excludes == ["a", "b", "c"]
    assert options.sourceLocationExcludes(["d"])._source_location_excludes == ["d"]


@pytest.mark.parametrize("excludes", ["a", [1]])
def test_excluded_locations_must_be_strings(excludes):
    with pytest.raises(AssertionError, match="strings"):
        Options().sourceLocationExcludes(excludes)


def test_the_choice_of_the_progress_bar_is_stored():
    assert Options().showCompilationProgressBar(False)._show_compilation_progress_bar is False
    assert Options().showCompilationProgressBar()._show_compilation_progress_bar is True


def test_the_choice_to_count_cycles_is_stored():
    assert Options().logCycleCount(True)._Popart.options["instrumentWithHardwareCycleCounter"] is True
    with pytest.raises(AssertionError, match="logCycleCount"):
        Options().logCycleCount(1)


@pytest.mark.parametrize(("directory", "stored"), [(None, "."), ("there", "there"), (Path("there"), "there")])
def test_a_profile_goes_to_its_directory(directory, stored, caplog):
    options = Options().enableProfiling(directory)
    assert options._Popart.options["engineOptions"] == {
        "debug.allowOutOfMemory": "true",
        "autoReport.directory": stored,
        "autoReport.all": "true",
    }
    assert not caplog.messages


def test_profiling_keeps_other_engine_options():
    options = Options()
    options._Popart.setEngineOptions({"opt.level": "1"})
    assert options.enableProfiling()._Popart.options["engineOptions"]["opt.level"] == "1"


def test_profiling_warns_of_options_in_the_environment(monkeypatch, caplog):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"autoReport.all": "false", "opt.level": "1"}')
    Options().enableProfiling()
    [message] = caplog.messages
    assert "autoReport.all" in message
    assert "opt.level" not in message


def test_engine_options_in_the_environment_have_to_be_json(monkeypatch):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "{")
    with pytest.raises(ValueError, match="POPLAR_ENGINE_OPTIONS is not JSON"):
        Options().enableProfiling()


def test_an_excluded_file_is_not_given_as_the_place_of_an_error(tmp_path, monkeypatch):
    (tmp_path / "library_of_layers.py").write_text("def choose(x):\n    return x[x > 0]\n")
    monkeypatch.syspath_prepend(tmp_path)
    choose = importlib.import_module("library_of_layers").choose

    class Model(nn.Module):
        def forward(self, x):
            return choose(x)

    with pytest.raises(poptorch.Error, match=r"at .*library_of_layers.py:2"):
        poptorch.inferenceModel(Model())(torch.ones(2))
    options = Options().sourceLocationExcludes(["of_layers"])
    with pytest.raises(poptorch.Error, match=r"at .*test_diagnostics.py:\d+ in forward: return choose") as caught:
        poptorch.inferenceModel(Model(), options)(torch.ones(2))
    assert "library" not in str(caught.value)


def test_an_excluded_file_is_not_the_location_of_a_nan_loss():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return poptorch.identity_loss((x * self.weight).log(), "sum")

    def message(options):
        options.Precision.enableFloatingPointExceptions(True)
        with pytest.raises(poptorch.Error) as caught:
            poptorch.trainingModel(Model(), options)(torch.ones(1))
        return str(caught.value)

    assert "test_diagnostics.py" in message(Options())
    assert "test_diagnostics.py" not in message(Options().appendToLocationExcludes("test_diagnostics"))
