from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

from pilotage.optim.lamb import Lamb
from poptorch import optim

PAIRS = [
    (optim.SGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    (optim.SGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (optim.Adam, torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1}),
    (optim.AdamW, torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.9)}),
    (optim.RMSprop, torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
    (optim.LAMB, Lamb, {"lr": 0.01, "max_weight_norm": 2.0}),
]
SMALLEST = [(optim.SGD, {"lr": 0.1}), (optim.Adam, {}), (optim.AdamW, {}), (optim.RMSprop, {}), (optim.LAMB, {})]


def module_like(other=None):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    if other is not None:
        module.load_state_dict(other.state_dict())
    return module


def train(module, optimizer, steps):
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        module(torch.randn(5, 4, generator=generator)).square().sum().backward()
        optimizer.step()


def assert_equal(one, other):
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(("ours", "theirs", "settings"), PAIRS)
def test_an_optimizer_has_the_same_step_as_torchs(ours, theirs, settings):
    one, other = module_like(), module_like()
    optimizer = ours(one.parameters(), **settings)
    assert isinstance(optimizer, theirs)
    assert isinstance(optimizer, optim.Optimizer)
    train(one, optimizer, 10)
    train(other, theirs(other.parameters(), **settings), 10)
    assert_equal(one, other)


@pytest.mark.parametrize(("ours", "theirs", "settings"), PAIRS)
def test_a_schedule_works_as_with_torchs_optimizer(ours, theirs, settings):
    modules = module_like(), module_like()
    for kind, module in zip((ours, theirs), modules, strict=True):
        optimizer = kind(module.parameters(), **settings)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for _ in range(4):
            train(module, optimizer, 1)
            schedule.step()
    assert_equal(*modules)


@pytest.mark.parametrize(("kind", "required"), SMALLEST)
def test_arguments_left_out_take_torchs_defaults(kind, required):
    optimizer = kind(module_like().parameters(), **required)
    reference = kind.__mro__[3](module_like().parameters(), **required)
    assert optimizer.defaults == reference.defaults


@pytest.mark.parametrize(("kind", "required"), SMALLEST)
def test_attributes_have_poptorchs_defaults(kind, required):
    optimizer = kind(module_like().parameters(), **required)
    expected = {
        "loss_scaling": 1.0,
        "accum_type": torch.float32,
        "velocity_accum_type": torch.float32,
        "first_order_momentum_accum_type": torch.float32,
        "second_order_momentum_accum_type": torch.float32,
        "max_grad_norm": float("inf"),
        "bias_correction": True,
        "use_combined_accum": False,
        "use_tf_variant": False,
    }
    assert optimizer.extras.keys() <= expected.keys()
    for name in optimizer.extras:
        assert getattr(optimizer, name) == expected[name]


@pytest.mark.parametrize(("kind", "required"), SMALLEST)
def test_only_arguments_that_are_given_are_variable(kind, required):
    optimizer = kind(module_like().parameters(), **required, weight_decay=0.5, loss_scaling=4.0)
    attributes = optimizer.variable_attrs
    assert attributes.variables == {*required, "weight_decay", "loss_scaling"}
    assert attributes.isConstant("accum_type")


@pytest.mark.parametrize(("kind", "required"), SMALLEST)
@pytest.mark.parametrize("wrong", [torch.float64, torch.bfloat16, torch.int32])
def test_accumulation_types_are_float16_or_float32(kind, required, wrong):
    types = [name for name in kind.extras if name.endswith("accum_type")]
    for name in types:
        kind(module_like().parameters(), **required, **{name: torch.float16})
        with pytest.raises(AssertionError, match=r"Accumulation types must be either torch\.float32 or torch\.float16"):
            kind(module_like().parameters(), **required, **{name: wrong})


@pytest.mark.parametrize(("kind", "required"), SMALLEST)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_has_all_settings_and_continues_from_the_original(kind, required, copied):
    module = module_like()
    optimizer = kind(module.parameters(), **required, loss_scaling=8.0)
    optimizer.variable_attrs.markAsConstant("loss_scaling")
    optimizer.variable_attrs.markAsVariable("weight_decay")
    optimizer.set_state_dict({"ipu_state": {"Accl1___0.weight": torch.ones(1)}, "ipu_param": {}})
    train(module, optimizer, 2)
    twin = copied(optimizer)
    assert {name: getattr(twin, name) for name in twin.extras} == {n: getattr(optimizer, n) for n in kind.extras}
    assert twin.variable_attrs.variables == {*required, "weight_decay"}
    assert torch.equal(twin.get_state_dict()["ipu_state"]["Accl1___0.weight"], torch.ones(1))
    for one in (optimizer, twin):
        for parameter in one.param_groups[0]["params"]:
            parameter.grad = torch.ones_like(parameter)
        one.step()
    for mine, theirs in zip(twin.param_groups[0]["params"], optimizer.param_groups[0]["params"], strict=True):
        assert torch.equal(mine, theirs)


def test_step_bounds_the_norm_of_the_gradients():
    one, other = module_like(), module_like()
    train(one, optim.SGD(one.parameters(), lr=0.1, max_grad_norm=0.5), 1)
    plain = torch.optim.SGD(other.parameters(), lr=0.1)
    other(torch.randn(5, 4, generator=torch.Generator().manual_seed(1))).square().sum().backward()
    torch.nn.utils.clip_grad_norm_(other.parameters(), 0.5)
    plain.step()
    assert_equal(one, other)


def test_step_returns_what_the_closure_returned():
    module = module_like()
    optimizer = optim.SGD(module.parameters(), lr=0.1)

    def closure():
        loss = module(torch.ones(1, 4)).sum()
        loss.backward()
        return loss

    assert torch.equal(optimizer.step(closure), module_like()(torch.ones(1, 4)).sum())


def test_step_stores_moments_in_the_requested_types():
    module = module_like()
    optimizer = optim.Adam(module.parameters(), first_order_momentum_accum_type=torch.float16)
    train(module, optimizer, 1)
    state = optimizer.state[module[0].weight]
    assert state["exp_avg"].dtype == torch.float16
    assert state["exp_avg_sq"].dtype == torch.float32


def test_step_runs_hooks_once():
    module = module_like()
    calls = []
    optimizer = optim.AdamW(module.parameters())
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    train(module, optimizer, 1)
    assert calls == ["after"]
