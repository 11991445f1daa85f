"""Shared scalars are computed once."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.lowerings import is_shared_scalar


def test_a_scalar_is_shared_if_larger_values_depend_on_it():
    def function(x, rate):
        scale = rate * 2
        return x * scale, scale + 1, torch._foreach_mul([x, x], rate.sqrt())[0], (rate > 0).any()

    graph = make_fx(function, tracing_mode="fake")(torch.rand(3), torch.tensor(0.5))
    shared = [node.target for node in graph.graph.nodes if node.op == "call_function" and is_shared_scalar(node)]
    assert shared == [torch.ops.aten.mul.Tensor, torch.ops.aten.sqrt.default]


COMPILED = """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from pilotage.compiler.changes import Changes
from pilotage.compiler.inductor import _inductor_source, _prepared

def update(first, second, gradient, step):
    size = torch.pow(0.9, step + 1)
    torch._foreach_mul_([first, second], size.float())
    torch._foreach_add_([first, second], [gradient, gradient])
    return [first.sum()]

def arguments():
    return [torch.ones(64, 64), torch.ones(64, 64), torch.ones(64, 64), torch.tensor(1.0, dtype=torch.float64)]

prepared, _ = _prepared(make_fx(update)(*arguments()))
source, _ = _inductor_source(prepared, arguments(), torch.device("cpu"), Changes())
print(source.count("std::pow("))
"""


@pytest.mark.slow
def test_compiled_code_computes_a_power_once_for_all_parameters():
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "1"
