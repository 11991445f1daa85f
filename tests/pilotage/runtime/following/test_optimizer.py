"""The state of the given optimizer, which the program keeps on its device."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import OptionError
from pilotage.optim.lamb import Lamb

X = torch.randn(8, 3, generator=torch.Generator().manual_seed(1))

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "dampened": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=0.1, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "lamb": lambda p: Lamb(p, lr=0.1),
}


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.unused, self.second = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x):
        return self.second(self.first(x)).square().mean()


@pytest.fixture(params=OPTIMIZERS)
def pair(request, twins, assert_same_state):
    class Pair:
        def __init__(self) -> None:
            self.mine, self.theirs = twins(Network)
            make = OPTIMIZERS[request.param]
            self.optimizer, self.plain = make(self.mine.parameters()), make(self.theirs.parameters())
            self.step = None

        def host_step(self, module, optimizer):
            optimizer.zero_grad()
            module(X).backward()
            optimizer.step()

        def train(self, calls=2):
            if self.step is None:
                self.step = pilotage.training(self.mine, self.optimizer, tier="graph")
            for _ in range(calls):
                self.step(X)
                self.host_step(self.theirs, self.plain)

        def assert_same(self):
            torch.testing.assert_close(self.mine.state_dict(), self.theirs.state_dict(), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(
                self.optimizer.state_dict()["state"], self.plain.state_dict()["state"], rtol=1e-4, atol=1e-6
            )

        @property
        def both(self):
            return self.optimizer, self.plain

    return Pair()


def test_the_state_dictionary_of_the_optimizer_shows_what_the_device_keeps(pair):
    pair.train()
    pair.assert_same()
    pair.train()
    pair.assert_same()
    saved = pickle.loads(pickle.dumps(pair.optimizer.state_dict()))
    assert saved["state"].keys() == pair.plain.state_dict()["state"].keys()


def test_a_cleared_state_starts_over(pair):
    pair.train(3)
    for optimizer in pair.both:
        optimizer.state.clear()
    pair.train()
    pair.assert_same()


def test_a_loaded_state_is_taken_over(pair):
    pair.train()
    saved = [copy.deepcopy(optimizer.state_dict()) for optimizer in pair.both]
    pair.train(3)
    for optimizer, state in zip(pair.both, saved, strict=True):
        optimizer.load_state_dict(state)
    pair.train()
    pair.assert_same()


def test_a_state_from_before_the_first_call_is_taken_over(pair):
    for _ in range(2):
        pair.host_step(pair.mine, pair.optimizer)
        pair.host_step(pair.theirs, pair.plain)
    pair.train()
    pair.assert_same()


def test_an_edited_tensor_of_the_state_is_taken_over(pair):
    pair.train()
    for optimizer in pair.both:
        for kept in optimizer.state.values():
            for name, tensor in kept.items():
                if name != "step":
                    tensor.mul_(0.5)
    pair.train()
    pair.assert_same()


def test_a_step_on_the_host_between_two_calls_counts_whole(pair):
    pair.train()
    pair.host_step(pair.mine, pair.optimizer)
    pair.host_step(pair.theirs, pair.plain)
    pair.train()
    pair.assert_same()


def trained(make=OPTIMIZERS["adam"]):
    module = Network()
    optimizer = make(module.parameters())
    step = pilotage.training(module, optimizer, tier="graph")
    step(X)
    return module, optimizer, step


def test_a_state_that_is_only_read_is_not_sent(monkeypatch):
    _, optimizer, step = trained()
    monkeypatch.setattr(step._executor.session, "set_optimizer_state", lambda state: pytest.fail("It was sent."))
    for _ in range(2):
        optimizer.state_dict()
        assert len(optimizer.state) == 4
        step(X)


def test_copies_of_the_optimizer_have_a_plain_state():
    _, optimizer, step = trained()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert type(other.state).__name__ == "defaultdict"
        assert len(other.state) == 4
    del step


def test_a_state_in_which_parameters_have_seen_different_steps_is_refused():
    module, optimizer, step = trained()
    optimizer.state.pop(module.first.weight)
    for _ in range(2):
        with pytest.raises(OptionError, match=r"counts different steps for its parameters \(\[0.0, 1.0\]\)"):
            step(X)


def test_a_state_with_other_tensors_is_refused():
    _, optimizer, step = trained()
    _, other, _ = trained(OPTIMIZERS["amsgrad"])
    optimizer.state.clear()
    state = optimizer.state_dict()
    state["state"] = other.state_dict()["state"]
    optimizer.load_state_dict(state)
    with pytest.raises(OptionError, match=r"has max_exp_avg_sq for first.*, which Adam does not keep"):
        step(X)


def test_a_checkpoint_wins_over_the_state_of_the_optimizer_before_the_first_call(tmp_path):
    module, optimizer, step = trained()
    step.save_checkpoint(tmp_path, 1)
    expected = optimizer.state_dict()["state"]
    resumed = Network()
    other = OPTIMIZERS["adam"](resumed.parameters())
    for _ in range(3):
        resumed(X).backward()
        other.step()
    again = pilotage.training(resumed, other, tier="graph")
    again.compile(X)
    again.restore_checkpoint(tmp_path)
    torch.testing.assert_close(other.state_dict()["state"], expected)
    assert torch.equal(step(X), again(X))
    torch.testing.assert_close(other.state_dict()["state"], optimizer.state_dict()["state"])
    assert torch.equal(module.first.weight, resumed.first.weight)


def test_one_optimizer_of_two_programs_keeps_the_state_of_both():
    # As in a GAN with one optimizer: the state of each half must not disturb the other's.
    torch.manual_seed(0)
    modules = [Network(), Network()]
    plain = copy.deepcopy(modules)
    optimizer = OPTIMIZERS["adam"]([p for module in modules for p in module.parameters()])
    theirs = [OPTIMIZERS["adam"](module.parameters()) for module in plain]
    with pytest.warns(UserWarning, match="will not be updated"):
        steps = [pilotage.training(module, optimizer, tier="graph") for module in modules]
    for _ in range(3):
        for step, module, other in zip(steps, plain, theirs, strict=True):
            step(X)
            other.zero_grad()
            module(X).backward()
            other.step()
    for mine, other in zip(modules, plain, strict=True):
        torch.testing.assert_close(mine.state_dict(), other.state_dict())


def test_the_optimizer_keeps_no_program_alive():
    import gc
    import weakref

    _, optimizer, step = trained()
    executor = weakref.ref(step._executor)
    del step
    gc.collect()
    assert executor() is None
    assert len(optimizer.state) == 0
