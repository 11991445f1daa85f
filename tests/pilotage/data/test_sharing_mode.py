import os
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch

from pilotage.data.sharing_mode import SharingMode, by_value, start_process


def say_who_it_is(connection, task, other_end):
    if other_end is not None:
        other_end.close()
    connection.send((task, os.getpid(), os.getppid()))


def test_each_way_of_sharing_has_its_start_method():
    assert {sharing_mode.name: sharing_mode.start_method for sharing_mode in SharingMode} == {
        "SHARED_MEMORY": "spawn",
        "FILE_SYSTEM": "spawn",
        "FORK": "fork",
        "FORK_SERVER": "forkserver",
    }


def test_a_started_process_is_connected_by_the_channel():
    process, connection = start_process(SharingMode.FORK, say_who_it_is, "task", preload=[], name="who")
    assert connection.recv() == ("task", process.pid, os.getpid())
    with pytest.raises(EOFError):
        connection.recv()
    process.join()
    assert process.exitcode == 0
    connection.close()


def test_tensors_sent_by_value_use_no_descriptor_and_share_no_memory():
    tensors = [torch.rand(3) for _ in range(5)]
    before = len(os.listdir("/proc/self/fd"))
    carried = pickle.loads(ForkingPickler.dumps(by_value(tensors)))
    assert len(os.listdir("/proc/self/fd")) == before
    assert not any(tensor.is_shared() for tensor in tensors)
    assert all(map(torch.equal, tensors, carried))
