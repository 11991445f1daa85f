import pytest
import torch
from torch import nn

import poptorch
from pilotage.optim.reading import read_optimizer
from pilotage.program.structure import unflatten
from pilotage.runtime.executor import Executor
from poptorch._args_parser import registered_parsers
from poptorch._capture.capturing import capturing
from poptorch._errors import translated
from poptorch._options.execution import execution_of, resolved
from poptorch.options import Options


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Compiled:
    """A model or function that is compiled and run with PopTorch's options and checks, without its wrapper.

    It is not compared with eager PyTorch, so that forward runs only when it is captured.
    """

    def __init__(self, model, options=None, *, training=False, tier="graph"):
        self.module = module = model if isinstance(model, nn.Module) else Function(model)
        self.training = training
        options = (options or Options()).clone().runOn("cpu", tier=tier).check("off")
        self.options = resolved(options, training=training)
        plan = None
        if training:
            names = {id(parameter): name for name, parameter in module.named_parameters()}
            plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), names)
        self.executor = Executor(
            module, execution=execution_of(self.options, training=training), plan=plan, parsers=registered_parsers()
        )

    def compile(self, *args, **kwargs):
        with translated(), capturing(self.module, self.options, training=self.training) as self.capture:
            self.executor.compile(*args, **kwargs)
        return self

    def __call__(self, *args, **kwargs):
        if not self.executor.is_compiled:
            self.compile(*args, **kwargs)
        with translated(), self.capture.following(self.module):
            outputs = self.executor.run(self.executor.bind(*args, **kwargs))
        return unflatten(self.executor.output_structure, outputs)


@pytest.fixture
def compiled():
    return Compiled


class Regression(nn.Linear):
    """A linear layer that computes its loss."""

    def forward(self, x, target):
        output = super().forward(x)
        return output, nn.functional.mse_loss(output, target)


@pytest.fixture
def regression():
    return Regression(3, 2)


@pytest.fixture
def train_with():
    """Wraps a model for training with an optimizer, or with the default one, without a progress bar."""

    def wrapped(model, optimizer=None):
        return poptorch.trainingModel(model, Options().showCompilationProgressBar(False), optimizer)

    return wrapped


@pytest.fixture(params=["graph", "eager"])
def tier(request):
    return request.param


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch):
    """Use the CPU even if there is a card: results are compared bitwise with eager PyTorch there."""
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


@pytest.fixture
def warnings_of_poptorch(caplog):
    """The warnings of PopTorch's logger so far."""
    caplog.set_level("WARNING", "poptorch::python")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "poptorch::python"]
