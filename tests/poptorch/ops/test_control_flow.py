import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import poptorch
from poptorch.poptorch_core import Error

X = torch.tensor([1.0, 2.0, 3.0])


def doubled_and_summed(a, b):
    return a * 2, a + b


@pytest.mark.parametrize("count", [0, 1, 2, 10])
def test_a_loop_feeds_its_results_back(compiled, tier, count):
    a, b = X, X + 1
    for _ in range(count):
        a, b = doubled_and_summed(a, b)
    native = poptorch.for_loop(count, doubled_and_summed, [X, X + 1])
    captured = compiled(lambda x: poptorch.for_loop(count, doubled_and_summed, [x, x + 1]), tier=tier)(X)
    for results in (native, captured):
        assert isinstance(results, list)
        assert torch.equal(results[0], a)
        assert torch.equal(results[1], b)


def test_a_loop_works_on_copies(compiled, tier):
    def in_place(value):
        value += 1
        return value

    def forward(x):
        (result,) = poptorch.for_loop(3, in_place, [x])
        return x.clone(), result

    given_tensor = X.clone()
    before, after = compiled(forward, tier=tier)(given_tensor)
    assert torch.equal(before, X)
    assert torch.equal(after, X + 3)
    assert torch.equal(given_tensor, X)


def test_a_body_can_use_the_models_weights(compiled):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return poptorch.for_loop(4, lambda state: torch.tanh(self.layer(state)), [x])[0]

    model = Recurrent()
    assert torch.equal(compiled(model)(X), model(X))


@pytest.mark.parametrize("inputs", [X, (X,)])
def test_inputs_of_a_loop_must_be_a_list(inputs):
    with pytest.raises(ValueError, match=r"\(Object is not list\)"):
        poptorch.for_loop(2, doubled_and_summed, inputs)


def test_inputs_of_a_loop_must_be_tensors():
    with pytest.raises(ValueError, match=r"is not torch\.tensor"):
        poptorch.for_loop(2, doubled_and_summed, [X, 3])


@pytest.mark.parametrize("count", [-1, 2.5, True, X])
def test_the_number_of_iterations_must_be_a_whole_number(count):
    with pytest.raises(ValueError, match="whole number of iterations"):
        poptorch.for_loop(count, doubled_and_summed, [X, X])


@pytest.mark.parametrize("body", [lambda x: (x, x), lambda x: x[:2], lambda x: x.int(), lambda x: None, lambda x: [3]])
def test_a_body_must_return_tensors_like_its_inputs(body):
    with pytest.raises(Error, match=r"for_loop\(\)"):
        poptorch.for_loop(2, body, [X])


class Training(nn.Module):
    def __init__(self, control_flow):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.control_flow = control_flow

    def forward(self, x):
        (y,) = self.control_flow(self.layer(x))
        return poptorch.identity_loss(y, "sum")


@pytest.mark.parametrize(
    ("name", "control_flow"),
    [
        ("for_loop", lambda y: poptorch.for_loop(2, lambda v: v + 1, [y])),
        ("cond", lambda y: poptorch.cond(y.sum() > 0, torch.neg, [y], torch.abs, [y])),
    ],
)
def test_control_flow_is_refused_in_training(compiled, name, control_flow, tier):
    with pytest.raises(Error, match=rf"poptorch\.{name}\(\) is only supported in inference"):
        compiled(Training(control_flow), training=True, tier=tier)(X)


def either(x, y):
    return poptorch.cond(
        x.sum() > y.sum(), lambda a: (a + 1, a.neg()), [x], lambda a, b: [a * b, b.sqrt()], [x, y.abs()]
    )


def test_a_condition_follows_the_data_of_each_run(compiled, tier):
    run = compiled(either, tier=tier)

    @settings(max_examples=20, deadline=None)
    @given(*[st.lists(st.floats(-10, 10, width=32), min_size=3, max_size=3).map(torch.tensor)] * 2)
    def check(x, y):
        expected = [x + 1, -x] if x.sum() > y.sum() else [x * y.abs(), y.abs().sqrt()]
        for results in (run(x, y), either(x, y)):
            assert isinstance(results, list)
            assert all(map(torch.equal, results, expected))

    check()


