"""What the compiler is told before it begins."""

from __future__ import annotations

import subprocess
import sys

import pytest

RULES = """
import torch
from pilotage.backends.native.compiler import decomposition_rules
aten = torch.ops.aten
for device in ("cpu", "cuda"):
    rules = decomposition_rules(torch.device(device))
    names = [name for name in ("native_dropout", "max_pool2d_with_indices_backward", "log_sigmoid_forward")
             if getattr(aten, name).default in rules]
    print(device, *names)
"""


REWRITING = """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from pilotage.backends.native import compiler

seen = []
rewrite = compiler.rewrite_for_card
compiler.rewrite_for_card = lambda graph, device: (seen.append(device.type), rewrite(graph, device))

def count(first, second):
    first.add_(1)
    second.add_(1)
    return [first + second]

for device in ("cpu", "cuda"):
    arguments = [torch.tensor(1), torch.tensor(2)]
    compiler._inductor_source(make_fx(count)(*arguments), [torch.tensor(1), torch.tensor(2)], torch.device(device))
print(*seen)
"""


@pytest.mark.slow
def test_what_is_compiled_for_a_card_is_rewritten_before():
    done = subprocess.run([sys.executable, "-c", REWRITING], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["cuda"], done.stderr


@pytest.mark.slow
def test_draws_stay_whole_on_every_device_and_gradients_of_pooling_on_cards():
    done = subprocess.run([sys.executable, "-c", RULES], capture_output=True, text=True, check=True)
    cpu, cuda = (line.split() for line in done.stdout.splitlines())
    assert "native_dropout" not in {*cpu, *cuda}
    assert "log_sigmoid_forward" in {*cpu} & {*cuda}
    assert "max_pool2d_with_indices_backward" not in cuda
