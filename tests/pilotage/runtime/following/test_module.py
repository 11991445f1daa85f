"""What the user changes on a module after its program was captured."""

from __future__ import annotations

from types import MethodType

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
        self.table = {"factor": 1.0}
        self.config = Config()
        self.epoch = 0

    def forward(self, x):
        return self.norm(self.layer(x)) * self.scale * self.table["factor"] * self.config.factor


class Config:
    def __init__(self) -> None:
        self.factor = 1.0


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


def set_an_attribute(module):
    module.scale = 3.0


def edit_a_container(module):
    module.table["factor"] = 3.0


def edit_an_object(module):
    module.config.factor = 3.0


def set_an_attribute_of_torchs(module):
    module.norm.momentum = 0.9


def replace_forward(module):
    module.forward = MethodType(lambda self, x: self.layer(x), module)


@pytest.mark.parametrize(
    "change", [set_an_attribute, edit_a_container, edit_an_object, set_an_attribute_of_torchs, replace_forward]
)
def test_a_python_value_that_forward_reads_counts_from_the_next_call_on(trained, change):
    pair = trained()
    pair.train()
    for module in pair.both:
        change(module)
    pair.train()
    pair.assert_same()
    assert pair.step.record.compilations == 2


FACTOR = 1.0


@pytest.mark.parametrize("where", ["global", "closure"])
def test_a_number_that_the_loss_reads_from_outside_counts_from_the_next_call_on(where, monkeypatch):
    factor = 1.0

    def loss_with_global(output, target):
        return FACTOR * nn.functional.mse_loss(output, target)

    def loss_with_closure(output, target):
        return factor * nn.functional.mse_loss(output, target)

    module = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.0)
    loss = loss_with_global if where == "global" else loss_with_closure
    step = pilotage.training(module, optimizer, loss=loss, tier="graph")
    _, before = step(X, TARGET)
    factor = 5.0
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    torch.testing.assert_close(step(X, TARGET)[1], 5 * before)


def test_a_forward_that_is_replaced_in_its_class_counts(trained, monkeypatch):
    pair = trained()
    pair.train()
    monkeypatch.setattr(Network, "forward", lambda self, x: self.layer(x))
    pair.train()
    pair.assert_same()


def test_a_value_that_does_not_change_the_program_is_looked_at_once_and_named(trained, warned):
    pair = trained()
    pair.train()
    for epoch in (1, 2, 3):
        pair.module.epoch = epoch
        pair.module.note = f"epoch {epoch}"
        pair.train()
    pair.assert_same()
    assert pair.step.record.compilations == 2
    (message,) = [message for message in warned.messages if "captured again" not in message]
    assert message.startswith("'module.epoch' of Network has changed from 0 to 1, which does not change the program.")


def test_a_value_that_changes_often_is_followed_and_reported_once(trained, warned):
    pair = trained()
    pair.train()
    for number in range(6):
        for module in pair.both:
            module.scale = 1.0 + number / 10
        pair.train(1)
    pair.assert_same()
    (message,) = [message for message in warned.messages if "changed 4 times" in message]
    assert message.startswith("'module.scale' of Network")


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


def tie_a_parameter(module):
    module.norm.bias = module.norm.weight


def change_the_type(module):
    module.double()


CHANGES = [
    tie_a_parameter,
    swap_a_part,
    replace_a_parameter,
    assign_a_state,
    replace_a_buffer,
    remove_a_part,
    change_the_type,
]


@pytest.mark.parametrize("change", CHANGES)
def test_other_parts_parameters_and_types_are_refused_in_training(trained, change):
    pair = trained()
    pair.train()
    change(pair.module)
    for _ in range(2):
        with pytest.raises(
            OptionError,
            match=r"^(module\..* was |The weights).* since the module was compiled for training.*destroy\(\)",
        ):
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
