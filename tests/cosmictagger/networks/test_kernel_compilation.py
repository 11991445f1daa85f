"""Compiling kernels in the background."""

import threading

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from cosmictagger.networks import plane_norm, pooling, triton_support  # noqa: F401 -- the last one makes operations known
from cosmictagger.networks.kernel_compilation import KernelCompiler

HERE = torch.device("cpu")


class Kernel:
    """Records what it is compiled for, once it is released."""

    def __init__(self) -> None:
        self.compiled: list[tuple[object, ...]] = []
        self.may_go_on = threading.Event()

    def warmup(self, *arguments, grid, **tile):
        self.may_go_on.wait()
        if "WIDTH" not in tile:
            raise ValueError("no tile")
        self.compiled.append((*arguments, tile["WIDTH"]))


def test_each_kernel_is_compiled_once_for_each_kind_of_arguments():
    kernel_compiler, kernel = KernelCompiler(), Kernel()
    kernel.may_go_on.set()
    for width in (8, 16, 8):
        kernel_compiler.submit(HERE, kernel, torch.float32, None, WIDTH=width)
    kernel_compiler.submit(HERE, kernel, torch.bfloat16, None, WIDTH=8)
    kernel_compiler.wait()
    wanted = {(torch.float32, None, 8), (torch.float32, None, 16), (torch.bfloat16, None, 8)}
    assert set(kernel.compiled) == wanted
    assert len(kernel.compiled) == 3


def test_submitting_does_not_block_and_waiting_does():
    kernel_compiler, kernel = KernelCompiler(), Kernel()
    kernel_compiler.submit(HERE, kernel, torch.float32, WIDTH=8)
    assert not kernel.compiled
    threading.Timer(0.01, kernel.may_go_on.set).start()
    kernel_compiler.wait()
    assert kernel.compiled


def test_a_compilation_error_is_left_to_the_call():
    kernel_compiler, kernel = KernelCompiler(), Kernel()
    kernel.may_go_on.set()
    kernel_compiler.submit(HERE, kernel, torch.float32)
    kernel_compiler.wait()
    kernel_compiler.submit(HERE, kernel, torch.float32, WIDTH=8)
    kernel_compiler.wait()
    assert kernel.compiled == [(torch.float32, 8)]


class Orders:
    """Replaces the modules of kernels and records what to prepare."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __getattr__(self, name):
        return lambda *arguments: self.given.append(name)


def test_capturing_a_network_submits_its_kernels(monkeypatch):
    orders = Orders()
    monkeypatch.setattr(triton_support, "supports", lambda x: True)
    monkeypatch.setattr(triton_support, "norm_kernels", lambda: orders)
    monkeypatch.setattr(triton_support, "resizing_kernels", lambda: orders)
    ops = torch.ops.cosmictagger
    with FakeTensorMode():
        x, weight = torch.empty(6, 8, 4, 4), torch.empty(8)
        plane_norm.normalize_planes(x, None, weight, weight, None, 3, 0.01, 1e-5)
        statistics = torch.empty(2, 3, 8)
        plane_norm.normalize_planes_backward(x, x, None, weight, weight, statistics, 0.01, 1e-5, False)
        ops.halve_backward(ops.halve(x), x)
        ops.double_backward(ops.double(x))
    assert orders.given == [
        "prepare",
        "prepare_backward",
        "prepare_halving",
        "prepare_halving_backward",
        "prepare_doubling",
        "prepare_doubling_backward",
    ]
