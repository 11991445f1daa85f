"""ResNet-18 under poprun with two instances: one model, and statistics of BatchNorm for each instance."""

from __future__ import annotations

import copy
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("resnet_program.py")
INSTANCES = 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What each instance has trained."""
    folder = tmp_path_factory.mktemp("resnet")
    command = [sys.executable, "-m", "pilotage.cli.run.poprun", f"--num-instances={INSTANCES}"]
    command += [f"--num-replicas={INSTANCES}", sys.executable, str(PROGRAM), str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("PILOTAGE_BACKEND", "cpu")
        ran = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [torch.load(folder / f"{instance}.pt", weights_only=True) for instance in range(INSTANCES)]


@pytest.fixture(scope="module")
def expected():
    """The same in eager PyTorch: gradients are averaged, and each instance has its own statistics."""
    program = runpy.run_path(str(PROGRAM))
    networks = [program["model"]() for _ in range(INSTANCES)]
    optimizers = [
        torch.optim.SGD(each.parameters(), lr=program["RATE"], momentum=program["MOMENTUM"]) for each in networks
    ]
    images, labels = program["dataset"]().tensors
    share, losses = program["SAMPLES"] // INSTANCES, []
    for start in [*range(0, share, program["BATCH"])] * program["EPOCHS"]:
        step = []
        for instance, network in enumerate(networks):
            part = slice(instance * share + start, instance * share + start + program["BATCH"])
            network.zero_grad()
            _, loss = network(images[part], labels[part])
            loss.backward()
            step.append(loss.item())
        for parameters in zip(*(network.parameters() for network in networks), strict=True):
            mean = torch.stack([parameter.grad for parameter in parameters]).mean(0)
            for parameter in parameters:
                parameter.grad = mean.clone()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(sum(step) / INSTANCES)
    return losses, [copy.deepcopy(network.state_dict()) for network in networks]


def is_weight(name):
    return name.endswith(("weight", "bias"))


def test_the_weights_of_all_instances_are_equal_to_the_last_bit(trained):
    first, second = (each["state"] for each in trained)
    assert all(torch.equal(first[name], second[name]) for name in first if is_weight(name))


def test_each_instance_keeps_its_own_statistics(trained):
    first, second = (each["state"] for each in trained)
    assert not torch.equal(first["model.bn1.running_mean"], second["model.bn1.running_mean"])


def test_weights_statistics_and_losses_are_those_of_eager_pytorch(trained, expected):
    losses, states = expected
    for instance, state in enumerate(states):
        for name, value in state.items():
            if not name.endswith("num_batches_tracked"):
                torch.testing.assert_close(trained[instance]["state"][name], value, rtol=1e-3, atol=1e-5, msg=name)
    torch.testing.assert_close(trained[0]["losses"], losses, rtol=1e-4, atol=1e-4)
    assert trained[0]["losses"] == trained[1]["losses"]
