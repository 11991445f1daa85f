import json

import pytest

from pilotage.cli.monitor.gc_monitor import main


@pytest.fixture(autouse=True)
def nobody_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(tmp_path / "run"))


def test_gc_monitor_shows_a_partition_even_if_nothing_runs(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "gc-monitor" in shown
    assert "Partition: " in shown
    assert "No attached processes in partition " in shown


def test_its_json_has_the_vendors_list_of_cards(capsys):
    assert main(["--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert "PID" not in read["cards"][0]["ipus"][0]
    assert read["processes"] == []


def test_csv_output_has_one_line_per_device(capsys):
    assert main(["-s", "--csv-output", "--no-headers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cpu,CPU,")


def test_an_unknown_option_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--partition", "x"])
    assert stopped.value.code == 2
    assert "gc-monitor: error" in capsys.readouterr().err
