"""Programs in channels-last memory format."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pilotage
from pilotage.passes.channels_last import has_channels_last, in_channels_last
from pilotage.program.graphs.straight_line import straight_line


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten())
        self.last = nn.Linear(36, 3)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.last(self.layers(x)), y)


class NormalisedLast(nn.Module):
    """The norm gets its gradient in the memory format of the linear layer."""

    def __init__(self, norm):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2, 4, 3), norm, nn.Flatten(), nn.Linear(144, 3))

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.layers(x), y)


def captured(model, *batch):
    trainer = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), backend="cpu", tier="graph"
    )
    trainer.compile(*batch)
    return trainer._executor.session


BATCH = torch.randn(4, 2, 8, 8, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 0])


def test_weights_of_four_dimensions_and_their_slots_are_stored_channels_last():
    program = in_channels_last(captured(Pictures(), *BATCH).captured)
    assert program.layout.parameters["layers.0.weight"].stride == (18, 1, 6, 2)
    assert program.layout.parameters["last.weight"].stride == (36, 1)
    assert [spec.stride for slot, spec in program.layout.slots.items() if slot.parameter == "layers.0.weight"] == [
        (18, 1, 6, 2)
    ]


@pytest.mark.parametrize(
    "model",
    [
        Pictures(),
        NormalisedLast(nn.BatchNorm2d(4)),
        NormalisedLast(nn.GroupNorm(2, 4)),
        NormalisedLast(nn.InstanceNorm2d(4, affine=True)),
    ],
)
def test_results_are_the_same(model):
    session = captured(model, *BATCH)
    ((action, computation),) = session.captured.computations.items()
    other = in_channels_last(session.captured).computations[action]
    arguments = [tensor.clone() for tensor in (*session.attached.arguments(computation.sections, 0), *BATCH)]
    stored = [
        tensor.contiguous(memory_format=torch.channels_last)
        if tensor.dim() == 4 and position < len(arguments) - 2
        else tensor
        for position, tensor in enumerate(copy.deepcopy(arguments))
    ]
    left, right = straight_line(computation.graph)(*arguments), straight_line(other.graph)(*stored)
    assert torch.allclose(left[0], right[0], rtol=1e-5)
    for one, two in zip(arguments, stored, strict=True):
        assert torch.allclose(one.float(), two.float(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "batch", "expected"),
    [
        (Pictures(), BATCH, True),
        (nn.Sequential(nn.Linear(3, 1)), (torch.randn(2, 3),), False),
    ],
)
def test_only_programs_with_convolutions_are_converted(model, batch, expected):
    inference = pilotage.inference(model, backend="cpu", tier="graph")
    inference.compile(*batch)
    assert has_channels_last(inference._executor.session.captured) is expected


def test_a_stride_dependent_program_is_not_converted():
    class Strided(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(1, 1, 3)

        def forward(self, x):
            return self.convolution(x).as_strided((2, 2), (2, 1))

    inference = pilotage.inference(Strided(), backend="cpu", tier="graph")
    inference.compile(torch.randn(1, 1, 6, 6))
    assert not has_channels_last(inference._executor.session.captured)
