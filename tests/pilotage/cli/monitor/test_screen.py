import pytest

from pilotage.cli.monitor.display import plain
from pilotage.cli.monitor.lines import ASCII
from pilotage.cli.monitor.screen import GC_MONITOR, MONITOR, pace, screen
from pilotage.cli.monitor.table import width_of
from pilotage.monitoring.announcement import Activity
from pilotage.monitoring.device import Device
from pilotage.monitoring.survey import AttachedProcess


def shown(survey, width=160, wording=GC_MONITOR, **parts) -> str:
    return plain(screen(survey, wording, ASCII, width, **parts))


def test_one_job_is_shown_as_gc_monitor_shows_it(survey, process):
    assert shown(survey(process(), devices=(Device(id="cpu", maker="CPU", name="Swift 9000", clock=2793.5),))) == (
        """\
+------------+-------------------------------------+
| gc-monitor | Partition: vm [active] has 1 device |
+-----+------+---------------------------+---------+
| ID  | Type |          Device           |  Clock  |
+-----+------+---------------------------+---------+
| cpu | CPU  | Swift 9000                | 2794MHz |
+-----+------+---------------------------+---------+
+---------------------------------------------------+---------------+-------------------------------------+
|        Attached processes in partition vm         |    Device     |               Program               |
+--------+-----------------------+------+-----------+-----+---------+----------+--------+---------+-------+
|  PID   |        Command        | Time |   User    | ID  |  Clock  |   Name   | Steps  | Steps/s | Tier  |
+--------+-----------------------+------+-----------+-----+---------+----------+--------+---------+-------+
| 205698 | python pytorch_ipu.py | 13s  | trainee01 | cpu | 2794MHz | training | 12,380 |     375 | graph |
+--------+-----------------------+------+-----------+-----+---------+----------+--------+---------+-------+"""
    )


def test_a_machine_without_processes_says_so(survey):
    text = shown(survey(card_notes=("NVIDIA: no card.",)))
    assert "| No attached processes in partition vm |" in text
    assert text.endswith("NVIDIA: no card.")
    assert "No attached processes on vm" in shown(survey(), wording=MONITOR)


def test_cards_or_processes_can_be_left_out(survey, process):
    assert "H200" not in shown(survey(process()), devices=False)
    assert "205698" in shown(survey(process()), devices=False)
    assert "H200" in shown(survey(process()), processes=False)
    assert "205698" not in shown(survey(process()), processes=False)


def test_a_note_is_shown_with_its_table(survey):
    noted = survey(card_notes=("NVIDIA: no card.",), notes=("1 announcement cannot be read.",))
    assert shown(noted).endswith("NVIDIA: no card. 1 announcement cannot be read.")
    assert "no card" not in shown(noted, devices=False)
    assert "announcement" not in shown(noted, processes=False)


def test_sensors_are_shown_beside_the_process_on_the_card(survey, process, program):
    text = shown(survey(process(7, program(devices=("cuda:0",)))), devices=False)
    (row,) = [line.split() for line in text.splitlines() if "pytorch_ipu.py" in line]
    assert row[row.index("cuda:0") :][:7] == ["cuda:0", "|", "1980MHz", "|", "61C", "|", "412W"]


def test_instances_and_replicas_get_columns_and_one_sentence(survey, process, program):
    job = "poprun at 127.0.0.1:29500"
    instances = [process(number, program(job=job, instance=number, instances=2, replicas=3)) for number in range(2)]
    text = shown(survey(*instances), width=200)
    assert "Instance" in text
    assert " 1 of 2 " in text
    assert "Replicas" in text
    assert f"{job}: 2 of 2 instances here, 3 replicas each, 751 steps/s together." in text
    alone = shown(survey(process()), width=200)
    assert "Instance" not in alone
    assert "Replicas" not in alone


def test_the_stages_of_an_instance_run_the_same_steps(survey, process, program):
    stages = [process(number, program(job="poprun at here:1", stage=number)) for number in range(2)]
    text = shown(survey(*stages), width=200)
    assert "stage 1" in text
    assert "poprun at here:1: 1 of 1 instance here, 375 steps/s together." in text


def test_a_process_with_several_programs_has_a_line_for_each_at_work(survey, process, program):
    programs = (program(), program(trains=False), program(activity=Activity.IDLE), program(activity=Activity.IDLE))
    lines = shown(survey(process(7, *programs)), devices=False).splitlines()
    assert sum(" 7 " in line for line in lines) == 1
    assert any("training (+2 idle)" in line for line in lines)
    assert any("inference" in line and line.startswith("|   ") for line in lines)


def test_an_idle_process_is_shown_with_its_last_program(survey, process, program):
    programs = (program(activity=Activity.IDLE), program(activity=Activity.IDLE, program="eval", moment=101.0))
    text = shown(survey(process(7, *programs)), devices=False)
    assert "eval (+1 idle)" in text
    assert "| idle |" in text.replace("  ", " ").replace("  ", " ")


def test_a_process_known_only_to_the_driver_is_marked(survey, process):
    stranger = AttachedProcess(7, "somebody", "python", 5.0, ("cuda:0",))
    text = shown(survey(process(), stranger))
    assert "|   7    | python" in text
    assert "somebody" in text
    assert "not ours" in text
    assert "not ours" not in shown(survey(process()))


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 120])
def test_a_narrow_terminal_keeps_what_matters_most(survey, process, program, width):
    job = {"job": "poprun at 127.0.0.1:29500", "instances": 2, "replicas": 2}
    processes = [process(205698 + n, program(instance=n, **job), command="python x " + "y " * 99) for n in range(2)]
    text = shown(survey(*processes, card_notes=("NVIDIA: no card.", "Gaudi: no card.")), width=width)
    assert max(map(width_of, text.splitlines())) <= max(width, 34)
    for word in ("cuda:0", "205698", "205699", "375"):
        assert word in text


def test_the_folder_of_a_script_leaves_room_for_its_name(survey, process):
    assert "python train.py --epochs 5" in shown(survey(process(command="python /a/long/way/train.py --epochs 5")))
    assert "python -m pilotage" in shown(survey(process(command="python -m pilotage")))
    shown(survey(process(command="")))


def test_control_characters_in_a_command_line_do_not_reach_the_terminal(survey, process):
    assert "\x1b" not in shown(survey(process(command="python \x1b[2J\x1b]0;title\x07")))


def test_a_program_without_a_rate_shows_its_activity(program):
    assert pace(program()) == "375"
    assert pace(program(activity=Activity.COMPILING)) == "compiling"
    assert pace(program(activity=Activity.STARTING)) == "first call"
    assert pace(program(activity=Activity.IDLE)) == "idle"
    assert pace(program(rate=None)) == "running"
