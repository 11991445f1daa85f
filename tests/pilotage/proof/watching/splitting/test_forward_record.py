"""The operations of a forward pass."""

import pytest
import torch

from pilotage.proof.watching.splitting.forward_record import ForwardRecord, can_be_repeated


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")
@pytest.mark.parametrize("is_compiled_before", [False, True])
def test_functions_that_must_be_compiled_as_a_whole_run_eagerly_while_they_are_recorded(is_compiled_before):
    compilations = []

    def counting(graph, inputs):
        compilations.append(graph)
        return graph

    torch.compiler.reset()
    compiled = torch.compile(lambda x: x.sin().cos(), backend=counting, fullgraph=True)
    values = torch.rand(3)
    if is_compiled_before:
        compiled(values)
    with ForwardRecord() as record:
        found = compiled(values)
    assert [each.name for each in record.operations] == ["sin", "cos"]
    assert torch.equal(found, values.sin().cos())
    assert len(compilations) == is_compiled_before
    compiled(values)
    assert len(compilations) == 1


def test_a_tensor_whose_memory_was_taken_back_cannot_be_computed_with_again():
    weight = torch.ones(3, 3)
    with ForwardRecord() as record:
        torch.ones(2, 3) @ weight
    assert can_be_repeated(record.operations)
    weight.untyped_storage().resize_(0)
    assert not can_be_repeated(record.operations)
