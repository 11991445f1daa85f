"""Copies on the host, on their way to a card."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.execution import pinned_inputs as staging

TYPES = (torch.uint8, torch.bool, torch.int64, torch.bfloat16, torch.float32, torch.complex64)
FORMS = {
    "as it is": lambda tensor: tensor,
    "transposed": lambda tensor: tensor.transpose(0, 1),
    "every second": lambda tensor: tensor[:, ::2],
    "conjugated": lambda tensor: tensor.conj(),
    "empty": lambda tensor: tensor[:0],
}


@given(st.sampled_from(TYPES), st.sampled_from(list(FORMS)), st.integers(1, 5), st.integers(1, 7))
def test_a_copy_has_the_values_of_its_source(dtype, form, rows, columns):
    source = FORMS[form](torch.randint(0, 2, (rows, columns)).to(dtype))
    target = torch.empty(source.shape, dtype=dtype)
    assert staging.copied(target, source) is target
    assert torch.equal(target, source)


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_small_tensors_are_copied_by_one_thread_and_large_ones_by_all(monkeypatch, most):
    monkeypatch.setattr(staging, "_WORTH_THREADS", most)
    source = torch.arange(1000.0)
    moved = []
    monkeypatch.setattr(staging.ctypes, "memmove", lambda *arguments: moved.append(arguments))
    staging.copied(torch.empty(1000), source)
    assert bool(moved) == (most > 0)
