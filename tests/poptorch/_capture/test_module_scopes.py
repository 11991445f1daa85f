"""Operations are named after the submodules of a model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch
from pilotage.program.graphs import origins
from poptorch._capture.module_scopes import module_scopes


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return torch.relu(self.linear(x)) + x


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Sequential(nn.Linear(2, 1))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        with poptorch.NameScope("the_loss"):
            with poptorch.NameScope("inner"):
                x = x * 2
            return poptorch.identity_loss(self.head(x), "mean")


def operations(model, kind):
    return [name for name in model.getTensorNames() if kind in name.rpartition("/")[2]]


def test_operations_are_named_after_their_submodules_and_scopes():
    model = poptorch.trainingModel(Model())
    model.compile(torch.ones(1, 2))
    assert operations(model, "addmm") == [
        "blocks/0/linear/addmm",
        "blocks/1/linear/addmm_1",
        "the_loss/head/0/addmm_2",
    ]
    assert operations(model, "relu") == ["blocks/0/relu", "blocks/1/relu_1"]
    assert operations(model, "mul")[0].startswith("the_loss/inner/mul")
    # Backward operations have the name of the operation that they differentiate.
    assert [name.rpartition("/")[0] for name in operations(model, "threshold_backward")] == ["blocks/1", "blocks/0"]
    assert "blocks/0/linear/addmm" in model._debugGetPopartIR()


def test_names_of_submodules_can_be_left_out():
    model = poptorch.trainingModel(Model(), poptorch.Options().disableModuleNamescope())
    model.compile(torch.ones(1, 2))
    assert operations(model, "addmm") == ["addmm", "addmm_1", "the_loss/addmm_2"]


def test_an_operation_is_anchored_by_its_name_with_and_without_submodules():
    module, x = Model(), torch.randn(1, 2)
    options = poptorch.Options()
    options.anchorTensor("long", "blocks/0/linear/addmm")
    options.anchorTensor("short", "addmm")
    model = poptorch.inferenceModel(module, options)
    model(x)
    expected = module.blocks[0].linear(x).detach()
    assert torch.equal(model.getAnchoredTensor("long"), expected)
    assert torch.equal(model.getAnchoredTensor("short"), expected)


def test_all_hooks_are_removed_even_if_forward_fails():
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    module = nn.Sequential(nn.Linear(2, 2), Failing())
    with pytest.raises(KeyError, match="mine"):
        poptorch.inferenceModel(module)(torch.ones(1, 2))
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    model = poptorch.inferenceModel(nn.Sequential(module[0]))
    model.compile(torch.ones(1, 2))
    assert operations(model, "addmm") == ["0/addmm"]


def test_a_submodule_that_is_used_twice_keeps_one_name():
    layer = nn.Linear(2, 2)
    module = nn.Sequential(layer, nn.ReLU(), layer)
    model = poptorch.inferenceModel(module)
    model.compile(torch.ones(1, 2))
    assert operations(model, "addmm") == ["0/addmm", "0/addmm_1"]


def test_an_interrupt_in_a_submodule_leaves_its_scope():
    class Stopped(nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    model = nn.Sequential(nn.Sequential(Stopped()))
    with pytest.raises(KeyboardInterrupt), module_scopes(model):
        model(torch.ones(1))
    assert not origins._scope.get()
