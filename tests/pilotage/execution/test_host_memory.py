"""The memory of the host that steps free and take again."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, resource
import torch
import pilotage
from pilotage.execution.host_memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20

torch.set_num_threads(1)
model = torch.nn.Sequential(*(torch.nn.Conv2d(8, 8, 3, padding=1) for _ in range(6)), torch.nn.Flatten())
images = torch.randn(16, 8, 64, 64)
step = pilotage.training(
    model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), backend="cpu", tier="graph"
)
for _ in range(3):
    step(images, images.flatten(1))
before = faults()
for _ in range(5):
    step(images, images.flatten(1))
taken, attached = faults() - before, resident()
step.detach()
print(json.dumps({"keeps": keep_freed_memory(), "faults": taken, "attached": attached, "detached": resident()}))
"""


def measured(**variables: str) -> dict[str, int]:
    """Page faults of five later steps, and the resident memory in MiB before and after a program leaves the CPU."""

    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC"))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=inherited | variables, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_later_steps_use_the_memory_of_earlier_ones_until_the_program_leaves_the_processor():
    found = measured()
    if not found["keeps"]:
        pytest.skip("the C library is not glibc")
    # One step needs 24 MiB for results and gradients, 6,000 pages.
    assert found["faults"] < 5 * 600
    assert found["detached"] < found["attached"] - 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [{"MALLOC_TRIM_THRESHOLD_": "131072"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}],
    ids=lambda variables: next(iter(variables)),
)
def test_settings_of_the_user_for_the_allocator_count(variables):
    found = measured(**variables)
    assert not found["keeps"]
    assert found["faults"] > 5 * 3000
