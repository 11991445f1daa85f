import subprocess
import sys
import traceback

import pytest
import torch

import pilotage
from pilotage.errors import PilotageError
from pilotage.program.graphs.tracebacks import ShortTracebacks, shorten


class Model(torch.nn.Module):
    def __init__(self, width=7):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
        self.width = width

    def features(self, inputs):
        return inputs.reshape(-1, self.width)

    def forward(self, inputs):
        return self.layer(self.features(inputs)).sum()


class Branching(torch.nn.Linear):
    def forward(self, inputs):
        return super().forward(inputs).sum() if inputs.sum() > 0 else inputs.sum()


def trained(model):
    return pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1))


def failure(call, *arguments):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*arguments)
    return caught.value


def functions(error):
    """The functions in the traceback of an error below the test's own frame."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__) if frame.name != "failure"]


def test_an_error_in_forward_shows_only_the_users_frames():
    error = failure(trained(Model()), torch.ones(2, 8))
    assert functions(error) == ["forward", "features"]
    assert str(error) == "shape '[-1, 7]' is invalid for input of size 16"
    assert "frames of Pilotage and torch are hidden; PILOTAGE_TRACEBACK=full shows them" in error.__notes__[-1]


def test_the_variable_asks_for_all_frames(monkeypatch):
    monkeypatch.setenv("PILOTAGE_TRACEBACK", "full")
    error = failure(trained(Model()).compile, torch.ones(2, 8))
    assert len(functions(error)) > 20
    assert not hasattr(error, "__notes__")


def test_our_error_replaces_its_cause_at_the_users_line():
    error = failure(trained(Branching(2, 2)), torch.ones(2, 2))
    assert isinstance(error, PilotageError)
    assert functions(error) == ["forward"]
    printed = "".join(traceback.format_exception(error))
    assert printed.count("Traceback") == 1
    assert isinstance(error.__context__, Exception)


def test_a_wrong_argument_is_reported_at_the_call():
    error = failure(trained(Model(8)), torch.ones(2, 8), torch.ones(1), torch.ones(1))
    assert functions(error) == []


def test_a_failing_kernel_is_named_with_the_users_line():
    class Classifier(torch.nn.Linear):
        def forward(self, inputs, labels):
            return torch.nn.functional.cross_entropy(super().forward(inputs), labels)

    step = trained(Classifier(3, 2))
    step(torch.ones(4, 3), torch.zeros(4, dtype=torch.long))
    error = failure(step, torch.ones(4, 3), torch.full((4,), 9))
    assert "out of bounds" in str(error)
    assert functions(error) == []
    assert "Raised at update 2, in aten.nll_loss_forward" in error.__notes__[0]
    assert "test_tracebacks.py:" in error.__notes__[0]


def test_the_users_own_chain_of_errors_is_kept():
    class Guarded(Model):
        def features(self, inputs):
            try:
                return super().features(inputs)
            except RuntimeError as error:
                raise ValueError("a wrong width") from error

    error = failure(trained(Guarded()), torch.ones(2, 8))
    assert str(error) == "a wrong width"
    assert functions(error) == ["forward", "features"]
    assert functions(error.__cause__) == ["features", "features"]


def test_a_fault_of_pilotage_keeps_all_its_frames(monkeypatch):
    step, namespace = trained(Model(8)), {"__name__": "pilotage.door"}
    exec(compile("def broken(*arguments):\n    raise KeyError('gone')", pilotage.door.__file__, "exec"), namespace)
    monkeypatch.setattr(step._executor, "run", namespace["broken"])
    error = failure(step, torch.ones(2, 8))
    assert functions(error) == ["__call__", "broken"]
    assert not hasattr(error, "__notes__")


def test_interrupts_and_blocks_without_errors_are_left_alone():
    with ShortTracebacks():
        pass
    with pytest.raises(KeyboardInterrupt) as caught, ShortTracebacks():
        raise KeyboardInterrupt
    assert not hasattr(caught.value, "__notes__")


def test_an_error_whose_cause_is_itself_is_shortened_once():
    error = ValueError("circular")
    error.__cause__ = error
    shorten(error)
    assert error.__cause__ is error


PROGRAM = """
import torch, pilotage
model = torch.nn.Linear(3, 2)
step = pilotage.training(model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.functional.cross_entropy)
step(torch.ones(4, 3), torch.zeros(4))
"""


@pytest.mark.slow
def test_torch_logs_no_traceback_of_its_own():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.count("Traceback") == 1
    assert "failed while attempting to run meta" not in ran.stderr
