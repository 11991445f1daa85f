"""The CPU kernels of a graph are compiled together."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pilotage.compiler.joined_kernels import Pending, joined

COMPILED = """
import json
import sys
from pathlib import Path
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from pilotage.compiler.changes import JOINED_KERNELS, Changes
from pilotage.compiler.code import NativeCode
from pilotage.compiler.inductor import compile_graph

def forward(x, y, whole):
    # The products between them keep the kernels apart.
    first = torch.softmax(x @ y, 1)
    second = torch.cumsum(first @ y, 0).sin()
    third = (second @ x).mean(0) + whole.sum()
    return [first, second, third.double() / 7, whole * 2]

torch.manual_seed(0)
arguments = [torch.rand(8, 8), torch.rand(8, 8), torch.arange(8)]
graph, results = make_fx(forward)(*arguments), []
for name, without in (("together", ()), ("apart", (JOINED_KERNELS,))):
    place = Path(sys.argv[1]) / name
    compile_graph(graph, arguments, place, torch.device("cpu"), Changes(frozenset(without)))
    results.append(NativeCode(place, torch.device("cpu"))(*arguments))
for one, other, expected in zip(*results, forward(*arguments), strict=True):
    assert torch.equal(one, other)
    torch.testing.assert_close(one, expected, rtol=1e-5, atol=1e-5)
"""


@pytest.fixture(scope="module", params=["1", "2"])
def folder(request, tmp_path_factory):
    """Code that was compiled together and apart, by this number of threads."""
    place = tmp_path_factory.mktemp(f"threads{request.param}")
    command = ["env", f"TORCHINDUCTOR_COMPILE_THREADS={request.param}", sys.executable, "-c", COMPILED, str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return request.param, place


@pytest.mark.slow
def test_kernels_share_one_library_for_each_thread_of_the_compiler_and_compute_the_same(folder):
    threads, place = folder
    together, apart = place / "together", place / "apart"
    kernels = json.loads((together / "code.json").read_text())["cpp"]
    assert len(kernels) >= 3
    assert len(list(together.glob("*.so"))) == len({file for file, _ in kernels.values()}) == int(threads)
    assert len(list(apart.glob("*.so"))) == len(kernels)


SOURCE = """
#include <torch/csrc/inductor/cpp_prefix.h>
static int helper() { return 1; }
extern "C"  void  kernel(float* out_ptr0, const int64_t ks0)
{
    out_ptr0[0] = helper() + ks0;
}
"""


def test_each_kernel_has_a_namespace_and_headers_come_before_all_of_them():
    text = joined([Pending(("float*", "const int64_t"), SOURCE)] * 2)
    assert text.count("cpp_prefix.h") == text.count("#include <Python.h>") == 1
    assert text.rindex("#include") < text.index("namespace of_kernel_0")
    assert [f"PyInit_kernel_{number}(void)" in text for number in range(3)] == [True, True, False]
    assert "kernel_1(parse_arg<float*>(args, 0), parse_arg<int64_t>(args, 1))" in text


def test_templates_are_inlined_into_each_kernel_so_that_their_sizes_stay_constants():
    assert joined([Pending((), SOURCE)] * 2).count('extern "C" __attribute__((flatten))  void  kernel_') == 2


@pytest.mark.parametrize("source", ["", SOURCE + SOURCE])
def test_a_source_without_exactly_one_kernel_is_refused(source):
    with pytest.raises(ValueError, match="instead of one"):
        joined([Pending((), source)])
