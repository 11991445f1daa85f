"""Settings and graphs that Inductor gets."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import types

import pytest

from pilotage.compiler.inductor import _keep, _Recorder
from pilotage.compiler.wrapper import NotSelfContained

RULES = """
import torch
from pilotage.compiler.inductor import decomposition_rules
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
from pilotage.compiler import inductor as compiler

seen = []
rewrite = compiler.rewrite_for_card
compiler.rewrite_for_card = lambda graph, device, changes: (
    seen.append(device.type), rewrite(graph, device, changes)
)

def count(first, second):
    first.add_(1)
    second.add_(1)
    return [first + second]

for device in ("cpu", "cuda"):
    arguments = [torch.tensor(1), torch.tensor(2)]
    prepared, _ = compiler._prepared(make_fx(count)(*arguments))
    compiler._inductor_source(prepared, [torch.tensor(1), torch.tensor(2)], torch.device(device), compiler.Changes())
print(*seen)
"""

NORMALISING = """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from pilotage.compiler import inductor as compiler
from pilotage.compiler.changes import FUSED_BATCH_NORM

def normalised(x, weight, bias, mean, variance):
    return [torch.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5)[0].relu()]

arguments = [torch.rand(4, 3, 8, 8), *(torch.rand(3) for _ in range(4))]
graph = make_fx(normalised)(*[argument.clone() for argument in arguments])
expected = [argument.clone() for argument in arguments]
(result,) = normalised(*expected)
for without in (frozenset(), frozenset({FUSED_BATCH_NORM})):
    changes = compiler.Changes(without)
    prepared, _ = compiler._prepared(graph)
    source, _ = compiler._inductor_source(prepared, arguments, torch.device("cpu"), changes)
    loaded = {"__name__": "inductor", "__file__": "inductor.py"}
    exec(compile(source, "<inductor>", "exec"), loaded)
    given = [argument.clone() for argument in arguments]
    (found,) = loaded["call"](list(given))
    torch.testing.assert_close(found, result)
    torch.testing.assert_close(given, expected)
    print(FUSED_BATCH_NORM in changes.made, "batch_norm" in source)
"""


@pytest.mark.slow
def test_batch_normalisation_is_fused_or_left_to_torch():
    # As in the compiling process: with CI, Inductor refuses to leave it to torch.
    plain = {**os.environ, "CI": ""}
    done = subprocess.run([sys.executable, "-c", NORMALISING], capture_output=True, text=True, check=False, env=plain)
    assert done.stdout.splitlines() == ["True False", "False True"], done.stderr


EMPTYING = """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from pilotage.compiler import inductor as compiler

def take(weights, pool, small, other):
    weights.add_(pool)
    torch._foreach_zero_([pool, small])
    return [other + 1]

arguments = [torch.rand(400, 400), torch.rand(400, 400), torch.rand(7), torch.rand(3)]
graph = make_fx(take)(*[argument.clone() for argument in arguments])
for device in ("cpu", "cuda"):
    prepared, _ = compiler._prepared(graph)
    source, written = compiler._inductor_source(prepared, arguments, torch.device(device), compiler.Changes())
    loaded = {"__name__": "inductor", "__file__": "inductor.py"}
    exec(compile(source, "<inductor>", "exec"), loaded)
    given = [argument.clone() for argument in arguments]
    loaded["call"](list(given))
    print(device, "aten._foreach" in source, *sorted(written), float(given[1].norm()), float(given[2].norm()))
"""


@pytest.mark.slow
def test_pools_of_any_size_are_zeroed_in_place_by_a_compiled_kernel():
    done = subprocess.run([sys.executable, "-c", EMPTYING], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{device} False 0 1 2 0.0 0.0" for device in ("cpu", "cuda")], done.stderr


@pytest.mark.slow
def test_graphs_for_a_card_are_rewritten_before_compilation():
    done = subprocess.run([sys.executable, "-c", REWRITING], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["cuda"], done.stderr


BUILT_IN = """
import sys
from pathlib import Path
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from pilotage.compiler.code import NativeCode
from pilotage.compiler.inductor import compile_graph

weights, mask, nothing = torch.rand(3, dtype=torch.float64), torch.tensor([True, False, True]), torch.empty(0, 3)
scale = torch.tensor(0.5)

def forward(x):
    return [torch.where(mask, x * weights, 0) * scale + torch.cat([nothing, x]).sum(0)]

given = torch.rand(4, 3)
graph = make_fx(forward)(given)
names = {node.target for node in graph.graph.nodes if node.op == "get_attr"}
assert len(names) == 4, names
place = Path(sys.argv[1]) / "code"
compile_graph(graph, [given], place, torch.device("cpu"))
(found,) = NativeCode(place, torch.device("cpu"))(given)
torch.testing.assert_close(found, forward(given)[0])
(found,) = NativeCode(place, torch.device("cpu"))(given)
torch.testing.assert_close(found, graph(given)[0])
print("right")
"""


@pytest.mark.slow
def test_tensors_that_are_built_into_a_graph_are_stored_beside_its_code(tmp_path):
    command = [sys.executable, "-c", BUILT_IN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["right"], done.stderr


@pytest.mark.slow
def test_dropout_is_never_decomposed_and_pooling_gradients_not_on_cards():
    done = subprocess.run([sys.executable, "-c", RULES], capture_output=True, text=True, check=True)
    cpu, cuda = (line.split() for line in done.stdout.splitlines())
    assert "native_dropout" not in {*cpu, *cuda}
    assert "log_sigmoid_forward" in {*cpu} & {*cuda}
    assert "max_pool2d_with_indices_backward" not in cuda


def test_recompiled_kernels_are_not_confused_with_loaded_ones(tmp_path):
    for number in (1, 2):
        # As if a program was removed from the cache and compiled again while the old one still runs.
        folder, source = tmp_path / "entry", tmp_path / f"built{number}.so"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        program = f"int number(void) {{ return {number}; }}"
        subprocess.run(["gcc", "-shared", "-x", "c", "-", "-o", str(source)], input=program, text=True, check=True)
        assert ctypes.CDLL(str(folder / _keep(source, folder, 0))).number() == number


class CardKernel:
    """What the launcher of torch 2.15 knows about a kernel with one argument."""

    name, num_warps, shared, arg_tys = "triton_0", 4, 0, "O"
    arg_names, full_constexprs = ["source"], {}
    has_global_scratch, has_profile_scratch = True, True

    def __init__(self, scratch):
        self.global_scratch_size = scratch

    def run(self, *launch):
        """Launch nothing."""

    def tuned(self):
        """The kernel after tuning, with a launcher like the generated one."""
        namespace = {"runner": self.run}
        exec("def launcher(source, *, stream): runner(1, 1, 1, stream, source)", namespace)
        namespace["launcher"]._is_static = True
        return types.SimpleNamespace(launchers=[namespace["launcher"]])


def test_a_kernel_whose_launcher_allocates_memory_at_each_launch_is_refused():
    with pytest.raises(NotSelfContained, match="the kernel triton_0 needs scratch memory"):
        _Recorder(CardKernel(4096).tuned())


@pytest.mark.parametrize("scratch", [0, None])
def test_scratch_arguments_without_memory_are_recorded(scratch):
    recorder = _Recorder(CardKernel(scratch).tuned())
    recorder.run("memory", stream=7)
    assert (recorder.facts().scratch, recorder.facts().positions) == (2, (0,))
