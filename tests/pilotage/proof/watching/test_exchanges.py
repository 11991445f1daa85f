import subprocess
import sys
from types import SimpleNamespace

from pilotage.proof.watching.exchanges import ExchangeWatch
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Watch


def test_sums_after_backward_are_exchanges_and_all_collectives_are_counted(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path)))
    distributed = SimpleNamespace(all_reduce=lambda tensor: tensor, broadcast=lambda tensor: tensor)
    ExchangeWatch(watch).install(distributed)
    distributed.all_reduce(1)
    assert watch.pending.exchanges == 0
    watch.pending.backwards = 1
    assert distributed.all_reduce(2) == 2
    distributed.broadcast(3)
    assert watch.pending.exchanges == 1
    assert watch.summaries[0]() == {"collectives": {"all_reduce": 2, "broadcast": 1}}


SCRIPT = """
import atexit, threading, time, torch

release = threading.Event()
# Registered before torch's group: runs after all that the watch has registered.
atexit.register(lambda: print("released" if release.is_set() else "still running"))

import torch.distributed as dist
from pilotage.proof.watching.exchanges import ExchangeWatch
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Watch

ExchangeWatch(Watch(WatchSettings(folder="."))).install(dist)
dist.init_process_group("gloo", init_method="file://{path}", rank=0, world_size=1)


def busy():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass
    release.set()


threading.Thread(target=busy, daemon=True).start()
"""


def test_a_watched_script_that_joins_a_group_waits_for_its_threads_at_the_end(tmp_path):
    script = SCRIPT.replace("{path}", str(tmp_path / "store"))
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.stdout, ended.returncode) == ("released\n", 0), ended.stderr
