"""Splitting a network into stages."""

import pytest
import torch

import poptorch
from cosmictagger.devices.graphcore.stages import begin_stages, parts_of, strategy_for


def test_modules_are_in_the_order_of_forward(small):
    net = small.network()
    seen = []
    for part in parts_of(net):
        part.register_forward_pre_hook(lambda module, inputs: seen.append(module))
    net(torch.randn(1, 3, 8, 12))
    assert seen == parts_of(net)


def test_stages_begin_at_different_modules_and_the_first_at_the_first(small):
    net = small.network()
    assert begin_stages(net, 3) == ["stage0", "stage1", "stage2"]
    marked = [part for part in parts_of(net) if part._forward_pre_hooks]
    assert len(marked) == 3
    assert marked[0] is net.initial_convolution
    assert begin_stages(small.network(), 1) == []


@pytest.mark.parametrize(("accumulation", "kind"), [(3, poptorch.PipelinedExecution), (2, poptorch.ShardedExecution)])
def test_stages_are_pipelined_if_batches_fill_them(accumulation, kind):
    assert type(strategy_for(["a", "b"], accumulation)) is kind
