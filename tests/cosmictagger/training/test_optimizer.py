"""The configured optimizers."""

import pytest
import torch

from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.errors import CheckpointError
from cosmictagger.training.optimizer import build_optimizer, check_optimizer_state, set_rate


def test_the_configured_optimizer_is_built_and_its_rate_can_be_set():
    weight = torch.nn.Parameter(torch.ones(2))
    adam = build_optimizer(OptimizerKind.adam, [weight], 1e-3)
    rmsprop = build_optimizer(OptimizerKind.rmsprop, [weight], 1e-3)
    assert isinstance(adam, torch.optim.Adam)
    assert isinstance(rmsprop, torch.optim.RMSprop)
    assert rmsprop.defaults["eps"] == 1e-4
    set_rate(adam, 0.5)
    assert adam.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(("made_by", "asked_for"), [("adam", "rmsprop"), ("rmsprop", "adam")])
def test_the_state_of_another_optimizer_is_refused(made_by, asked_for):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = build_optimizer(OptimizerKind[made_by], [weight], 1e-3)
    weight.sum().backward()
    optimizer.step()
    check_optimizer_state(OptimizerKind[made_by], optimizer.state_dict())
    check_optimizer_state(OptimizerKind[asked_for], None)
    with pytest.raises(CheckpointError, match=f"Use mode.optimizer.name={made_by}"):
        check_optimizer_state(OptimizerKind[asked_for], optimizer.state_dict())
