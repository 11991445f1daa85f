"""Compiled code checks its arguments, and does not keep them alive."""

from __future__ import annotations

import gc
import json
import weakref

import pytest
import torch

from pilotage.compiler.code import CodeFacts, NativeCode, read_code, write_code
from pilotage.compiler.wrapper import Wrapper
from pilotage.errors import ProgramFileError
from pilotage.program.specification import TensorSpec

ADDING = """
def call(args):
    total, batch = args
    args.clear()
    total.add_(batch)
    return (total * 2,)
"""


@pytest.fixture
def adding(tmp_path):
    """Code that adds a batch to a total."""
    facts = CodeFacts(
        wrapper=Wrapper(ADDING, ()),
        cpp_kernels={},
        cuda_kernels={},
        arguments=(TensorSpec.of(torch.zeros(4, 3)), TensorSpec.of(torch.zeros(4, 3))),
        written=frozenset({0}),
        outputs=1,
    )
    write_code(tmp_path, facts)
    return NativeCode(tmp_path, torch.device("cpu"))


def misaligned(values):
    """The same values at an unaligned address."""
    place = torch.zeros(values.numel() + 1)[1:].view(values.shape)
    return place.copy_(values)


def test_arguments_are_changed_in_place_at_any_address(adding):
    for place in (torch.clone, misaligned):
        total = place(torch.ones(4, 3))
        for expected in (2.0, 3.0):
            (doubled,) = adding(total, torch.ones(4, 3))
            assert torch.equal(total, torch.full((4, 3), expected))
            assert torch.equal(doubled, 2 * total)


def test_inputs_of_the_last_call_are_not_kept_alive(adding):
    total, batch = torch.zeros(4, 3), torch.ones(8, 3)
    large = weakref.ref(batch)
    adding(total, batch[:4])
    del batch
    gc.collect()
    assert large() is None


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(torch.zeros(3, 4), id="shape"),
        pytest.param(torch.zeros(3, 4).t(), id="strides"),
        pytest.param(torch.zeros(4, 3).double(), id="type"),
        pytest.param(torch.zeros(4, 3, device="meta"), id="device"),
    ],
)
def test_arguments_that_do_not_match_are_refused(adding, wrong):
    total = torch.zeros(4, 3)
    adding(total, torch.ones(4, 3))
    with pytest.raises(ProgramFileError, match="Argument 1 of compiled code is"):
        adding(total, wrong)
    assert torch.equal(total, torch.ones(4, 3))


def test_another_number_of_arguments_is_refused(adding):
    with pytest.raises(ProgramFileError, match="takes 2 tensors, but got 1"):
        adding(torch.zeros(4, 3))


SUMMING = """
def call(args):
    batch, offsets, flags, nothing = args
    args.clear()
    return (batch + offsets * flags + nothing.sum(),)
"""


def test_tensors_that_are_built_in_come_after_the_arguments(tmp_path):
    built_in = (torch.arange(3.0).to(torch.bfloat16), torch.tensor([True, False, True]), torch.empty(0, 2))
    facts = CodeFacts(
        wrapper=Wrapper(SUMMING, ()),
        cpp_kernels={},
        cuda_kernels={},
        arguments=(TensorSpec.of(torch.zeros(3)),),
        written=frozenset(),
        outputs=1,
        constants=built_in,
    )
    write_code(tmp_path, facts)
    code = NativeCode(tmp_path, torch.device("cpu"))
    for _ in range(2):
        (found,) = code(torch.ones(3))
        assert found.tolist() == [1.0, 1.0, 3.0]


def test_libraries_of_older_versions_have_one_kernel_each():
    files = {
        "wrapper.py": b"",
        "code.json": json.dumps(
            {
                "kernels": ["old", "new"],
                "cpp": {"old": "0.so", "new": ["1.so", "kernel_3"]},
                "cuda": {},
                "arguments": [],
                "written": [],
                "outputs": 0,
            }
        ).encode(),
    }
    assert read_code(files.__getitem__).cpp_kernels == {"old": ("0.so", "kernel"), "new": ("1.so", "kernel_3")}


def test_other_state_is_checked_again_between_calls(adding):
    first, second, batch = torch.zeros(4, 3), torch.zeros(4, 3), torch.ones(4, 3)
    for total, expected in ((first, 1.0), (second, 1.0), (misaligned(torch.ones(4, 3)), 2.0), (first, 2.0)):
        adding(total, batch)
        assert torch.equal(total, torch.full((4, 3), expected))
    with pytest.raises(ProgramFileError, match="Argument 0 of compiled code is"):
        adding(torch.zeros(3, 4), batch)
