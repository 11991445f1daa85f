"""Nonfinite losses and lack of memory: the error names the step, the operation and the line."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import NonFiniteLossError


class Logarithm(nn.Module):
    """The loss is not finite if the first number of a batch is negative, whatever the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)

    def hidden(self, x):
        return x * 1

    def forward(self, x):
        output = self.norm(self.layer(self.hidden(x)))
        factor = torch.log(x[0, 0])  # logarithm
        x.add_(1)
        return output, functional.mse_loss(output * factor, torch.ones_like(output))


class Dropping(Logarithm):
    def hidden(self, x):
        return functional.dropout(x, 0.5) + x


GOOD, BAD = torch.tensor([[2.0, 1.0, 0.0], [1.0, -1.0, 2.0]]), torch.tensor([[-1.0, 3.0, 1.0], [1.0, 2.0, -2.0]])


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("kind", [Logarithm, Dropping])
@pytest.mark.parametrize("action", ["warn", "ignore"])
def test_by_default_training_continues_after_nan_as_in_eager(
    action, kind, tier, eager, twins, assert_equal, assert_same_state, warned
):
    mine, theirs = twins(kind)
    step = pilotage.training(mine, sgd(mine), nonfinite_loss=action, tier=tier, listeners=[warned])
    reference = eager(theirs, sgd(theirs))
    for seed, batch in enumerate([GOOD, BAD, GOOD, BAD]):
        given, other = batch.clone(), batch.clone()
        torch.manual_seed(seed)
        outputs = step(given)
        after = torch.get_rng_state()
        torch.manual_seed(seed)
        assert_equal(outputs, reference(other))
        assert_equal(given, other)
        assert_equal(after, torch.get_rng_state())
    assert_same_state(mine, theirs)
    assert mine.norm.num_batches_tracked.item() == 4
    assert len(warned.messages) == (1 if action == "warn" else 0)


@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_warning_names_the_update_the_operation_and_the_line(accumulation, line_of, warned):
    module = Logarithm()
    step = pilotage.training(module, sgd(module), gradient_accumulation=accumulation, listeners=[warned])
    batches = {1: [GOOD, GOOD, BAD], 2: [torch.cat([GOOD, GOOD])] * 2 + [torch.cat([GOOD, BAD])]}[accumulation]
    for batch in batches:
        step(batch.clone())
    (message,) = warned.messages
    assert "The loss at update 3 is not finite" in message
    assert f"NaN first appears in aten.log ({line_of('logarithm')})" in message
    assert "try a smaller learning rate" in message
    assert "Training continues" in message


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_on_request_training_stops_before_the_update(tier, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Logarithm)
    step = pilotage.training(mine, sgd(mine), nonfinite_loss="raise", tier=tier)
    optimizer = sgd(theirs)

    def train_plain():
        optimizer.zero_grad()
        theirs(GOOD.clone())[1].backward()
        optimizer.step()

    step(GOOD.clone())
    train_plain()
    for _ in range(2):
        given = BAD.clone()
        with pytest.raises(NonFiniteLossError, match="The loss at update 2 is not finite"):
            step(given)
        assert_equal(given, BAD)
        assert_same_state(mine, theirs)
        assert step.record.updates == 1
    step(GOOD.clone())
    train_plain()
    assert_same_state(mine, theirs)


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_earlier_updates_of_the_call_are_kept(tier, twins, assert_same_state):
    mine, theirs = twins(Logarithm)
    step = pilotage.training(mine, sgd(mine), nonfinite_loss="raise", device_iterations=3, tier=tier)
    optimizer = sgd(theirs)
    calls = [([GOOD, GOOD, BAD], 3), ([GOOD, BAD, GOOD], 4), ([BAD, GOOD, GOOD], 4)]
    for batches, update in calls:
        with pytest.raises(NonFiniteLossError, match=f"The loss at update {update} is not finite"):
            step(torch.cat(batches))
        for batch in batches[: next(i for i, b in enumerate(batches) if b is BAD)]:
            optimizer.zero_grad()
            theirs(batch.clone())[1].backward()
            optimizer.step()
        assert_same_state(mine, theirs)
        assert step.record.updates == update - 1


