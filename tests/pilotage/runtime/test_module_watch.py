"""What the user changes on a module after its program was captured."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import CaptureError, OptionError

X, TARGET = torch.randn(8, 3, generator=torch.Generator().manual_seed(1)), torch.zeros(8, 2)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.scale = 1.0

    def forward(self, x):
        return self.norm(self.layer(x)) * self.scale


@pytest.fixture
def trained(twins, warned, eager, assert_same_state):
    """A program and eager PyTorch; what is done to both modules has to have the same effect."""

    class Trained:
        def __init__(self, tier="graph", make=Network, optimizer=lambda p: torch.optim.Adam(p, lr=0.1)):
            self.module, self.plain = twins(make)
            self.optimizers = optimizer(self.module.parameters()), optimizer(self.plain.parameters())
            self.step = pilotage.training(
                self.module, self.optimizers[0], loss=nn.MSELoss(), tier=tier, listeners=[warned]
            )

        def train(self, calls=2):
            for _ in range(calls):
                self.step(X, TARGET)
                self.optimizers[1].zero_grad()
                nn.functional.mse_loss(self.plain(X), TARGET).backward()
                self.optimizers[1].step()

        def assert_same(self):
            assert_same_state(self.module, self.plain)

        @property
        def both(self):
            return self.module, self.plain

    return Trained


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_mode_that_is_set_on_the_module_counts_from_the_next_call_on(trained, tier):
    pair = trained(tier)
    pair.train()
    for change in ("eval", "train"):
        for module in pair.both:
            getattr(module, change)()
        pair.train()
        pair.assert_same()
    assert pair.step.record.compilations == 3


def test_a_part_whose_mode_is_set_counts_too(trained):
    pair = trained()
    pair.train()
    for module in pair.both:
        module.norm.eval()
    pair.train()
    pair.assert_same()
    assert pair.step.record.compilations == 2


def test_a_mode_that_is_set_between_wrapping_and_the_first_call_counts(trained):
    pair = trained()
    for module in pair.both:
        module.norm.eval()
    pair.train()
    pair.assert_same()


def test_a_mode_that_is_set_and_taken_back_captures_nothing(trained):
    pair = trained()
    pair.train()
    for module in pair.both:
        module.eval()
        module.train()
    pair.train()
    pair.assert_same()
    assert pair.step.record.compilations == 1


def dropout():
    return nn.Sequential(nn.Linear(3, 16), nn.Dropout(0.5))


def test_inference_follows_a_module_into_evaluation_mode(assert_equal, caplog):
    module = dropout()
    infer = pilotage.inference(module, tier="graph")
    infer(X)
    module.eval()
    assert_equal(infer(X), module(X).detach())


def test_inference_of_a_module_that_was_put_in_evaluation_mode_before_the_first_call_is_deterministic(assert_equal):
    module = dropout()
    infer = pilotage.inference(module, tier="graph")
    module.eval()
    assert_equal(infer(X), module(X).detach())


def test_inference_stays_in_evaluation_mode_while_the_module_is_trained_and_says_so_once(warned, assert_equal):
    module = dropout().eval()
    infer = pilotage.inference(module, tier="graph", listeners=[warned])
    expected = infer(X)
    for _ in range(3):
        module.train()
        assert_equal(infer(X), expected)
        module.eval()
        assert_equal(infer(X), expected)
    (message,) = warned.messages
    assert message.startswith("The module (and 2 more) was put in training mode after the module was wrapped")
    assert infer.record.compilations == 1
    infer.train()
    assert not torch.equal(infer(X), expected)


def test_inference_that_was_wrapped_in_evaluation_mode_needs_no_warning_if_the_module_is_trained_from_the_start(warned):
    module = dropout().eval()
    infer = pilotage.inference(module, tier="graph", listeners=[warned])
    module.train()
    assert torch.equal(infer(X), infer(X))
    assert warned.messages == []


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_hooks_that_come_and_go_count(trained, tier):
    pair = trained(tier)
    pair.train()
    handles = [module.layer.register_forward_hook(lambda _, __, output: output * 2) for module in pair.both]
    pair.train()
    handles += [module.layer.weight.register_hook(lambda gradient: gradient * 3) for module in pair.both]
    pair.train()
    pair.assert_same()
    for handle in handles:
        handle.remove()
    pair.train()
    pair.assert_same()


def test_a_hook_on_an_accumulated_gradient_is_refused_after_the_first_call_too(trained):
    pair = trained()
    pair.train()
    pair.module.layer.weight.register_post_accumulate_grad_hook(print)
    with pytest.raises(CaptureError, match=r"The parameter module.layer.weight has a hook"):
        pair.step(X, TARGET)


def test_an_attribute_that_changes_is_reported_once_by_name(trained, warned):
    pair = trained()
    pair.train()
    for scale in (1.0, 2.0, 3.0):
        pair.module.scale = scale
        pair.step(X, TARGET)
    (message,) = warned.messages
    assert message.startswith("The attribute 'module.scale' of Network has changed from 1.0 to 2.0 since")
    assert "destroy()" in message


def test_after_destroy_a_changed_attribute_counts(trained):
    pair = trained(optimizer=lambda p: torch.optim.SGD(p, lr=0.1))
    pair.train()
    pair.step.destroy()
    for module in pair.both:
        module.scale = 3.0
    pair.train()
    pair.assert_same()


def test_an_attribute_in_the_eager_tier_counts_without_a_word(trained, warned):
    pair = trained("eager")
    pair.train()
    for module in pair.both:
        module.scale = 3.0
    pair.train()
    pair.assert_same()
    assert warned.messages == []


def swap_a_part(module):
    module.layer = nn.Linear(3, 2)


def replace_a_parameter(module):
    module.layer.weight = nn.Parameter(torch.ones(2, 3))


def assign_a_state(module):
    module.load_state_dict({name: tensor.clone() for name, tensor in module.state_dict().items()}, assign=True)


def replace_a_buffer(module):
    module.norm.running_mean = torch.ones(2)


def remove_a_part(module):
    del module.norm


def change_the_type(module):
    module.double()


CHANGES = [swap_a_part, replace_a_parameter, assign_a_state, replace_a_buffer, remove_a_part, change_the_type]


@pytest.mark.parametrize("change", CHANGES)
def test_other_parts_parameters_and_types_are_refused_in_training(trained, change):
    pair = trained()
    pair.train()
    change(pair.module)
    for _ in range(2):
        with pytest.raises(OptionError, match=r"since the module was compiled for training.*destroy\(\)"):
            pair.step(X, TARGET)


def test_after_destroy_another_part_is_trained(trained):
    pair = trained(optimizer=lambda p: torch.optim.SGD(p, lr=0.1))
    pair.train()
    swap_a_part(pair.module)
    pair.plain.layer = nn.Linear(3, 2)
    pair.plain.load_state_dict(pair.module.state_dict())
    pair.step.destroy()
    mine, theirs = (torch.optim.SGD(module.parameters(), lr=0.1) for module in pair.both)
    pair.step.set_optimizer(mine)
    pair.optimizers = mine, theirs
    pair.train()
    pair.assert_same()


@pytest.mark.parametrize("change", [swap_a_part, replace_a_parameter, assign_a_state, replace_a_buffer])
def test_inference_takes_other_parts_and_parameters_at_its_next_call(change, assert_equal):
    module = Network().eval()
    infer = pilotage.inference(module, tier="graph")
    infer(X)
    change(module)
    assert_equal(infer(X), module(X).detach())


def test_inference_takes_another_type_at_its_next_call(assert_equal):
    module = Network().eval()
    infer = pilotage.inference(module, tier="graph")
    infer(X)
    module.double()
    assert_equal(infer(X.double()), module(X.double()).detach())
