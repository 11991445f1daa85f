"""Loading our weights, the original's, and those of other networks."""

import pytest
import torch
from torch import nn

from cosmictagger.devices.weights import load_weights, on_host
from cosmictagger.errors import CheckpointError


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)
        self.norm = nn.BatchNorm2d(2)


def test_weights_of_a_distributed_original_load():
    source, target = Tiny(), Tiny()
    renamed = {f"module.{name.replace('norm', 'bn')}": tensor for name, tensor in source.state_dict().items()}
    load_weights(target, renamed)
    assert torch.equal(target.conv.weight, source.conv.weight)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("conv.weight"), "conv.weight is missing"),
        (
            lambda state: state.update(extra=torch.ones(1)),
            "extra is not part of the network. Use the same network options",
        ),
        (lambda state: state.update({"conv.rounding.low": torch.ones(1)}), "Use mode.quantization_aware=true"),
        (lambda state: state.update({"conv.bias": torch.ones(3)}), r"conv.bias has the shape \[3\] instead of \[2\]"),
    ],
)
def test_weights_of_another_network_are_refused_by_name(change, words):
    state = dict(Tiny().state_dict())
    change(state)
    with pytest.raises(CheckpointError, match=words):
        load_weights(Tiny(), state)


def test_a_state_on_the_host_is_a_copy():
    weight = nn.Parameter(torch.ones(2))
    kept = on_host({"deep": [weight, 3]})
    with torch.no_grad():
        weight.zero_()
    assert kept["deep"][0].tolist() == [1, 1]
    assert kept["deep"][1] == 3
