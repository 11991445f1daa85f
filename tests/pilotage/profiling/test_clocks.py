"""Clocks of devices."""

from time import perf_counter

import pytest
import torch

from pilotage.profiling.clocks import CardClock, HostClock, clock_for, has_queue, synchronize

CPU = torch.device("cpu")


def test_a_processor_is_timed_by_the_host():
    clock = clock_for(CPU)
    assert isinstance(clock, HostClock)
    assert not has_queue(CPU)
    synchronize(CPU)
    bounds = []
    for size in (8, 512):
        before = perf_counter()
        clock.start()
        started = perf_counter()
        torch.randn(size, size) @ torch.randn(size, size)
        ended = perf_counter()
        clock.stop()
        bounds.append((ended - started, perf_counter() - before))
    for seconds, (least, most) in zip(clock.seconds(), bounds, strict=True):
        assert 0 < least <= seconds <= most
    assert clock.seconds() == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card")
def test_a_card_is_timed_by_its_own_events_whatever_the_host_does():
    device = torch.device("cuda", 0)
    clock = clock_for(device)
    assert isinstance(clock, CardClock)
    matrices = [torch.randn(size, size, device=device) for size in (64, 8192)]
    for _ in range(2):
        for matrix in matrices:
            clock.start()
            matrix @ matrix
            clock.stop()
    seconds = clock.seconds()
    assert len(seconds) == 4
    assert 0 < seconds[2] < 1e-3
    assert seconds[3] > 5 * seconds[2]
