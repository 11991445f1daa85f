"""Fingerprints of programs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import pilotage
from pilotage.storage.fingerprint import Fingerprint, fingerprint


class Scaled(nn.Module):
    def __init__(self, width=4, factor=2.0, table=(1.0, 2.0)):
        super().__init__()
        self.layer = nn.Linear(3, width)
        self.factor = factor
        self.table = torch.tensor(table)

    def forward(self, x):
        return self.layer(x) * self.factor + self.table.sum()


def of(model, rows=2, target=None):
    wrapped = pilotage.inference(model, backend="cpu", tier="graph")
    wrapped.compile(torch.randn(rows, 3))
    return fingerprint(wrapped._executor.session.captured, target or {"torch": "2.13"})


def test_the_same_program_has_the_same_fingerprint_whatever_its_weights():
    assert of(Scaled()).digest == of(Scaled()).digest


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (lambda: of(Scaled(factor=3.0)), "operations"),
        (lambda: of(Scaled(width=5)), "state"),
        (lambda: of(Scaled(table=(1.0, 3.0))), "constants"),
        (lambda: of(Scaled(), rows=4), "inputs"),
        (lambda: of(Scaled(), target={"torch": "2.14"}), "torch"),
    ],
)
def test_each_difference_is_named(other, part):
    here, there = of(Scaled()), other()
    assert here.digest != there.digest
    assert any(difference.startswith(part) for difference in there.differences(here.parts))


def test_a_part_that_was_not_there_before_is_a_difference():
    assert Fingerprint({"a": "1", "b": "2"}).differences({"a": "1"}) == ["b (nothing before, now 2)"]


def test_inputs_in_another_memory_layout_make_another_program():
    wrapped = pilotage.inference(Scaled(), backend="cpu", tier="graph")
    wrapped.compile(torch.randn(3, 3))
    program = wrapped._executor.session.captured
    (specification,) = program.inputs
    other = replace(program, inputs=(replace(specification, stride=(1, 3)),))
    here, there = (fingerprint(each, {}) for each in (program, other))
    assert here.parts["inputs"] == "float32[3, 3]"
    assert there.parts["inputs"] == "float32[3, 3] with strides [1, 3]"
