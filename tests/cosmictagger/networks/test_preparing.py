"""Kernels compiled beside the capture."""

import threading

import torch

from cosmictagger.networks.preparing import Workshop

HERE = torch.device("cpu")


class Kernel:
    """Notes what it is compiled for, once it may."""

    def __init__(self) -> None:
        self.compiled: list[tuple[object, ...]] = []
        self.may_go_on = threading.Event()

    def warmup(self, *arguments, grid, **tile):
        self.may_go_on.wait()
        if "WIDTH" not in tile:
            raise ValueError("no tile")
        self.compiled.append((*arguments, tile["WIDTH"]))


def test_each_kernel_is_compiled_once_for_each_kind_of_arguments():
    workshop, kernel = Workshop(), Kernel()
    kernel.may_go_on.set()
    for width in (8, 16, 8):
        workshop.order(HERE, kernel, torch.float32, None, WIDTH=width)
    workshop.order(HERE, kernel, torch.bfloat16, None, WIDTH=8)
    workshop.finish()
    wanted = {(torch.float32, None, 8), (torch.float32, None, 16), (torch.bfloat16, None, 8)}
    assert set(kernel.compiled) == wanted
    assert len(kernel.compiled) == 3


def test_ordering_does_not_wait_and_finishing_does():
    workshop, kernel = Workshop(), Kernel()
    workshop.order(HERE, kernel, torch.float32, WIDTH=8)
    assert not kernel.compiled
    threading.Timer(0.01, kernel.may_go_on.set).start()
    workshop.finish()
    assert kernel.compiled


def test_a_kernel_that_cannot_be_compiled_is_left_to_its_call():
    workshop, kernel = Workshop(), Kernel()
    kernel.may_go_on.set()
    workshop.order(HERE, kernel, torch.float32)
    workshop.finish()
    workshop.order(HERE, kernel, torch.float32, WIDTH=8)
    workshop.finish()
    assert kernel.compiled == [(torch.float32, 8)]
