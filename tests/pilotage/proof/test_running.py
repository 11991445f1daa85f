"""Real processes: scripts that train, and scripts that crash, hang, fork or never train."""

import runpy
import signal
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from pilotage.errors import ProofError
from pilotage.proof.process_tree import EndedBySignal, Signals, processes_with
from pilotage.proof.running import run_watched
from pilotage.proof.watching.settings import WatchSettings

CASES = runpy.run_path(str(Path(__file__).parent / "cases.py"))
ENDINGS = {each.word: each.script for each in CASES["endings"]()}

EXPECTED = {
    "crashes": r"AFTER failed with exit status 1 after 2 of 50 updates. Last line of stderr: IndexError: Target 7",
    "exits": r"AFTER failed with exit status 3 after 6 of 50 updates. Last line of stderr: the loss does not fall",
    "hangs": r"AFTER was stopped after 20 s \(--timeout\), with [0-2] of 50 updates",
    "never-trains": r"AFTER ended without a backward pass",
    "reads-input": r"AFTER failed with exit status 1 after 0 of 50 updates. Last line of stderr: EOFError",
    "syntax-error": r"AFTER failed with exit status 1 after 0 of 50 updates. Last line of stderr: SyntaxError",
}


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Run a script in an empty folder; nothing of it may be left afterwards."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "record"

    def run(script, *, timeout=120.0, **settings):
        made = WatchSettings(folder=str(folder), **settings)
        return run_watched("AFTER", [sys.executable, str(script)], made, timeout=timeout)

    yield run
    assert not processes_with(str(folder))


@pytest.mark.slow
@pytest.mark.parametrize("word", sorted(EXPECTED))
def test_a_script_that_ends_badly_gives_one_clear_line(watched, word):
    with pytest.raises(ProofError, match=EXPECTED[word]) as caught:
        watched(ENDINGS[word], timeout=20.0 if word == "hangs" else 120.0)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_an_error_with_a_message_of_several_lines_is_named(watched, script):
    path = script(
        "import torch\n"
        "weight = torch.nn.Parameter(torch.ones(2))\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "weight.sum().backward()\n"
        "optimizer.step()\n"
        "raise ValueError('there are no events:\\n- none in a.h5\\n- none in b.h5')\n"
    )
    with pytest.raises(ProofError, match=r"1 of 50 updates. ValueError: there are no events: - none in a.h5 - none in"):
        watched(path)


@pytest.mark.slow
def test_the_error_of_a_script_under_torchrun_is_named(tmp_path, script):
    path = script("import torch\nraise ValueError('there are no events')\n")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(path)]
    with pytest.raises(ProofError, match=r"Last line of stderr: .*ValueError: there are no events$"):
        run_watched("AFTER", command, WatchSettings(folder=str(tmp_path / "record")), timeout=120.0)


@pytest.mark.slow
def test_helpers_that_a_script_leaves_behind_are_ended(watched):
    run = watched(ENDINGS["forks"])
    assert run.record.steps == 10


@pytest.mark.slow
def test_an_endless_script_is_ended_after_the_last_update(watched, script):
    path = script(
        "import torch\n"
        "weight = torch.nn.Parameter(torch.ones(3))\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "while True:\n"
        "    optimizer.zero_grad()\n"
        "    weight.square().sum().backward()\n"
        "    optimizer.step()\n"
    )
    run = watched(path, steps=12)
    assert run.record.steps == 12
    assert run.record.first.end["how"] == "stopped"
    assert not run.is_complete
    assert run.failure is None
    first, second = (run.record.first.updates[number].losses[0] for number in (0, 1))
    assert second == pytest.approx(first * 0.64)
    assert sorted(run.record.first.weights) == [*range(11), 12]


LOADING = (
    "import torch\n"
    "from torch.utils.data import DataLoader\n"
    "weight = torch.nn.Parameter(torch.ones(3))\n"
    "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loop",
    [
        # Updates are counted, and each takes four batches.
        "done = 0\n"
        "while done < 20:\n"
        "    for number, batch in enumerate(DataLoader(torch.ones(80, 3), batch_size=2), 1):\n"
        "        (weight * batch).square().mean().backward()\n"
        "        if number % 4 == 0:\n"
        "            optimizer.step()\n"
        "            optimizer.zero_grad()\n"
        "            done += 1\n",
        # The script has as many batches as it asks for.
        "batches = iter(DataLoader(torch.ones(80, 3), batch_size=4))\n"
        "for _ in range(20):\n"
        "    optimizer.zero_grad()\n"
        "    (weight * next(batches)).square().mean().backward()\n"
        "    optimizer.step()\n",
    ],
    ids=["accumulates", "asks for batches"],
)
def test_a_script_that_counts_its_updates_reaches_its_end(watched, script, loop):
    run = watched(script(LOADING + loop), steps=12)
    assert (run.failure, run.is_complete, run.record.steps) == (None, True, 12)


@pytest.mark.slow
def test_a_script_that_would_never_make_another_update_is_ended(watched, script):
    path = script(
        f"{LOADING}done = 0\n"
        "while done < 60:\n"
        "    held = []\n"
        "    for batch in DataLoader(torch.ones(80, 3), batch_size=2):\n"
        "        held.append(batch)\n"
        "        if len(held) == 4:\n"
        "            (weight * torch.cat(held)).square().mean().backward()\n"
        "            optimizer.step()\n"
        "            done, held = done + 1, []\n"
    )
    run = watched(path, steps=12)
    assert (run.failure, run.record.first.end["how"], run.record.steps) == (None, "stopped", 12)


