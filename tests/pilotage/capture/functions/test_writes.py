from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import pilotage
from pilotage.capture.functions.writes import written
from pilotage.errors import CaptureError

SURROUNDINGS = torch.zeros(3)


class WritesToTheSurroundings(nn.Module):
    def forward(self, x):
        SURROUNDINGS.add_(1)  # surroundings
        return x + SURROUNDINGS


def test_a_write_into_a_tensor_outside_the_module_is_refused_before_it_happens(line_of):
    with pytest.raises(CaptureError, match=re.escape(f"at {line_of('surroundings')} in forward")):
        pilotage.inference(WritesToTheSurroundings())(torch.ones(3))
    assert SURROUNDINGS.tolist() == [0, 0, 0]


def test_reading_a_tensor_outside_the_module_is_allowed():
    class Reads(nn.Module):
        def forward(self, x):
            return x + SURROUNDINGS

    assert pilotage.inference(Reads())(torch.ones(3)).tolist() == [1, 1, 1]


def test_forward_may_write_into_its_own_tensors():
    class Fills(nn.Module):
        def forward(self, x):
            result = torch.zeros(2, 3)
            result[0] = x
            result[1].copy_(x * 2)
            torch.add(x, 1, out=result[0])
            return result

    program = pilotage.inference(Fills())
    for _ in range(2):
        assert program(torch.ones(3)).tolist() == [[2, 2, 2], [2, 2, 2]]


@pytest.mark.parametrize(
    ("operation", "args", "kwargs", "positions"),
    [
        (torch.ops.aten.add_.Tensor, ["a", "b"], {}, ["a"]),
        (torch.ops.aten.add.Tensor, ["a", "b"], {}, []),
        (torch.ops.aten.add.out, ["a", "b"], {"out": "c"}, ["c"]),
        (torch.ops.aten.rrelu_with_noise.default, ["a", "b"], {}, ["b"]),
        (torch.ops.aten._foreach_add_.List, [["a", "b"], ["c", "d"]], {}, ["a", "b"]),
    ],
)
def test_the_arguments_that_an_operation_writes_into_are_known(operation, args, kwargs, positions):
    tensors = {name: torch.zeros(1) for name in "abcd"}

    def real(value):
        return [real(item) for item in value] if isinstance(value, list) else tensors[value]

    found = written(operation, tuple(map(real, args)), {name: real(value) for name, value in kwargs.items()})
    assert [id(tensor) for tensor in found] == [id(tensors[name]) for name in positions]
