"""Blocks that begin at a module."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import nn

from poptorch.ops.blocks import BeginBlock, LegacyBeginBlockFn, removeBlocks
from poptorch.poptorch_core import Error


def through_pickle(module):
    return pickle.loads(pickle.dumps(module))


def through_a_file(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_the_hook_of_a_block_has_a_description():
    layer = BeginBlock(nn.Linear(1, 1), ipu_id=1)
    assert [repr(hook) for hook in layer._forward_pre_hooks.values()] == ["BeginBlock(user_id=None, ipu_id=1)"]


@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, through_pickle, through_a_file])
def test_blocks_survive_copies_and_files(compiled, way, rows, sharded, visited):
    model = way(nn.Sequential(BeginBlock(nn.Linear(3, 3), "a", 0), BeginBlock(nn.Linear(3, 3), "b", 1)))
    assert visited(compiled(model, sharded).compile(rows)) == [("a", 0, 0), ("b", 1, 1)]
    with pytest.raises(Error, match="already been assigned"):
        BeginBlock(model[0])


def test_a_module_belongs_to_one_block():
    layer = BeginBlock(nn.Linear(1, 1))
    with pytest.raises(Error, match=r"module has already been assigned to a block\."):
        BeginBlock(layer)


def test_a_function_becomes_a_module_that_begins_a_block(compiled, rows, sharded, visited):
    model = BeginBlock(torch.relu, "a", ipu_id=1)
    assert isinstance(model, LegacyBeginBlockFn)
    run = compiled(model, sharded)
    assert torch.equal(run(-rows), torch.relu(-rows))
    assert visited(run) == [("a", 1, 1)]
    assert "BeginBlock(user_id=a, ipu_id=1)" in repr(model)


def test_only_modules_and_functions_can_begin_a_block():
    with pytest.raises(Error, match="not with int"):
        BeginBlock(3)


def test_blocks_can_be_removed(compiled, rows, visited):
    layers = [BeginBlock(nn.Linear(3, 3), ipu_id=0), nn.ReLU(), BeginBlock(torch.neg, ipu_id=1)]
    model = nn.Sequential(*layers)
    other_hook = layers[0].register_forward_pre_hook(lambda module, inputs: None)
    removeBlocks(model)
    run = compiled(model)
    assert torch.equal(run(rows), model(rows))
    assert visited(run) == []
    assert list(layers[0]._forward_pre_hooks) == [other_hook.id]
    BeginBlock(layers[0])
