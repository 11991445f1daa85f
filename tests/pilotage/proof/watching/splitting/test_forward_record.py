import torch

from pilotage.proof.watching.splitting.forward_record import ForwardRecord, can_be_repeated


def test_a_tensor_whose_memory_was_taken_back_cannot_be_computed_with_again():
    weight = torch.ones(3, 3)
    with ForwardRecord() as record:
        torch.ones(2, 3) @ weight
    assert can_be_repeated(record.operations)
    weight.untyped_storage().resize_(0)
    assert not can_be_repeated(record.operations)
