import copy

import torch
from torch import nn

from pilotage.prediction.scripts.valueless import Valueless
from pilotage.torch_private import FakeTensor


def test_modules_are_built_without_memory_and_data_is_real():
    with Valueless():
        data = torch.randn(100_000)
        layer = nn.Linear(100_000, 100_000)
    assert isinstance(layer.weight, FakeTensor)
    assert layer.weight.numel() == 10**10
    assert not isinstance(data, FakeTensor)
    assert data.std() > 0.5


def test_modules_can_be_converted_and_stay_tied():
    with Valueless():
        first, second = nn.Linear(256, 256), nn.Linear(256, 256)
        second.weight = first.weight
        module = nn.Sequential(first, second).half().to("cpu")
    assert {each.dtype for each in module.parameters()} == {torch.float16}
    assert module[0].weight is module[1].weight
    assert module[0].weight.requires_grad


def test_modules_can_be_copied():
    with Valueless():
        layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
        module = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        other = copy.deepcopy(module)
    assert sum(each.numel() for each in other.parameters()) == 2 * sum(each.numel() for each in layer.parameters())


def test_a_value_that_is_not_there_is_one():
    with Valueless() as valueless:
        layer = nn.Linear(256, 256)
        assert layer(torch.zeros(1, 256)).sum().item() == 1.0
        assert bool((layer.weight > 0).any())
        assert torch.tensor(3.0).item() == 3.0
    assert valueless.values_read == 2


def test_torch_is_as_before_afterwards():
    apply = nn.Module._apply
    with Valueless():
        assert nn.Module._apply is not apply
    assert nn.Module._apply is apply