def test_the_other_branch_may_produce_nan(compiled):
    safe_log = compiled(lambda x: poptorch.cond(x.min() > 0, torch.log, [x], torch.zeros_like, [x])[0])
    assert torch.equal(safe_log(X), X.log())
    assert torch.equal(safe_log(-X), torch.zeros(3))


def test_conditions_can_be_nested(compiled):
    def forward(x):
        def inner(value):
            return poptorch.cond(x[1] > 0, lambda v: v + 1, [value], lambda v: v + 2, [value])[0]

        return poptorch.cond(x[0] > 0, inner, [x], lambda v: v + 3, [x])[0]

    run = compiled(forward)
    for signs, added in (((1, 1), 1), ((1, -1), 2), ((-1, 1), 3), ((-1, -1), 3)):
        x = torch.tensor([*signs, 5.0])
        assert torch.equal(run(x), x + added)


def test_prints_and_host_functions_run_only_in_the_branch_taken(compiled, capfd):
    calls = []

    def host(x):
        calls.append(x.tolist())
        return x * 3

    on_host = poptorch.CPU(host, "host")

    def forward(x):
        then = lambda v: poptorch.ipu_print_tensor(v, "then")  # noqa: E731
        return poptorch.cond(x[0] > 0, then, [x], lambda v: on_host(poptorch.ipu_print_tensor(v, "else")), [x])[0]

    run = compiled(forward).compile(X)
    calls.clear()
    assert torch.equal(run(X), X)
    assert calls == []
    assert capfd.readouterr().err == "then: {1.0000 2.0000 3.0000}\n"
    assert torch.equal(run(-X), -3 * X)
    assert calls == [(-X).tolist()]
    assert capfd.readouterr().err == "else: {-1.0000 -2.0000 -3.0000}\n"


def test_a_branch_may_change_its_copies_in_place(compiled, tier):
    def forward(x):
        return x, poptorch.cond(x[0] > 0, lambda v: v.add_(1), [x], lambda v: v[:1].mul_(2).expand(3), [x])[0]

    run = compiled(forward, tier=tier)
    for x in (X.clone(), -X):
        before = x.clone()
        same, changed = run(x)
        assert torch.equal(same, before)
        assert torch.equal(x, before)
        assert torch.equal(changed, before + 1 if before[0] > 0 else before[:1].mul(2).expand(3))


def test_a_branch_that_writes_to_outer_tensors_is_refused(compiled):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            def count(value):
                self.calls.add_(1)
                return value

            return poptorch.cond(x[0] > 0, count, [x], torch.neg, [x])[0]

    with pytest.raises(Error, match="writes into a tensor from outside"):
        compiled(Counting())(X)


@pytest.mark.parametrize("position", [2, 4])
def test_inputs_of_a_condition_must_be_lists_of_tensors(position):
    arguments = [torch.tensor(True), torch.neg, [X], torch.neg, [X]]
    arguments[position] = (X,)
    with pytest.raises(ValueError, match=r"\(Object is not list\)"):
        poptorch.cond(*arguments)
    arguments[position] = [3]
    with pytest.raises(ValueError, match=r"is not torch\.tensor"):
        poptorch.cond(*arguments)


@pytest.mark.parametrize("condition", [True, X > 0])
def test_a_condition_must_be_a_tensor_with_one_element(condition):
    with pytest.raises(ValueError, match="one element"):
        poptorch.cond(condition, torch.neg, [X], torch.neg, [X])


@pytest.mark.parametrize("body", [lambda x: (x, x), lambda x: x[:2], lambda x: x.int()])
def test_both_branches_must_return_results_of_the_same_shapes_and_types(compiled, body):
    with pytest.raises(Error, match=r"cond\(\): then_body returns .* but else_body returns"):
        compiled(lambda x: poptorch.cond(x[0] > 0, torch.neg, [x], body, [x]))(X)
