"""Small programs to predict."""

import pytest
import torch
from torch import nn

from pilotage.capture.model import modes_of
from pilotage.door import execution
from pilotage.optim.following import FollowedOptimizer
from pilotage.prediction.subject import Subject
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten


class Chain(nn.Module):
    """Linear layers of equal width and their loss."""

    def __init__(self, layers: int = 4, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x, target):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return nn.functional.mse_loss(x, target)


def make_subject(module=None, inputs=None, optimizer=torch.optim.Adam, **options):
    module = module or Chain()
    inputs = inputs or [torch.zeros(8, 64), torch.zeros(8, 64)]
    tensors, structure = flatten((tuple(inputs), {}))
    plan = None if optimizer is None else FollowedOptimizer(optimizer(module.parameters()), module).first_plan()
    return Subject(
        name="chain",
        module=module,
        modes=modes_of(module),
        plan=plan,
        execution=execution(check="off", **options),
        arguments=structure,
        micro_batch=tuple(map(TensorSpec.of, tensors)),
    )


@pytest.fixture(scope="session")
def subject_of():
    return make_subject


@pytest.fixture(scope="session")
def chain():
    return Chain


@pytest.fixture(scope="session")
def chain_prediction():
    """Finds the prediction of a chain on a device; each is made once."""
    from pilotage.prediction.devices import device_model
    from pilotage.prediction.prediction import predicted, traced

    known = {}

    def predict(name: str):
        if name not in known:
            model = device_model(name)
            known[name] = predicted(traced(make_subject(), model), model)
        return known[name]

    return predict
