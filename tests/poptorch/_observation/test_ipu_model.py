"""What `useIpuModel` prints and refuses, and the report of `enableProfiling`."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import poptorch
from poptorch._observation.ipu_model import ipu_model_of, out_of_memory
from poptorch.options import Options

_VARIABLES = ("POPTORCH_IPU_MODEL", "POPTORCH_SMALL_IPU_MODEL", "POPTORCH_IPU_MODEL_VERSION", "POPLAR_ENGINE_OPTIONS")
_ALLOWED = json.dumps({"debug.allowOutOfMemory": "true"})


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch):
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


class Classifier(nn.Module):
    """Counts how often forward runs."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Linear(4, width)
        self.head = nn.Linear(width, 2)
        self.runs: list[int] = []

    def forward(self, x, labels=None):
        self.runs.append(1)
        scores = self.head(torch.relu(self.body(x)))
        return scores if labels is None else (scores, nn.functional.cross_entropy(scores, labels))


def _trained(options: Options, calls: int = 1, width: int = 8):
    model = Classifier(width)
    training = poptorch.trainingModel(model, options.check("off"), poptorch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(calls):
        training(torch.ones(6, 4), torch.zeros(6, dtype=torch.long))
    return model, training


def test_the_prediction_is_printed_once_after_the_first_run(capsys):
    model = Classifier()
    options = Options().useIpuModel(True).check("off")
    training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
    call = (torch.ones(6, 4), torch.zeros(6, dtype=torch.long))
    training.compile(*call)
    assert "fits" not in capsys.readouterr().out
    training(*call)
    printed = capsys.readouterr().out
    assert printed.startswith("Classifier: training, 58 parameters in float32, micro-batch 6")
    assert "Graphcore Mk2 IPU" in printed
    assert "  fits: " in printed
    assert "  layers    " in printed
    assert "body" in printed
    training(*call)
    assert capsys.readouterr().out == ""


def test_predicting_runs_forward_no_more_often():
    with_model, _ = _trained(Options().useIpuModel(True))
    without, _ = _trained(Options().useIpuModel(False))
    assert with_model.runs == without.runs


def test_the_names_of_tensors_do_not_depend_on_the_prediction():
    _, with_model = _trained(Options().useIpuModel(True))
    _, without = _trained(Options())
    assert with_model.getTensorNames() == without.getTensorNames()


def test_results_do_not_depend_on_the_prediction():
    torch.manual_seed(3)
    with_model, _ = _trained(Options().useIpuModel(True), calls=3)
    torch.manual_seed(3)
    without, _ = _trained(Options(), calls=3)
    for name, value in with_model.state_dict().items():
        assert torch.equal(value, without.state_dict()[name])


@pytest.mark.parametrize(
    ("variables", "title"),
    [
        ({"POPTORCH_IPU_MODEL": "1", "POPTORCH_IPU_MODEL_VERSION": "ipu1"}, "Graphcore Mk1 IPU"),
        ({"POPTORCH_IPU_MODEL": "1", "POPTORCH_IPU_MODEL_VERSION": "ipu21"}, "Graphcore Bow IPU"),
        ({"POPTORCH_SMALL_IPU_MODEL": "1", "POPLAR_ENGINE_OPTIONS": _ALLOWED}, "4 tiles of Graphcore Mk2 IPU"),
        ({"POPTORCH_SMALL_IPU_MODEL": "1", "POPTORCH_IPU_MODEL": "1"}, "Graphcore Mk2 IPU"),
    ],
)
def test_the_environment_chooses_the_ipu(variables, title, monkeypatch, capsys):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    _trained(Options())
    assert f"\n{title}" in capsys.readouterr().out


def test_the_option_means_the_full_model(monkeypatch, capsys):
    monkeypatch.setenv("POPTORCH_SMALL_IPU_MODEL", "1")
    _trained(Options().useIpuModel(True))
    assert "\nGraphcore Mk2 IPU" in capsys.readouterr().out


def test_an_inference_model_is_predicted_too(capsys):
    poptorch.inferenceModel(Classifier(), Options().useIpuModel(True).check("off"))(torch.ones(6, 4))
    assert "Classifier: inference" in capsys.readouterr().out


def test_nothing_is_printed_where_warnings_are_switched_off(capsys, caplog):
    poptorch.setLogLevel("ERR")
    try:
        _trained(Options().useIpuModel(True))
    finally:
        poptorch.setLogLevel("WARN")
    assert capsys.readouterr().out == ""


_TOO_WIDE = 300_000
"""A layer whose weights alone are larger than 4 tiles."""


def test_a_program_that_does_not_fit_is_refused_as_poplar_does(monkeypatch):
    monkeypatch.setenv("POPTORCH_SMALL_IPU_MODEL", "1")
    with pytest.raises(poptorch.Error, match=r"Out of memory: \d+ bytes used on the fullest tile of IPU 0") as raised:
        _trained(Options(), width=_TOO_WIDE)
    assert raised.value.type == "poplar_graph_memory_allocation_error"
    assert "tiles only have 638976 bytes of memory" in raised.value.message
    assert "debug.allowOutOfMemory" in raised.value.message


def test_a_refused_program_is_not_left_behind_and_is_refused_again(monkeypatch):
    monkeypatch.setenv("POPTORCH_SMALL_IPU_MODEL", "1")
    model = Classifier(_TOO_WIDE)
    options = Options().check("off")
    training = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(2):
        with pytest.raises(poptorch.Error, match="Out of memory"):
            training.compile(torch.ones(6, 4), torch.zeros(6, dtype=torch.long))
        assert not training.isCompiled()


def test_a_run_that_asked_to_continue_is_only_warned(monkeypatch, caplog, capsys):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", _ALLOWED)
    monkeypatch.setenv("POPTORCH_SMALL_IPU_MODEL", "1")
    _trained(Options(), width=_TOO_WIDE)
    assert "Out of memory: " in caplog.text
    assert "The run continues, because debug.allowOutOfMemory is set." in caplog.text
    assert "does not fit" in capsys.readouterr().out


def test_a_program_is_not_refused_on_a_real_device():
    _trained(Options(), width=4)
    assert ipu_model_of(Options(), "name", training=True) is None


def test_a_doubtful_program_is_only_warned_of(caplog, monkeypatch):
    """Ever wider models: one of them needs more than 4 tiles have, by less than the uncertainty of 30 %."""
    monkeypatch.setenv("POPTORCH_SMALL_IPU_MODEL", "1")
    for step in range(20):
        _trained(Options(), width=round(4000 * 1.2**step))
        if "Out of memory: " in caplog.text:
            break
    assert "its lower end fits, so the run continues" in caplog.text


@pytest.mark.slow
def test_profiling_writes_the_report_beside_the_trace(tmp_path):
    _trained(Options().enableProfiling(tmp_path).modelName("small"))
    folder = tmp_path / "small"
    assert {path.name for path in folder.iterdir()} == {"profile.pop", "report.json", "report.html"}
    report = json.loads((folder / "report.json").read_text())
    assert report["program"]["name"] == "small"
    assert report["devices"][0]["title"].startswith("Graphcore Mk2 IPU")
    assert report["devices"][0]["fits"] is True
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_profiling_reports_a_program_that_does_not_fit(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("POPTORCH_SMALL_IPU_MODEL", "1")
    _trained(Options().enableProfiling(tmp_path), width=_TOO_WIDE)
    report = json.loads((tmp_path / "training" / "report.json").read_text())
    assert report["devices"][0]["fits"] is False
    assert "does not fit" in capsys.readouterr().out


def test_a_failing_prediction_does_not_stop_the_run(caplog, capsys):
    _trained(Options().useIpuModel(True).runOn("cpu", tier="eager"))
    assert "was not predicted: The eager tier captures no program" in caplog.text
    assert capsys.readouterr().out == ""


def test_a_program_that_fits_is_not_out_of_memory(tmp_path):
    _, training = _trained(Options().useIpuModel(True))
    assert training._ipu_model is not None
    assert out_of_memory(training._ipu_model._report) is None
