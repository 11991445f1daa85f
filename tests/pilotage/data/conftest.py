"""What the tests of background loading look at: processes, descriptors, shared memory."""

import gc
import os
import select
from collections.abc import Callable
from pathlib import Path

import pytest


def wait_for_end(process_id: int, seconds: float = 30) -> bool:
    """Wait, without polling, until a process that may belong to anyone has ended."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@pytest.fixture
def ends() -> Callable[[int], bool]:
    return wait_for_end


@pytest.fixture
def nothing_left_behind():
    """Fail a test after which there are more descriptors, or more shared memory, than before."""
    descriptors, shared_memory = _belongings()
    yield
    descriptors_now, shared_memory_now = _belongings()
    assert descriptors_now <= descriptors
    assert shared_memory_now <= shared_memory


def _belongings() -> tuple[int, set[str]]:
    gc.collect()
    return len(os.listdir("/proc/self/fd")), {path.name for path in Path("/dev/shm").iterdir()}