@pytest.mark.slow
def test_a_thread_that_trains_on_and_on_ends_the_script(watched, script):
    path = script(
        "import queue, threading, torch\n"
        "def train():\n"
        "    weight = torch.nn.Parameter(torch.ones(3))\n"
        "    optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "    while True:\n"
        "        optimizer.zero_grad()\n"
        "        weight.square().sum().backward()\n"
        "        optimizer.step()\n"
        "threading.Thread(target=train, daemon=True).start()\n"
        "queue.Queue().get()\n"
    )
    run = watched(path, steps=12)
    assert (run.status, run.failure, run.record.steps) == (0, None, 12)


TRAINING = (
    "import torch\n"
    "weight = torch.nn.Parameter(torch.ones(3))\n"
    "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
    "for _ in range(6):\n"
    "    optimizer.zero_grad()\n"
    "    weight.square().sum().backward()\n"
    "    optimizer.step()\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "failure"),
    [
        ("raise OSError('disk\\nfull')", "failed with exit status 1 after the last compared step. OSError: disk full"),
        (
            "raise SystemExit('no space')",
            "failed with exit status 1 after the last compared step. Last line of stderr: no space",
        ),
        ("import os; os.abort()", "failed with signal 6 after the last compared step."),
        pytest.param(
            "import time; time.sleep(60)",
            "was stopped after 20 s (--timeout), after the last compared step.",
            marks=pytest.mark.long,
        ),
        ("", None),
    ],
)
def test_a_script_that_fails_after_its_last_compared_step_says_so_in_one_line(watched, script, ending, failure):
    path = script(f"{TRAINING}{ending}\n")
    run = watched(path, steps=6, timeout=20.0 if "sleep" in ending else 120.0)
    assert run.record.steps == 6
    assert run.failure == (None if failure is None else f"AFTER {failure}")
    assert run.is_complete is (failure is None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "leaving", ["os._exit(0)", "multiprocessing.get_context('fork').Process(target=train).start()"]
)
def test_updates_before_an_exit_at_once_are_recorded(watched, script, leaving):
    body = "".join(f"    {line}\n" for line in TRAINING.splitlines()[1:])
    train = "train()\n" if leaving.startswith("os") else ""
    path = script(f"import multiprocessing, os, torch\ndef train():\n{body}{train}{leaving}\n")
    run = watched(path)
    assert run.record.steps == 6
    assert run.record.first.reached_its_end
    assert sorted(run.record.first.weights) == [*range(7)]


@pytest.mark.slow
def test_a_training_process_that_fails_is_named_though_its_command_does_not_fail(watched, script):
    path = script(f"{TRAINING}raise OSError('disk full')\n", "training.py")
    run = watched(script(f"import subprocess, sys\nsubprocess.run([sys.executable, {str(path)!r}])\n"), steps=6)
    assert (run.status, run.failure) == (0, "AFTER failed after the last compared step. OSError: disk full")


@pytest.mark.slow
def test_a_process_that_does_not_know_its_environment_is_ended(watched, script, tmp_path, ends):
    path = script(
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '60'], env={'PATH': '/usr/bin:/bin'})\n"
        f"open('child', 'w').write(str(child.pid))\n{TRAINING}"
    )
    assert watched(path, steps=6).failure is None
    assert ends(int((tmp_path / "child").read_text()))


def test_a_command_that_does_not_exist_is_one_line(tmp_path):
    settings = WatchSettings(folder=str(tmp_path / "record"))
    with pytest.raises(ProofError, match="AFTER cannot be started: No such file or directory: no-such-launcher"):
        run_watched("AFTER", ["no-such-launcher", "train.py"], settings, timeout=10)


def test_a_command_without_torch_is_not_watched(tmp_path):
    settings = WatchSettings(folder=str(tmp_path / "record"))
    with pytest.raises(ProofError, match="none of its processes was watched"):
        run_watched("AFTER", [sys.executable, "-c", "pass"], settings, timeout=60)


def test_records_are_for_their_owner_only(tmp_path):
    folder = tmp_path / "record"
    with pytest.raises(ProofError):
        run_watched("AFTER", [sys.executable, "-c", "pass"], WatchSettings(folder=str(folder)), timeout=60)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
@pytest.mark.parametrize(
    "compiled",
    [
        "forward = torch.compile(forward, backend='eager', fullgraph=True)",
        "step = torch.compile(step, backend='eager')",
        "backward = torch.compile(backward, backend='eager')",
        "update = torch.compile(update, backend='eager')",
    ],
    ids=["a whole graph", "an optimizer", "a backward pass", "a whole update"],
)
def test_compiled_parts_of_a_script_are_watched(watched, script, compiled):
    path = script(
        "import torch\n"
        "weight = torch.nn.Parameter(torch.ones(2))\n"
        "optimizer = torch.optim.Adam([weight], lr=0.1)\n"
        "forward, step = lambda x: (x * weight).square().sum(), optimizer.step\n"
        "def backward():\n"
        "    forward(torch.ones(2)).backward()\n"
        "def update():\n"
        "    optimizer.zero_grad()\n"
        "    backward()\n"
        "    step()\n"
        f"{compiled}\n"
        "for _ in range(50):\n"
        "    update()\n"
    )
    assert watched(path).record.steps == 50


def test_a_script_is_ended_by_a_signal_that_python_dropped(tmp_path, script):
    signals = Signals()
    settings = WatchSettings(folder=str(tmp_path / "record"), steps=3)
    timer = Timer(1.0, lambda: setattr(signals, "number", signal.SIGTERM))
    timer.start()
    began = time.monotonic()
    command = [sys.executable, str(script("import time\ntime.sleep(120)\n"))]
    with pytest.raises(EndedBySignal, match="143"):
        run_watched("AFTER", command, settings, timeout=100, signals=signals)
    assert time.monotonic() - began < 60
    assert not processes_with(settings.folder)
    timer.join()
