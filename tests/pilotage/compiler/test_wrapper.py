"""Inductor's wrappers without Inductor."""

from __future__ import annotations

import pytest
import torch

from pilotage.compiler.wrapper import NotSelfContained, Wrapper, for_card, load, stand_alone

SOURCE = '''
import torch
from math import inf
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
import triton
aten = torch.ops.aten
async_compile = AsyncCompile()
kernel_0 = async_compile.cpp_pybinding(['float*'], """some source""")
async_compile.wait(globals())
del async_compile

class Runner:
    def call(self, args):
        left, right = args
        args.clear()
        out = torch.empty_like(left)
        kernel_0(left)
        extern_kernels.mm(left, right, out=out)
        return (out,)

runner = Runner()
call = runner.call

def get_args():
    raise RuntimeError

def benchmark_compiled_module(times=10):
    raise RuntimeError

if __name__ == "__main__":
    raise RuntimeError
'''


def test_the_compiler_is_removed_and_kernels_are_parameters():
    wrapper = stand_alone(SOURCE)
    assert wrapper.kernels == ("kernel_0",)
    assert "inductor" not in wrapper.source.replace("<inductor>", "")
    assert "triton" not in wrapper.source
    assert "benchmark" not in wrapper.source


def test_the_wrapper_calls_the_given_kernels():
    seen = []
    call = load(stand_alone(SOURCE), {"kernel_0": seen.append}, "test")
    left, right = torch.eye(2), torch.arange(4.0).reshape(2, 2)
    (product,) = call([left, right])
    assert torch.equal(product, right)
    assert seen == [left] or torch.equal(seen[0], left)


def test_the_arguments_are_released():
    arguments = [torch.eye(2), torch.eye(2)]
    load(stand_alone(SOURCE), {"kernel_0": lambda _: None}, "test")(arguments)
    assert arguments == []


def test_functions_of_the_compiler_are_refused():
    with pytest.raises(NotSelfContained, match="no_such_kernel"):
        stand_alone(SOURCE.replace("extern_kernels.mm(", "extern_kernels.no_such_kernel("))


def test_a_bias_is_added_as_torch_adds_it():
    from pilotage.compiler.wrapper import ExternKernels

    bias, left, right = torch.randn(3), torch.randn(4, 5), torch.randn(5, 3)
    out = torch.empty(4, 3)
    ExternKernels.bias_addmm(bias.expand(4, 3), left, right, out=out)
    assert torch.equal(out, torch.addmm(bias, left, right))


def test_arguments_are_not_checked_again_and_results_are():
    lines = """
        assert_size_stride(left, (2, 2), (2, 1), 'input')
        assert_size_stride(out, (2, 2), (2, 1), 'torch.ops.aten.mm.default')
"""
    source = stand_alone(SOURCE.replace("        return", f"{lines}        return")).source
    assert "assert_size_stride(left" not in source
    assert "assert_size_stride(out" in source


def test_a_kernel_of_torch_is_looked_up_once(monkeypatch):
    from pilotage.compiler.wrapper import ExternKernels

    kernels, product = ExternKernels(), torch.mm
    assert kernels.mm is product
    monkeypatch.delattr(torch, "mm")
    assert kernels.mm is product


CHECKED = """
import torch
from torch._inductor.runtime.runtime_utils import assert_tensor_metadata

def call(args):
    (x,) = args
    assert_tensor_metadata(x, (2, 3), (3, 1), torch.float32, 'torch.ops.aten.mm.default')
    return (x,)
"""


def test_the_checks_of_results_that_torch_2_14_writes_need_no_inductor():
    call = load(stand_alone(CHECKED), {}, "checked")
    assert call([torch.zeros(2, 3)])[0].shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"mm\.default returned torch\.float64"):
        call([torch.zeros(2, 3, dtype=torch.float64)])
    with pytest.raises(AssertionError):
        call([torch.zeros(3, 2).t()])


ON_A_CARD = """
def call(args):
    x, = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((0, 4), (4, 1), torch.float32)
        stream0 = get_raw_stream(0)
        kernel_0.run(x, buf0, 0, stream=stream0)
        buf1 = torch.ops.aten.full.default([0], 0, device=device(type='cuda', index=0))
        buf2 = rand_strided((0,), (1,), device='cuda:0', dtype=torch.float32)
    return (buf0, buf1, buf2)
"""


def test_a_wrapper_runs_on_another_card_than_the_one_it_was_compiled_for():
    source = for_card(Wrapper(ON_A_CARD, ("kernel_0",)), 3).source
    expected = (
        ON_A_CARD.replace("_DeviceGuard(0)", "_DeviceGuard(3)")
        .replace("set_device(0)", "set_device(3)")
        .replace("get_raw_stream(0)", "get_raw_stream(3)")
        .replace("index=0", "index=3")
        .replace("cuda:0", "cuda:3")
    )
    assert source == expected.strip()
