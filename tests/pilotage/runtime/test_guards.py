"""Methods that would lose a wrapped model raise an error."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import LostModelError

MOVES = {
    "to": lambda model: model.to("cpu"),
    "to_type": lambda model: model.to(torch.float16),
    "cuda": lambda model: model.cuda(),
    "cuda_number": lambda model: model.cuda(0),
    "cpu": lambda model: model.cpu(),
    "hpu": lambda model: model.hpu(),
    "xpu": lambda model: model.xpu(),
    "ipu": lambda model: model.ipu(),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("move", MOVES)
def test_a_wrapped_model_refuses_to_be_moved_and_says_what_to_do(move, compiled):
    model = pilotage.inference(nn.Linear(2, 2))
    if compiled:
        model(torch.ones(1, 2))
    with pytest.raises(
        LostModelError, match=rf"\.{move.partition('_')[0]}\(\) was called on a wrapped model.*PILOTAGE_BACKEND"
    ):
        MOVES[move](model)


TYPES = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32, "double": torch.float64}


@pytest.mark.parametrize("method", TYPES)
def test_types_can_change_only_before_compilation(method):
    module = nn.Linear(2, 2).double() if method == "float" else nn.Linear(2, 2)
    model = pilotage.inference(module)
    assert getattr(model, method)() is model
    assert module.weight.dtype == TYPES[method]
    assert model(torch.ones(1, 2, dtype=TYPES[method])).dtype == TYPES[method]
    with pytest.raises(LostModelError, match=rf"\.{method}\(\) .*already compiled.*destroy\(\)"):
        getattr(model, method)()
    model.destroy()
    assert getattr(model, method)() is model


@pytest.mark.parametrize("method", TYPES)
def test_a_training_model_trains_in_its_new_type(method, pair):
    trained = pair()
    getattr(trained.step, method)()
    trained.step(trained.batch().to(TYPES[method]))
    assert trained.module.layer.weight.dtype == TYPES[method]
    assert trained.step.record.updates == 1


def test_modes_are_set_on_the_module_and_captured_again(pair):
    trained = pair()
    trained.train()
    assert trained.step.eval() is trained.step
    assert not any(part.training for part in trained.module.modules())
    tracked = int(trained.module.norm.num_batches_tracked)
    trained.step(trained.batch())
    assert int(trained.module.norm.num_batches_tracked) == tracked
    assert trained.step.train() is trained.step
    assert all(part.training for part in trained.module.modules())
    trained.step(trained.batch())
    assert int(trained.module.norm.num_batches_tracked) == tracked + 1
    assert trained.step.train(False) is trained.step
    assert not trained.module.training


def test_backward_on_the_loss_of_a_program_is_refused(pair):
    _, loss = pair().step(torch.ones(4, 4))
    with pytest.raises(RuntimeError):
        loss.backward()
