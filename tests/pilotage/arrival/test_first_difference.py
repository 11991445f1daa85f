import torch
from torch import nn

from pilotage.arrival.first_difference import ModuleOutputs, first_difference


def outputs(module, x):
    found = ModuleOutputs()
    with found.noted(module):
        module(x)
    return found


def test_the_first_module_in_the_order_of_calls_is_named():
    module, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), torch.randn(3, 2)
    expected, again = outputs(module, x), outputs(module, x)
    wrong = {key: value + key.startswith(("1", "2")) for key, value in expected.values.items()}
    assert first_difference(expected, again, expected.values, 1e-6) is None
    assert first_difference(expected, again, wrong, 1e-6).startswith("1 (ReLU)")


def test_differences_that_rounding_makes_as_well_are_ignored():
    module, x = nn.Linear(2, 2), torch.randn(3, 2)
    expected = outputs(module, x)
    noisy = ModuleOutputs(values={key: value * 1.01 for key, value in expected.values.items()})
    found = {key: value * 1.05 for key, value in expected.values.items()}
    assert first_difference(expected, noisy, found, 1e-6) is None
    assert first_difference(expected, expected, found, 1e-6) is not None


def test_no_hooks_are_left():
    module = nn.Linear(2, 2)
    outputs(module, torch.randn(1, 2))
    assert not module._forward_hooks
