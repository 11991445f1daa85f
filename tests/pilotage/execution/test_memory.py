import torch

from pilotage.execution.memory import free_memory, wait_for


def test_the_host_has_some_memory_left():
    device = torch.device("cpu")
    before = free_memory(device)
    assert 0 < before < 1 << 62
    wait_for(device)
