"""Operations that produce NaN or infinity."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pilotage.optim.reading import read_optimizer
from pilotage.options.execution import Execution
from pilotage.program.graphs.labels import EXCEPTIONS
from pilotage.runtime.executor import Executor


class Calling(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def failures(function, *inputs):
    """The operations that failed, and what forward returned."""
    executor = Executor(Calling(function), execution=Execution(anchors=(EXCEPTIONS,)))
    *outputs, flags = executor.run(executor.bind(*inputs))
    names = executor.session.program.watched_operations
    return [name for name, failed in zip(names, flags.tolist(), strict=True) if failed], outputs


INFINITY = float("inf")
FAILING = {
    "division by zero": (lambda x: 1 / x, [0.0], "reciprocal"),
    "zero by zero": (lambda x: x / x, [0.0], "div"),
    "infinity minus infinity": (lambda x: x - x, [INFINITY], "sub"),
    "zero times infinity": (lambda x: x * 0, [INFINITY], "mul"),
    "root of a negative number": (torch.sqrt, [-1.0], "sqrt"),
    "logarithm of zero": (torch.log, [0.0], "log"),
    "overflow": (lambda x: x * x, [1e30], "mul"),
    "comparison with NaN": (lambda x: x < 3, [float("nan")], "lt"),
    "in place": (lambda x: (x + 0).sqrt_(), [-1.0], "sqrt_"),
    "one of many": (lambda x: torch.log(x).sum(), [1.0, 2.0, -3.0], "log"),
    "one of several results": (lambda x: torch.var_mean(x[:1] + 1)[0], [1.0], "var_mean"),
}
RIGHT = {
    "numbers": lambda x: torch.exp(x).log() / 3,
    "a mask of infinities": lambda x: torch.softmax(x.masked_fill(x > 1, -INFINITY), -1),
    "an infinity added": lambda x: torch.softmax(x + torch.tensor([0.0, -INFINITY]), -1),
    "a causal mask": lambda x: torch.softmax(torch.full((2, 2), -INFINITY).triu(1) + x, -1),
    "an infinity replaced": lambda x: torch.where(x > 1, x, torch.tensor(INFINITY)).clamp(max=5.0),
    "extremes": lambda x: x.max() - torch.full((), -INFINITY).exp(),
    "integers": lambda x: (x > 1).long() * 3,
    "nothing": lambda x: x.view(-1),
}


@pytest.mark.filterwarnings("ignore:var_mean")
@pytest.mark.parametrize("case", FAILING)
def test_the_operation_that_fails_is_named_with_its_line(case):
    function, values, name = FAILING[case]
    failed, _ = failures(function, torch.tensor(values))
    assert failed
    assert failed[0].startswith(f"aten.{name}")
    assert "test_floating_point_exceptions.py:" in failed[0]


@pytest.mark.parametrize("function", RIGHT.values(), ids=RIGHT)
def test_literal_infinities_are_not_reported(function):
    x = torch.tensor([1.0, 2.0])
    failed, (output,) = failures(function, x)
    assert failed == []
    torch.testing.assert_close(output, function(x), rtol=0, atol=0)


def test_only_the_first_cause_is_reported():
    failed, _ = failures(lambda x: (torch.log(x) * 2).exp().sum() + 1, torch.tensor([-1.0]))
    assert [name.split(".")[1] for name in failed] == ["log"]


def test_backward_and_update_are_watched_too():
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return functional.l1_loss(torch.sqrt(self.weight) * x, torch.ones(1))

    module = Root()
    plan = read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), {id(module.weight): "weight"})
    executor = Executor(module, execution=Execution(anchors=(EXCEPTIONS,)), plan=plan)
    *_, flags = executor.run(executor.bind(torch.ones(1)))
    names = executor.session.program.watched_operations
    failed = [name for name, flag in zip(names, flags.tolist(), strict=True) if flag]
    assert len(failed) == 1
    assert failed[0].startswith("aten.div")
