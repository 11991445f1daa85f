import csv
import io
import json

import pytest

from pilotage.cli.monitor.records import COLUMNS, as_csv, as_json, as_vendors_json
from pilotage.monitoring.announcement import Activity
from pilotage.monitoring.survey import AttachedProcess

STRANGER = AttachedProcess(9, "somebody", "python", 5.0, ("cuda:0",))


def rows(survey, **how) -> list[list[str]]:
    return list(csv.reader(io.StringIO(as_csv(survey, **{"by_device": False, "headers": False, **how}))))


def test_json_has_every_value_by_name(survey, process, program):
    job = program(devices=("cuda:0",), job="poprun at here:1", instance=1, instances=2, replicas=4, program="net")
    processes = process(7, job, command="python x.py"), STRANGER
    read = json.loads(as_json(survey(*processes, card_notes=("no card",), notes=("noted",))))
    assert read["host"] == "vm"
    assert read["moment"] == "2026-11-15T12:00:00.000+00:00"
    assert read["notes"] == ["no card", "noted"]
    assert read["devices"][1] == {
        "id": "cuda:0",
        "maker": "NVIDIA",
        "name": "NVIDIA H200",
        "identity": "GPU-1234",
        "driver": "570.1",
        "is_emulated": False,
        "memory_used": 2**30,
        "memory_total": 139 * 2**30,
        "utilisation": 0.97,
        "temperature": 61.0,
        "board_temperature": None,
        "power": 412.5,
        "clock": 1980.0,
        "pids": [7, 9],
    }
    assert read["processes"][0] == {
        "pid": 7,
        "user": "trainee01",
        "command": "python x.py",
        "seconds": 13.0,
        "devices": ["cuda:0"],
        "programs": [
            {
                "name": "net",
                "trains": True,
                "devices": ["cuda:0"],
                "tier": "graph",
                "activity": "running",
                "calls": 1238,
                "steps": 12380,
                "updates": 50,
                "steps_per_second": 375.4,
                "replicas": 4,
                "instance": 1,
                "instances": 2,
                "stage": None,
                "job": "poprun at here:1",
            }
        ],
    }
    assert read["processes"][1]["programs"] == []


def test_json_is_one_line_if_requested(survey, process):
    assert "\n" not in as_json(survey(process()), indent=None)


def test_readers_of_gc_monitors_json_find_the_devices_in_use(survey, process):
    cards = json.loads(as_vendors_json(survey(process(7))))["cards"]
    assert [[ipu.get("PID") for ipu in card["ipus"]] for card in cards] == [[7], [None]]
    assert "PID" not in cards[1]["ipus"][0]


def test_json_and_the_vendors_json_of_an_idle_machine(survey):
    assert json.loads(as_json(survey()))["processes"] == []
    assert [card["ipus"][0].get("PID") for card in json.loads(as_vendors_json(survey()))["cards"]] == [None, None]


def test_csv_can_be_split_at_commas(survey, process, program):
    text = as_csv(survey(process(7, program(devices=("cuda:0",)), command="a, b\nc")), by_device=True, headers=False)
    processor, card = (line.split(",") for line in text.splitlines())
    assert (processor[16], processor[17], processor[18], processor[25]) == ("", "", "", "53.0")
    assert (card[16], card[17], card[18], card[25]) == ("61.0", "", "412.5", "97.0")


def test_the_header_can_be_left_out(survey):
    assert rows(survey(), headers=True) == [list(COLUMNS)]
    assert rows(survey()) == []
    assert len(rows(survey(), by_device=True, headers=True)) == 3


@pytest.mark.parametrize("by_device", [False, True])
def test_every_line_has_all_columns(survey, process, program, by_device):
    both = process(8, program(activity=Activity.COMPILING, rate=None), program(devices=("cpu", "cuda:0")))
    lines = rows(survey(process(7), both, STRANGER), by_device=by_device)
    assert {len(line) for line in lines} == {len(COLUMNS)}
    # Two devices; or one program, two programs of which one uses two devices, and a foreign process.
    assert len(lines) == (2 if by_device else 5)


def test_csv_lines_include_the_program(survey, process, program):
    (line,) = rows(survey(process(7, program(tier="compiled", replicas=4))))
    named = dict(zip(COLUMNS, line, strict=True))
    assert (named["pid"], named["user"], named["tier"], named["replicas"]) == ("7", "trainee01", "compiled", "4")
    assert (named["steps"], named["steps/s"], named["program"]) == ("12380", "375.4", "training")
    assert named["command"] == "python pytorch_ipu.py"
