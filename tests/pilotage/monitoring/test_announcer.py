import logging
import subprocess
import sys

import pytest

from pilotage.events import BackendChosen, CompilationProgress, StepsRun, TierChanged
from pilotage.monitoring.announcement import Activity, Announcement, ProgramDescription
from pilotage.monitoring.announcer import Announcer

CHOSEN = BackendChosen(backend="cpu", device="cpu", tier="graph", reason="the test")
READY = CompilationProgress(fraction=1.0, doing="done")
ENDING = """
import sys
from pilotage.events import BackendChosen
from pilotage.monitoring.announcement import ProgramDescription
from pilotage.monitoring.announcer import Announcer
announcer = Announcer(ProgramDescription(), lambda device: "")
announcer.note(BackendChosen(backend="cpu", device="cpu", tier="graph", reason="the test"))
from pilotage.options import environment
print(len(list(environment.run_directories()[0].iterdir())))
"""


class Clock:
    """A clock that only moves when it is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def announcer(run_directory, clock) -> Announcer:
    return Announcer(ProgramDescription(), lambda device: "", clock)


def call(seconds: float = 0.5, micro_batches: int = 10, device: str = "cpu", tier: str = "graph") -> StepsRun:
    return StepsRun(device=device, tier=tier, micro_batches=micro_batches, updates=micro_batches, seconds=seconds)


def said(directory) -> Announcement:
    (path,) = directory.iterdir()
    return Announcement.from_text(path.read_bytes())


def test_a_program_is_announced_while_it_compiles_when_it_starts_and_with_its_first_call(announcer, run_directory):
    announcer.note(CHOSEN)
    assert said(run_directory).activity is Activity.COMPILING
    announcer.note(READY)
    assert said(run_directory).activity is Activity.STARTING
    announcer.note(call(seconds=0.5))
    announced = said(run_directory)
    assert announced.activity is Activity.RUNNING
    assert (announced.calls, announced.steps, announced.updates, announced.rate) == (1, 10, 10, 20.0)


def test_calls_within_a_second_are_counted_and_not_written(announcer, run_directory, clock):
    announcer.note(call())
    first = said(run_directory)
    for _ in range(1000):
        clock.now += 0.0009
        announcer.note(call(seconds=0.0009))
    assert said(run_directory) == first
    clock.now = 1001.0
    announcer.note(call(seconds=0.0009))
    later = said(run_directory)
    assert (later.calls, later.steps, later.moment) == (1002, 10020, 1001.0)
    assert later.rate == 10010.0
    assert later.period == pytest.approx(1 / 1001)


def test_after_a_pause_the_rate_is_that_of_the_current_call(announcer, run_directory, clock):
    announcer.note(call())
    clock.now += 60.0
    announcer.note(call(seconds=0.1))
    assert said(run_directory).rate == pytest.approx(100.0)


def test_long_calls_are_not_a_pause(announcer, run_directory, clock):
    for _ in range(3):
        clock.now += 20.0
        announcer.note(call(seconds=20.0))
    announced = said(run_directory)
    assert announced.rate == pytest.approx(0.5)
    assert announced.period == pytest.approx(20.0)


def test_a_change_of_tier_is_announced_with_the_next_call(announcer, run_directory, clock):
    announcer.note(call())
    announcer.note(TierChanged(tier="compiled", updates=1, reason="the test"))
    announcer.note(call(tier="compiled"))
    assert said(run_directory).tier == "compiled"


def test_several_devices_are_split_and_identified(run_directory):
    announcer = Announcer(ProgramDescription(), {"cuda:0": "one", "cuda:1": "two"}.__getitem__)
    announcer.note(call(device="cuda:0, cuda:1"))
    assert said(run_directory).devices == ("cuda:0", "cuda:1")
    assert said(run_directory).hardware == ("one", "two")


def test_a_comma_in_a_device_name_does_not_split_it(announcer, run_directory):
    announcer.note(call(device="hpu (Gaudi, emulated on the CPU)"))
    assert said(run_directory).devices == ("hpu (Gaudi, emulated on the CPU)",)


def test_a_detached_program_is_withdrawn_until_its_next_call(announcer, run_directory, clock):
    announcer.note(call())
    since = said(run_directory).since
    announcer.leave()
    assert not list(run_directory.iterdir())
    clock.now += 0.1
    announcer.note(call())
    assert said(run_directory).since == since
    assert said(run_directory).calls == 2


def test_a_program_that_fails_to_compile_is_withdrawn(announcer, run_directory):
    def fail() -> None:
        with announcer.entering():
            announcer.note(CHOSEN)
            raise RuntimeError("too large")

    with pytest.raises(RuntimeError, match="too large"):
        fail()
    assert not list(run_directory.iterdir())


def test_a_deleted_program_is_withdrawn(run_directory):
    announcer = Announcer(ProgramDescription(), lambda device: "")
    announcer.note(call())
    assert list(run_directory.iterdir())
    del announcer
    assert not list(run_directory.iterdir())


def test_a_process_that_ends_removes_its_file(run_directory):
    ran = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True)
    assert ran.stdout == "1\n", ran.stderr
    assert not list(run_directory.iterdir())


def test_if_nothing_can_be_written_the_program_continues_with_one_note(tmp_path, monkeypatch, caplog, clock):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PILOTAGE_RUN_DIR", str(tmp_path / "file/run"))
    announcer = Announcer(ProgramDescription(), lambda device: "", clock)
    with caplog.at_level(logging.DEBUG, logger="pilotage"):
        for _ in range(3):
            clock.now += 2.0
            announcer.note(call())
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("`pilotage monitor` cannot show this process: ")


def test_announcing_can_be_switched_off(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTAGE_RUN_DIR", "off")
    monkeypatch.chdir(tmp_path)
    announcer = Announcer(ProgramDescription(), lambda device: pytest.fail("nobody asked"))
    for event in (CHOSEN, READY, call()):
        announcer.note(event)
    assert not list(tmp_path.iterdir())
