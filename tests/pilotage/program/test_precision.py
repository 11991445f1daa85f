from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import InputError
from pilotage.options.choices import Accumulation, Tier
from pilotage.options.execution import Execution
from pilotage.program.precision import accumulating_in, autocast_type, without_autocast
from pilotage.runtime.executor import Executor


def test_autocast_is_known_by_the_type_that_it_casts_to():
    assert autocast_type("cpu") is None
    with torch.autocast("cpu", torch.bfloat16):
        assert autocast_type("cpu") is torch.bfloat16
        with without_autocast("cpu"):
            assert autocast_type("cpu") is None
        assert autocast_type("cpu") is torch.bfloat16
    with without_autocast("cpu"):
        assert autocast_type("cpu") is None


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_program_captured_under_autocast_runs_under_the_same_and_under_no_other(tier, assert_equal):
    module, batch = nn.Linear(4, 3), torch.randn(2, 4)
    program = pilotage.inference(module, tier=tier)
    with torch.autocast("cpu", torch.bfloat16):
        first, expected = program(batch), module(batch).detach()
        assert first.dtype is torch.bfloat16
        assert_equal(first, expected)
        assert_equal(program(batch), expected)
    with pytest.raises(InputError, match=r"captured under autocast to torch.bfloat16.*made without autocast"):
        program(batch)
    with torch.autocast("cpu", torch.float16), pytest.raises(InputError, match=r"made under autocast to torch.float16"):
        program(batch)


def test_a_program_captured_without_autocast_refuses_calls_under_it():
    module, batch = nn.Linear(4, 3), torch.randn(2, 4)
    program = pilotage.inference(module)
    program.compile(batch)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(InputError, match="captured without autocast"):
        program(batch)
    assert program(batch).dtype is torch.float32


def accumulation():
    matmul = torch.backends.cuda.matmul
    return matmul.allow_fp16_accumulation, matmul.allow_fp16_reduced_precision_reduction


@pytest.mark.parametrize(
    ("wanted", "expected"), [(None, None), (Accumulation.FLOAT, (False, False)), (Accumulation.HALF, (True, True))]
)
def test_half_precision_accumulation_is_set_while_a_program_runs(wanted, expected):
    before, seen = accumulation(), []

    class Looking(nn.Module):
        def forward(self, x):
            seen.append(accumulation())
            return x + 1

    executor = Executor(Looking(), execution=Execution(tier=Tier.EAGER, accumulation=wanted))
    executor(torch.ones(1))
    assert seen == [expected or before]
    assert accumulation() == before
    with pytest.raises(KeyError), accumulating_in(wanted):
        raise KeyError
    assert accumulation() == before
