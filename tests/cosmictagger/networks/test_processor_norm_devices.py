"""An emulated Gaudi sums the same blocks as the CPU, so that both give the same bits."""

import inspect
import os
import subprocess
import sys
import textwrap

import pytest


def normalize_on_both():
    import sys

    import torch

    import habana_frameworks.torch.core  # noqa: F401
    from cosmictagger.networks.plane_norm import normalize_planes

    stacks = (
        (1, (1, 8, 256, 256)),  # two whole blocks
        (3, (6, 8, 160, 128)),  # three whole blocks and a rest
        (3, (3, 8, 125, 301)),  # the same with a row size that is not a multiple of a vector
        (3, (3, 2, 317, 331)),  # no number of pixels divides the count, so a row is one pixel
        (3, (6, 40, 10, 16)),  # less than a block
    )

    def found(device, planes, shape, kind, residual):
        generator = torch.Generator().manual_seed(0)

        def drawn(*size):
            values = torch.randn(size, generator=generator) + 3
            values = values.to(kind).contiguous(memory_format=torch.channels_last) if len(size) == 4 else values
            return values.to(device).requires_grad_()

        x, weight, bias, upstream = drawn(*shape), drawn(shape[1]), drawn(shape[1]), drawn(*shape).detach()
        added = drawn(*shape) if residual else None
        y, *statistics = normalize_planes(x, None, weight, bias, added, planes, 0.01, 1e-5)
        leaves = [each for each in (x, weight, bias, added) if each is not None]
        return [each.detach().cpu() for each in (y, *statistics, *torch.autograd.grad(y, leaves, upstream))]

    torch.set_num_threads(int(sys.argv[1]))
    for planes, shape in stacks:
        for kind, residual in ((torch.float32, False), (torch.float32, True), (torch.bfloat16, True)):
            one, other = (found(device, planes, shape, kind, residual) for device in ("cpu", "hpu"))
            unequal = [number for number, pair in enumerate(zip(one, other, strict=True)) if not torch.equal(*pair)]
            assert not unequal, (planes, shape, kind, residual, unequal)


def step_on_both():
    import sys
    from dataclasses import replace

    import torch

    import habana_frameworks.torch.core  # noqa: F401
    from cosmictagger.configuration.choices import LossBalanceScheme
    from cosmictagger.configuration.network import A21
    from cosmictagger.networks.uresnet import build
    from cosmictagger.training.step import TrainingStep

    def found(device):
        torch.manual_seed(0)
        network = build(replace(A21, depth=2, bottleneck_deepest=16)).to(device).train()
        image, label = torch.rand(1, 3, 160, 256), torch.randint(0, 3, (1, 3, 160, 256), dtype=torch.uint8)
        _, loss = TrainingStep(network, LossBalanceScheme.focal)(image.to(device), label.to(device))
        loss.backward()
        gradients = {name: parameter.grad.cpu() for name, parameter in network.named_parameters()}
        return {"loss": loss.detach().cpu(), **gradients, **{k: v.cpu() for k, v in network.named_buffers()}}

    torch.set_num_threads(int(sys.argv[1]))
    one, other = found("cpu"), found("hpu")
    assert not [name for name, tensor in one.items() if not torch.equal(tensor, other[name])]


@pytest.fixture
def alone(tmp_path):
    """Runs a function with its own imports in a new process, because a device cannot be unregistered."""

    def run(program, threads):
        file = tmp_path / "program.py"
        file.write_text(textwrap.dedent(inspect.getsource(program)) + f"\n{program.__name__}()\n")
        command = [sys.executable, str(file), str(threads)]
        known = os.environ | {"PILOTAGE_HPU_ON": "cpu", "OMP_NUM_THREADS": str(threads)}
        return subprocess.run(command, capture_output=True, text=True, env=known)

    return run


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", [normalize_on_both, step_on_both])
def test_an_emulated_gaudi_gives_the_bits_of_the_cpu(alone, program, threads):
    ran = alone(program, threads)
    assert ran.returncode == 0, ran.stdout + ran.stderr
