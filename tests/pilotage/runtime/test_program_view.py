from __future__ import annotations

import pytest
import torch

import pilotage
from pilotage.errors import AttachmentError, NotCompiledError
from pilotage.options.choices import Tier

VIEWS = ("captured", "program", "output_structure", "chosen_tier", "has_synthetic_inputs", "times", "random_streams")


def test_a_program_is_seen_once_it_is_compiled(pair):
    trained = pair()
    executor = trained.executor
    assert not executor.is_compiled
    for name in VIEWS:
        with pytest.raises(NotCompiledError):
            getattr(executor, name)
    trained.step(trained.batch())
    assert executor.is_compiled
    assert executor.captured.trains
    assert executor.program.trains
    assert executor.chosen_tier is Tier.GRAPH
    assert not executor.has_synthetic_inputs
    assert len(executor.random_streams.states) == 1
    assert executor.times is not None


def test_weights_and_the_state_of_the_optimizer_are_those_on_the_device(pair):
    trained = pair()
    trained.step(trained.batch())
    on_device = {name: tensor.clone() for name, tensor in trained.executor.weights_on_device().items()}
    torch.testing.assert_close(on_device, dict(trained.module.named_parameters()), rtol=0, atol=0)
    state, whole = trained.executor.optimizer_state(), trained.executor.whole_optimizer_state()
    assert state is not None
    assert whole is not None
    assert state.updates == whole.updates == 1
    assert state.slots.keys() == whole.slots.keys()


def test_weights_are_not_on_a_device_that_is_detached():
    infer = pilotage.inference(torch.nn.Linear(2, 1))
    infer(torch.ones(1, 2))
    infer.detach()
    with pytest.raises(AttachmentError):
        infer._executor.weights_on_device()
