from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from poptorch import _impl, poptorch_core


class Asking(nn.Module):
    def __init__(self, fails=False):
        super().__init__()
        self.fails = fails
        self.answers = []

    def forward(self, x):
        self.answers.append(
            (_impl.isDispatchTracing(), poptorch.isRunningOnIpu(), poptorch_core.isCompilingWithDispatcher())
        )
        if self.fails:
            raise ValueError("no luck")
        return x


def test_only_a_capture_says_that_it_traces_and_compiles():
    module = Asking()
    poptorch.inferenceModel(module)(torch.ones(1))
    module(torch.ones(1))
    assert module.answers[0] == (True, True, True)
    assert module.answers[-1] == (False, False, False)


def test_a_failed_compilation_is_over():
    with pytest.raises(ValueError, match="no luck"):
        poptorch.inferenceModel(Asking(fails=True))(torch.ones(1))
    assert not poptorch_core.isCompilingWithDispatcher()
    assert not _impl.isDispatchTracing()


def test_the_flags_can_be_set():
    for setter, getter in (
        (_impl.setIpuContext, poptorch.isRunningOnIpu),
        (_impl.setDispatchTracing, _impl.isDispatchTracing),
    ):
        setter(True)
        assert getter()
        setter(False)
        assert not getter()
