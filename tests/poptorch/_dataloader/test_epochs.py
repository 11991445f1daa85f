"""PopTorch's loader can resume in the middle of an epoch."""

from __future__ import annotations

import pytest
import torch

import pilotage
import poptorch


@pytest.fixture
def dataset():
    return torch.utils.data.TensorDataset(torch.arange(40.0))


@pytest.fixture
def options():
    return poptorch.Options().deviceIterations(2)


def test_a_position_in_an_epoch_can_be_restored(dataset, options):
    epochs = pilotage.Epochs(poptorch.DataLoader(options, dataset, batch_size=2, shuffle=True))
    batches = iter(epochs)
    next(batches)
    position = epochs.position()
    expected = [next(batches)[0] for _ in range(12)]
    again = pilotage.Epochs(poptorch.DataLoader(options, dataset, batch_size=2, shuffle=True))
    again.resume(position)
    assert all(torch.equal(batch[0], other) for batch, other in zip(again, expected, strict=False))


@pytest.mark.slow
def test_a_position_cannot_be_restored_if_another_process_reads_ahead(dataset, options):
    ahead = poptorch.DataLoader(options, dataset, batch_size=2, mode=poptorch.DataLoaderMode.Async)
    try:
        with pytest.raises(pilotage.PilotageError, match="reads ahead in a separate process"):
            pilotage.Epochs(ahead)
    finally:
        ahead.terminate()
