import copy
import gc

import pytest
import torch
from torch import nn

import poptorch
from poptorch.poptorch_core import Error

pytestmark = pytest.mark.slow

X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


class Model(nn.Module):
    """Calls a function on the host between two operations of the program."""

    def __init__(self, function):
        super().__init__()
        self.on_host = poptorch.CPU(function, "host")

    def forward(self, x):
        return self.on_host(x + 1)


def with_numpy(x):
    return torch.from_numpy(x.numpy() ** 2)


def test_the_function_runs_at_each_execution_with_real_data(compiled, tier):
    seen = []

    def noted(x):
        seen.append(x.clone())
        return with_numpy(x)

    run = compiled(Model(noted), tier=tier).compile(X)
    assert [int(x.count_nonzero()) for x in seen] == ([0] if tier == "graph" else [])
    seen.clear()
    for batch in (X, -X):
        assert torch.equal(run(batch), (batch + 1) ** 2)
    assert all(map(torch.equal, seen, [X + 1, 1 - X]))


def test_each_micro_batch_is_a_call(compiled):
    shapes = []

    def noted(x):
        shapes.append(tuple(x.shape))
        return x

    run = compiled(Model(noted), poptorch.Options().deviceIterations(2))
    assert torch.equal(run(X), X + 1)
    assert shapes[1:] == [(1, 2), (1, 2)]


def test_without_a_wrapper_the_function_is_called_directly():
    model = Model(lambda x: {"sum": x.sum(), "name": "a"})
    assert model(X) == {"sum": (X + 1).sum(), "name": "a"}


def test_arguments_and_results_may_be_nested(compiled):
    def function(pair, factor, *, offset):
        return {"sum": pair["a"] + pair["b"] * factor, "rest": (offset, pair["a"].sum(0))}

    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.on_host = poptorch.CPU(function, "nested")

        def forward(self, x):
            return self.on_host({"a": x, "b": x + 1}, 3, offset=x.neg())

    run = compiled(Nested())
    for batch in (X, X * 2):
        result = run(batch)
        assert torch.equal(result["sum"], batch + (batch + 1) * 3)
        assert torch.equal(result["rest"][0], -batch)
        assert torch.equal(result["rest"][1], batch.sum(0))


def test_a_module_runs_on_the_host_and_is_not_trained(compiled):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 3)
            self.on_host = poptorch.CPU(self.layer, "layer")

        def forward(self, x):
            return self.on_host(x).relu()

    model = Outer()
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert torch.equal(compiled(model)(X), model(X))


def test_one_function_can_be_called_several_times(compiled):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.double = poptorch.CPU(lambda x: x * 2, "double")

        def forward(self, x):
            return self.double(x), self.double(self.double(x).sum())

    once, twice = compiled(Twice())(X)
    assert torch.equal(once, 2 * X)
    assert torch.equal(twice, 4 * X.sum())


def test_the_function_gets_copies_of_tensors(compiled):
    kept = torch.zeros(2, 2)

    def writing(x):
        x.mul_(0)
        kept.add_(1)
        return kept, kept

    class Outer(Model):
        def forward(self, x):
            y = x + 1
            first, second = self.on_host(y)
            return y, first, second

    run = compiled(Outer(writing))
    y, first, second = run(X)
    run(X)
    assert torch.equal(y, X + 1)
    assert torch.equal(first, torch.full((2, 2), 2.0))
    assert torch.equal(second, torch.full((2, 2), 2.0))


def test_a_function_without_results_or_inputs_is_called(compiled):
    calls = []

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = poptorch.CPU(lambda: calls.append(1), "count")
            self.constant = poptorch.CPU(lambda: torch.ones(2), "constant")

        def forward(self, x):
            self.count()
            return x + self.constant()

    run = compiled(Outer()).compile(X)
    calls.clear()
    assert torch.equal(run(X), X + 1)
    assert calls == [1]


def test_the_compilation_keeps_functions_that_forward_makes_itself(compiled):
    class Outer(nn.Module):
        def forward(self, x):
            return poptorch.CPU(lambda value: value * 7, "local")(x)

    run = compiled(Outer()).compile(X)
    gc.collect()
    assert torch.equal(run(X), X * 7)
    run.capture = copy.copy(run.capture)
    run.capture.host_functions = []
    gc.collect()
    with pytest.raises(Error, match="'local', which is not available"):
        run(X)


def test_a_module_created_in_forward_is_refused(compiled):
    class Outer(nn.Module):
        def forward(self, x):
            return poptorch.CPU(nn.Linear(2, 2), "local")(x)

    with pytest.raises(Error, match=r"'local' uses tensors .* contain no data"):
        compiled(Outer())(X)


def test_results_must_have_the_same_shapes_and_types_each_time(compiled):
    with pytest.raises(Error, match="must return the same shapes and types each time"):
        compiled(Model(lambda x: x[: int(x.sum() > 0) + 1]))(X)


def test_an_error_of_the_function_is_raised(compiled):
    def failing(x):
        if x.sum() > 0:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        compiled(Model(failing))(X)


def test_host_functions_are_refused_in_training(compiled, tier):
    class Training(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.on_host = poptorch.CPU(torch.neg, "negate")

        def forward(self, x):
            return poptorch.identity_loss(self.on_host(self.layer(x)), "sum")

    with pytest.raises(Error, match=r"poptorch.CPU \(negate\) is only supported in inference"):
        compiled(Training(), training=True, tier=tier)(X)
