"""Fixtures for tests of background loading: file descriptors and shared memory."""

import gc
import os
from pathlib import Path

import pytest


@pytest.fixture
def nothing_left_behind():
    """Fail a test that leaks file descriptors or shared memory."""
    before = _belongings()
    yield
    assert all(now <= then for now, then in zip(_belongings(), before, strict=True))


def _belongings() -> tuple[int, int]:
    gc.collect()
    mappings = Path("/proc/self/maps").read_text()
    return len(os.listdir("/proc/self/fd")), mappings.count("memfd:pilotage-ring") + mappings.count("/dev/shm/")
