"""The optimizers as they are configured."""

import torch

from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.training.optimizer import build_optimizer, set_rate


def test_the_configured_optimizer_is_built_and_its_rate_moves():
    weight = torch.nn.Parameter(torch.ones(2))
    adam = build_optimizer(OptimizerKind.adam, [weight], 1e-3)
    rmsprop = build_optimizer(OptimizerKind.rmsprop, [weight], 1e-3)
    assert isinstance(adam, torch.optim.Adam)
    assert isinstance(rmsprop, torch.optim.RMSprop)
    assert rmsprop.defaults["eps"] == 1e-4
    set_rate(adam, 0.5)
    assert adam.param_groups[0]["lr"] == 0.5
