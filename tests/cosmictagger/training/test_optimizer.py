"""The configured optimizers."""

import pytest
import torch

import poptorch
from cosmictagger.configuration.choices import OptimizerKind, ScheduleKind
from cosmictagger.configuration.mode import LrSchedule, Optimizer
from cosmictagger.errors import CheckpointError, ConfigurationError
from cosmictagger.training.optimizer import build_optimizer, check_optimizer_state, is_newer, load_state, set_rate


def built(kind, **settings):
    return build_optimizer(OptimizerKind[kind], [torch.nn.Parameter(torch.ones(2))], 1e-3, **settings)


def test_the_configured_optimizer_is_built_and_its_rate_can_be_set():
    adam, rmsprop = built("adam"), built("rmsprop")
    assert isinstance(adam, torch.optim.Adam)
    assert isinstance(rmsprop, torch.optim.RMSprop)
    assert (adam.defaults["betas"], adam.defaults["eps"]) == ((0.9, 0.999), 1e-8)
    assert rmsprop.defaults["eps"] == 1e-4
    set_rate(adam, 0.5)
    assert adam.param_groups[0]["lr"] == 0.5


def test_version_21_has_its_own_settings():
    adam = built("adam", newer=True)
    assert (adam.defaults["betas"], adam.defaults["eps"]) == ((0.8, 0.9), 1e-6)
    assert built("rmsprop", newer=True).defaults["eps"] == 1e-6
    assert built("adadelta").defaults["eps"] == 1e-6
    assert type(built("adagrad")) is torch.optim.Adagrad
    assert built("sgd").defaults["momentum"] == 0
    assert not is_newer(Optimizer())
    assert is_newer(Optimizer(lr_schedule=LrSchedule(name=ScheduleKind.flat)))


@pytest.mark.parametrize("kind", OptimizerKind)
def test_every_optimizer_lowers_a_loss(kind):
    weight = torch.nn.Parameter(torch.tensor([2.0, -1.0]))
    optimizer = build_optimizer(kind, [weight], 0.05)
    for _ in range(20):
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()
    assert weight.square().sum() < 5
    check_optimizer_state(kind, optimizer.state_dict())


def test_poptorchs_optimizers_are_used_as_far_as_it_has_them():
    assert isinstance(built("sgd", family=poptorch.optim), poptorch.optim.SGD)
    assert built("lamb", family=poptorch.optim).param_groups[0]["max_weight_norm"] == 10
    for kind in ("adagrad", "adadelta", "lars"):
        with pytest.raises(ConfigurationError, match="PopTorch has adam, rmsprop, sgd and lamb"):
            built(kind, family=poptorch.optim)


@pytest.mark.parametrize(("made_by", "asked_for"), [("adam", "rmsprop"), ("rmsprop", "adam"), ("adadelta", "rmsprop")])
def test_the_state_of_another_optimizer_is_refused(made_by, asked_for):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = build_optimizer(OptimizerKind[made_by], [weight], 1e-3)
    weight.sum().backward()
    optimizer.step()
    check_optimizer_state(OptimizerKind[made_by], optimizer.state_dict())
    check_optimizer_state(OptimizerKind[asked_for], None)
    with pytest.raises(CheckpointError, match=f"Use mode.optimizer.name={made_by}"):
        check_optimizer_state(OptimizerKind[asked_for], optimizer.state_dict())


def test_a_loaded_state_keeps_the_configured_settings():
    """A run of version 2.0 that goes on with a schedule of version 2.1 has that version's optimizer from then on."""
    earlier, later = built("adam"), built("adam", newer=True)
    earlier.param_groups[0]["params"][0].grad = torch.ones(2)
    earlier.step()
    load_state(later, earlier.state_dict())
    (group,) = later.param_groups
    assert (group["betas"], group["eps"]) == ((0.8, 0.9), 1e-6)
    assert later.state[group["params"][0]]["step"] == 1