def test_random_streams_do_not_advance_in_a_refused_step(assert_equal):
    torch.manual_seed(0)
    module = Dropping()
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    steps = []
    for stumbles in (False, True):
        module.load_state_dict(state)
        step = pilotage.training(module, sgd(module), nonfinite_loss="raise", seed=3)
        if stumbles:
            with pytest.raises(NonFiniteLossError):
                step(BAD.clone())
        steps.append(step(GOOD.clone()))
    assert_equal(*steps)


def test_infinity_is_named_before_the_nan_that_it_becomes(line_of, warned):
    class Overflow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, x):
            large = torch.exp(x * 1000)  # overflow
            return functional.mse_loss(self.weight * large / large, torch.zeros_like(x))  # quotient

    module = Overflow()
    pilotage.training(module, sgd(module), listeners=[warned])(torch.ones(2))
    (message,) = warned.messages
    assert f"Infinity first appears in aten.exp ({line_of('overflow')})" in message
    assert re.search(rf"NaN first appears in aten.\w+(\.\w+)? \({re.escape(line_of('quotient'))}\)", message)


def test_nonfinite_inputs_are_reported_as_such(warned):
    module = Logarithm()
    bad = GOOD.clone()
    bad[1, 1] = float("nan")
    pilotage.training(module, sgd(module), listeners=[warned])(bad)
    assert "NaN first appears in the inputs or weights of the step" in warned.messages[0]


def test_the_eager_tier_does_not_name_the_operation(warned):
    module = Logarithm()
    pilotage.training(module, sgd(module), listeners=[warned], tier="eager")(BAD.clone())
    assert "run the graph tier" in warned.messages[0]


@pytest.mark.parametrize("output", [float("inf"), float("-inf"), float("nan")])
def test_every_nonfinite_value_is_detected(output):
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, x):
            return pilotage.mark_loss((self.weight * x).sum())

    module = Constant()
    step = pilotage.training(module, sgd(module), nonfinite_loss="raise")
    with pytest.raises(NonFiniteLossError):
        step(torch.tensor([output, 1.0]))
    step(torch.tensor([1.0, 1.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_largest_the_smallest_and_no_loss_are_finite(dtype):
    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones((), dtype=dtype))

        def forward(self, x):
            loss = self.weight * x
            return loss, pilotage.mark_loss(loss)

    kind, module = torch.finfo(dtype), Product()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.0), nonfinite_loss="raise")
    for value in (kind.max, kind.min, kind.tiny, kind.smallest_normal, 0.0, -0.0):
        given = torch.tensor(value, dtype=dtype)
        assert torch.equal(step(given.clone())[0].detach(), given)
    for value in (float("inf"), float("nan")):
        with pytest.raises(NonFiniteLossError):
            step(torch.tensor(value, dtype=dtype))


MEMORY_SCRIPT = """
import resource, sys, torch, pilotage
from torch import nn

class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x):
        huge = x.expand(1 << 31, 64) * 2
        return pilotage.mark_loss(huge.mean() * self.weight)

module = Large()
step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), backend="cpu", tier=sys.argv[1])
step.compile(torch.ones(64)) if sys.argv[1] == "graph" else None
resource.setrlimit(resource.RLIMIT_AS, (1 << 36, resource.RLIM_INFINITY))
try:
    step(torch.ones(64))
except pilotage.PilotageError as error:
    print(type(error).__name__)
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_an_out_of_memory_error_names_the_operation_the_line_and_remedies(tier, tmp_path):
    assert resource.RLIMIT_AS
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(MEMORY_SCRIPT))
    result = subprocess.run([sys.executable, script, tier], capture_output=True, text=True, timeout=120, check=False)
    kind, _, message = result.stdout.partition("\n")
    assert kind == "DeviceMemoryError", result.stderr
    assert "Out of memory at update 1" in message
    assert "smaller batch" in message
    line = 1 + next(i for i, text in enumerate(script.read_text().splitlines()) if "huge =" in text)
    assert (f"aten.mul.Tensor ({script}:{line})" if tier == "graph" else "in the eager tier") in message
