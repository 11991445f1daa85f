import pytest
import torch

from pilotage.cli.doctor.engine import examine_engine
from pilotage.cli.doctor.finding import Verdict


def only(findings):
    (finding,) = findings
    return finding


def test_the_backend_is_the_one_that_a_program_would_get():
    finding = only(examine_engine(torch))
    assert finding.verdict is Verdict.GOOD
    assert finding.facts["name"] == ("cuda" if torch.cuda.is_available() else "cpu")
    assert finding.facts["reason"] in finding.value


def test_the_variable_chooses_and_is_named_as_the_reason(monkeypatch):
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")
    assert "PILOTAGE_BACKEND" in only(examine_engine(torch)).facts["reason"]


@pytest.mark.parametrize("variable", ["PILOTAGE_BACKEND", "PILOTAGE_TIER"])
def test_a_variable_that_names_nothing_is_a_problem(monkeypatch, variable):
    monkeypatch.setenv(variable, "abacus")
    finding = only(examine_engine(torch))
    assert finding.verdict is Verdict.PROBLEM
    assert "'abacus'" in finding.value
    assert finding.remedy


def test_without_torch_there_is_no_backend():
    assert only(examine_engine(None)).verdict is Verdict.PROBLEM
