from dataclasses import replace

import pytest
import torch
from torch import nn

import pilotage
from pilotage.options.locations import Locations
from pilotage.prediction.capturing.program import captured_for
from pilotage.prediction.changes.derived import with_recomputed_blocks, with_single_updates, with_slots_on_host
from pilotage.prediction.changes.variants import with_accumulation
from pilotage.prediction.prediction import traced_program


class Blocks(nn.Module):
    """Blocks of two layers each, with or without marks on their results."""

    def __init__(self, marks):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)) for _ in range(4))
        self.marks = marks

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
            if self.marks:
                pilotage.keep_for_backward(x)
        return x.square().mean()


def blocks(subject_of, marks):
    return subject_of(Blocks(marks), [torch.zeros(8, 64)])


def names(count=4):
    return [f"blocks.{place}" for place in range(count)]


def test_recomputation_equals_that_of_a_forward_with_marks(subject_of):
    plain, marked = blocks(subject_of, False), blocks(subject_of, True)
    program = captured_for(plain, "ipu")
    derived = traced_program(plain, with_recomputed_blocks(program, names()))
    real = traced_program(marked, captured_for(marked, "ipu"))
    assert [each.work for each in derived.update.operations] == [each.work for each in real.update.operations]
    assert [(each.bytes, each.first, each.last) for each in derived.update.tensors] == [
        (each.bytes, each.first, each.last) for each in real.update.tensors
    ]
    assert len(derived.update.operations) > len(traced_program(plain, program).update.operations)


def test_a_program_that_recomputes_or_has_no_such_modules_is_left_alone(subject_of):
    assert with_recomputed_blocks(captured_for(blocks(subject_of, True), "ipu"), names()) is None
    assert with_recomputed_blocks(captured_for(blocks(subject_of, False), "ipu"), ["others.0"]) is None


@pytest.mark.parametrize("accumulation", [1, 2])
def test_an_offloaded_optimizer_equals_a_captured_one(subject_of, accumulation):
    subject = with_accumulation(subject_of(), accumulation)
    program = captured_for(with_accumulation(subject, 4), "ipu")
    if accumulation == 1:
        program = with_single_updates(program)
    execution = replace(subject.execution, locations=Locations(optimizer=1))
    captured = captured_for(replace(subject, execution=execution), "ipu")
    assert traced_program(subject, with_slots_on_host(program)).update == traced_program(subject, captured).update
