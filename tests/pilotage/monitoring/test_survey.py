import os
import subprocess
import sys

import pytest

from pilotage.monitoring.announcement import Activity
from pilotage.monitoring.device import Device
from pilotage.monitoring.survey import Surveyor, assemble

CPU = Device(id="cpu", maker="CPU", name="Swift 9000")
CARDS = [Device(id=f"cuda:{n}", maker="NVIDIA", name="Card", identity=f"GPU-uuid-{n}") for n in range(2)]
NOW = 100.5


@pytest.fixture
def children():
    """The PIDs of three processes that run as long as the test."""
    started = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(3)]
    yield [child.pid for child in started]
    for child in started:
        child.communicate(b"\n")


def test_a_process_is_shown_with_its_programs_in_the_order_in_which_they_came(announcement):
    older, newer = announcement(moment=100.0, since=40.0), announcement(moment=99.0, trains=False)
    survey = assemble([CPU], {os.getpid(): [newer, older]}, ["noted"], NOW)
    (process,) = survey.processes
    assert (process.pid, process.seconds, process.devices) == (os.getpid(), 60.5, ("cpu",))
    assert [program.announcement for program in process.programs] == [older, newer]
    assert survey.notes == ("noted",)


def test_a_card_is_found_by_its_uuid_whatever_its_number_in_the_process(announcement):
    said = announcement(devices=("cuda:0",), hardware=("uuid-1",))
    (process,) = assemble([CPU, *CARDS], {os.getpid(): [said]}, [], NOW).processes
    assert process.devices == ("cuda:1",)


def test_a_device_without_a_number_is_the_first(announcement):
    card = Device(id="hpu:0", maker="Gaudi", name="HL-225")
    survey = assemble([CPU, card], {os.getpid(): [announcement(devices=("hpu",))]}, [], NOW)
    assert survey.processes[0].devices == ("hpu:0",)
    assert survey.devices == (CPU, card)


def test_an_emulated_device_is_added_and_labelled_as_emulated(announcement):
    real = Device(id="hpu:0", maker="Gaudi", name="HL-225")
    said = announcement(devices=("hpu (Gaudi, emulated on the CPU)",))
    survey = assemble([CPU, real], {os.getpid(): [said]}, [], NOW)
    added = survey.devices[-1]
    assert (added.id, added.name, added.is_emulated) == ("hpu", "Gaudi, emulated on the CPU", True)
    assert survey.processes[0].devices == ("hpu",)


def test_a_device_that_only_its_process_knows_is_shown(announcement):
    survey = assemble([CPU], {os.getpid(): [announcement(devices=("cuda:0",), hardware=("uuid-7",))]}, [], NOW)
    assert survey.devices[-1].id == "cuda:0"
    assert not survey.devices[-1].is_emulated


def test_instances_of_a_job_are_listed_together_in_order(announcement, children):
    first, second, third = children
    programs = {
        first: [announcement(since=50.0, job="poprun at here:1", instance=1, instances=2)],
        second: [announcement(since=40.0)],
        third: [announcement(since=30.0, job="poprun at here:1", instance=0, instances=2)],
    }
    survey = assemble([CPU], programs, [], NOW)
    assert [process.pid for process in survey.processes] == [third, first, second]


def test_a_process_known_only_to_the_driver_is_shown_without_a_program():
    card = Device(id="cuda:0", maker="NVIDIA", name="Card", pids=frozenset({os.getpid()}))
    (process,) = assemble([CPU, card], {}, [], NOW).processes
    assert (process.pid, process.programs, process.devices) == (os.getpid(), (), ("cuda:0",))


def test_processes_that_have_just_ended_are_left_out(announcement):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    card = Device(id="cuda:0", maker="NVIDIA", name="Card", pids=frozenset({gone.pid}))
    assert assemble([CPU, card], {}, [], NOW).processes == ()
    assert assemble([CPU], {gone.pid: [announcement()]}, [], NOW).processes == ()


def test_only_a_running_program_has_a_rate(announcement):
    said = [
        announcement(since=1.0, rate=125.0),
        announcement(since=2.0, moment=50.0),
        announcement(since=3.0, activity=Activity.COMPILING, rate=None),
    ]
    (process,) = assemble([CPU], {os.getpid(): said}, [], NOW).processes
    assert [program.steps_per_second for program in process.programs] == [125.0, 0.0, None]


def test_this_machine_can_be_surveyed(run_directory):
    survey = Surveyor().survey()
    assert survey.devices[0].id == "cpu"
    assert survey.processes == () or all(process.programs == () for process in survey.processes)
