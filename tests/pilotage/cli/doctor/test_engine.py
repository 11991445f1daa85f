import pytest
import torch

from pilotage.cli.doctor import trial
from pilotage.cli.doctor.engine import examine_engine
from pilotage.cli.doctor.finding import Verdict


def test_the_backend_is_the_one_that_a_program_would_get():
    finding, *_ = examine_engine(torch)
    assert finding.verdict is Verdict.GOOD
    assert finding.facts["name"] == ("cuda" if torch.cuda.is_available() else "cpu")
    assert finding.facts["reason"] in finding.value


def test_the_variable_chooses_and_is_named_as_the_reason(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    backend, _, training = examine_engine(torch)
    assert "PILOTAGE_BACKEND" in backend.facts["reason"]
    assert training.verdict is Verdict.GOOD


@pytest.mark.parametrize("variable", ["PILOTAGE_BACKEND", "PILOTAGE_TIER"])
def test_a_variable_with_an_unknown_value_is_a_problem(monkeypatch, variable):
    monkeypatch.setenv(variable, "abacus")
    (finding,) = examine_engine(torch)
    assert finding.verdict is Verdict.PROBLEM
    assert "'abacus'" in finding.value
    assert finding.remedy


def test_without_torch_there_is_no_backend():
    (finding,) = examine_engine(None)
    assert finding.verdict is Verdict.PROBLEM
    assert finding.remedy


def test_a_trial_that_differs_from_eager_pytorch_is_a_problem(monkeypatch):
    monkeypatch.setattr(trial, "_engine_step", lambda network, inputs, target: None)
    *_, training = examine_engine(torch)
    assert training.verdict is Verdict.PROBLEM
    assert "differs from eager PyTorch's by" in training.value


def test_a_trial_that_breaks_is_a_problem_that_quotes_the_error(monkeypatch):
    monkeypatch.setattr(trial.nn, "MSELoss", lambda: 1 / 0)
    *_, training = examine_engine(torch)
    assert training.verdict is Verdict.PROBLEM
    assert "ZeroDivisionError" in training.value


def test_the_directory_of_compiled_code_is_named_or_why_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PILOTAGE_CACHE_DIR", str(tmp_path))
    _, compiling, _ = examine_engine(torch)
    assert compiling.verdict is Verdict.GOOD
    assert compiling.value == f"0 programs in {tmp_path}"

    tmp_path.chmod(0o777)
    _, compiling, _ = examine_engine(torch)
    assert compiling.verdict is Verdict.WARNING
    assert "written to by others" in compiling.value

    monkeypatch.setenv("CXX", "no-such-compiler")
    _, compiling, _ = examine_engine(torch)
    assert compiling.verdict is Verdict.ABSENT
    assert "no-such-compiler" in compiling.value


def test_something_wrong_in_the_cache_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("PILOTAGE_CACHE_DIR", str(tmp_path))
    (tmp_path / ("a" * 32)).symlink_to(tmp_path)
    (tmp_path / f".{'b' * 32}.half").mkdir()
    _, compiling, _ = examine_engine(torch)
    assert compiling.verdict is Verdict.WARNING
    assert compiling.facts["wrong"] == {"foreign": 1, "leftover": 1}
    assert "pilotage cache check" in compiling.remedy
