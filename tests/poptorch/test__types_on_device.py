"""The types that a device computes in."""

from __future__ import annotations

import pytest
import torch

from poptorch._types_on_device import as_device_input, as_device_output

FLOATS = {torch.float64: torch.float32, torch.bfloat16: torch.float32}
KEPT = (torch.float32, torch.float16, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


@pytest.mark.parametrize(("given", "expected"), FLOATS.items())
def test_floats_that_the_device_lacks_go_in_as_32_bits(given, expected):
    tensor = torch.tensor([0.5, -2.0], dtype=given)
    assert as_device_input(tensor).dtype == expected
    assert torch.equal(as_device_input(tensor), tensor.float())


@pytest.mark.parametrize("kind", [torch.int64, torch.float64])
def test_64_bits_come_out_as_32(kind):
    tensor = torch.tensor([1, -2], dtype=kind)
    narrow = as_device_output(tensor)
    assert narrow.dtype.itemsize == 4
    assert narrow.tolist() == tensor.tolist()


@pytest.mark.parametrize("kind", KEPT)
def test_all_other_tensors_pass_as_they_are(kind):
    tensor = torch.ones(2, dtype=kind)
    assert as_device_input(tensor) is tensor
    assert as_device_output(tensor) is tensor


def test_whole_numbers_keep_their_width_on_the_way_in():
    tensor = torch.ones(2, dtype=torch.int64)
    assert as_device_input(tensor) is tensor
