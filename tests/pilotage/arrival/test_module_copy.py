import threading

import pytest
import torch
from torch import nn

from pilotage.arrival.module_copy import CopyError, Skeleton


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)
        self.second.weight = self.first.weight
        self.also = [self.first.weight]
        self.constant = torch.ones(2)
        self.notes = {"calls": 0}


def modes_of(module):
    return {part: part.training for part in module.modules()}


def test_every_reference_to_a_weight_becomes_the_given_tensor():
    module = Tied()
    own = {name: nn.Parameter(torch.zeros_like(each)) for name, each in module.named_parameters()}
    filled = Skeleton(module, modes_of(module)).filled(own, lambda tensor: tensor + 1)
    assert filled.first.weight is filled.second.weight is filled.also[0] is own["first.weight"]
    assert filled.constant.tolist() == [2, 2]
    assert module.constant.tolist() == [1, 1]


def test_attributes_are_those_of_the_time_of_the_skeleton():
    module = Tied()
    skeleton = Skeleton(module, modes_of(module))
    module.notes["calls"] = 5
    own = {name: nn.Parameter(torch.zeros_like(each)) for name, each in module.named_parameters()}
    assert skeleton.filled(own, torch.clone).notes == {"calls": 0}


def test_modes_are_those_of_the_capture():
    module = Tied()
    modes = {part: part is module.first for part in module.modules()}
    own = {name: nn.Parameter(torch.zeros_like(each)) for name, each in module.named_parameters()}
    filled = Skeleton(module, modes).filled(own, torch.clone)
    assert (filled.training, filled.first.training, filled.second.training) == (False, True, False)


def test_hooks_of_gradients_come_along():
    module = Tied()
    module.first.weight.register_hook(lambda gradient: gradient * 10)
    own = {name: nn.Parameter(torch.zeros_like(each)) for name, each in module.named_parameters()}
    Skeleton(module, modes_of(module)).filled(own, torch.clone).first.weight.sum().backward()
    assert own["first.weight"].grad.tolist() == [[10, 10], [10, 10]]


def test_attributes_that_were_computed_from_weights_are_copied_by_their_values():
    module = Tied()
    module.computed = 2 * module.first.weight
    own = {name: nn.Parameter(torch.zeros_like(each)) for name, each in module.named_parameters()}
    filled = Skeleton(module, modes_of(module)).filled(own, torch.clone)
    assert torch.equal(filled.computed, module.computed)
    assert filled.computed.is_leaf
    assert not module.computed.is_leaf


def test_what_cannot_be_copied_is_named():
    module = Tied()
    module.lock = threading.Lock()
    with pytest.raises(CopyError, match=r"cannot be copied \(TypeError"):
        Skeleton(module, modes_of(module))
