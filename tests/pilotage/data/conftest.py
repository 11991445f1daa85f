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
    """Fail a test after which this process holds more descriptors, or maps more shared memory, than before."""
    before = _belongings()
    yield
    assert all(now <= then for now, then in zip(_belongings(), before, strict=True))


def _belongings() -> tuple[int, int]:
    gc.collect()
    mappings = Path("/proc/self/maps").read_text()
    return len(os.listdir("/proc/self/fd")), mappings.count("memfd:pilotage-ring") + mappings.count("/dev/shm/")
