"""Settings for all tests: one thread, a clean environment, and waiting for processes to end."""

import argparse
import importlib.util
import os
import re
import select
import signal
from collections.abc import Callable

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    """Other programs share the cores, and sums are repeatable in one thread; each test begins with one."""
    # Collecting tests that need no torch takes a tenth of the time without it.
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """Ignore the developer's own environment variables."""
    for name in ("BACKEND", "CARDS", "TIER", "LOG_LEVEL", "CACHE_SIZE", "CACHE_AGE"):
        monkeypatch.delenv(f"PILOTAGE_{name}", raising=False)
    # Tests compile only on request, and do not write to the user's cache.
    monkeypatch.setenv("PILOTAGE_CACHE_DIR", "off")


def wait_for_end(process_id: int, seconds: float = 30) -> bool:
    """Wait, without polling, for the end of a process that need not be a child."""
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
    """Whether a process ends in time."""
    return wait_for_end


def pytest_configure() -> None:
    """Hide all test processes from the user's monitor, and handle interrupts as programs do.

    `--hypothesis-profile=quick` runs fewer examples.
    """
    # Machines with a card need nothing but torch, numpy and pytest.
    if importlib.util.find_spec("hypothesis") is not None:
        from hypothesis import HealthCheck, settings

        # The time of an example depends on the load of the machine.
        settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("patient")
        settings.register_profile("quick", max_examples=20)
    os.environ["PILOTAGE_RUN_DIR"] = "off"
    # Otherwise each compiling process first compiles a test program for each vector unit of the processor.
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
    # A shell ignores interrupts for tests that it starts in the background.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer `--part`, so that several machines can share the long tests."""
    parser.addoption("--part", type=_part, metavar="K/N", help="run only the K-th of N equal parts of the tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that download unless asked for; keep every N-th test, so that matrices are divided evenly."""
    if "downloads" not in config.getoption("-m"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("downloads")])
        items[:] = [item for item in items if not item.get_closest_marker("downloads")]
    if (part := config.getoption("--part")) is None:
        return
    number, parts = part
    kept = items[number - 1 :: parts]
    config.hook.pytest_deselected(items=[item for index, item in enumerate(items) if index % parts != number - 1])
    items[:] = kept


def _part(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part of a whole. Write K/N with K from 1 to N, as in 1/3.")
    return int(match[1]), int(match[2])
