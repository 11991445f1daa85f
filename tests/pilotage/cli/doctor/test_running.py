import json

from pilotage.cli.doctor.finding import Verdict
from pilotage.cli.doctor.running import examine
from pilotage.cli.main import main


def test_the_exit_code_is_zero_without_problems_and_one_otherwise(monkeypatch, capsys):
    assert main(["doctor"]) == 0
    assert "Pilotage can run here" in capsys.readouterr().out
    monkeypatch.setenv("PILOTAGE_BACKEND", "abacus")
    assert main(["doctor"]) == 1
    assert "Pilotage cannot run here" in capsys.readouterr().out


def test_json_holds_every_section_for_programs(capsys):
    assert main(["doctor", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["can_run"] is True
    assert list(read["sections"]) == ["Devices", "Versions", "Compilers", "Vendors' packages", "Engine"]


def test_every_problem_has_a_remedy(monkeypatch):
    monkeypatch.setenv("PILOTAGE_TIER", "abacus")
    monkeypatch.setenv("CXX", "no-such-compiler")
    faults = [each for each in examine().findings if each.verdict in (Verdict.WARNING, Verdict.PROBLEM)]
    assert faults
    assert all(each.remedy for each in faults)
