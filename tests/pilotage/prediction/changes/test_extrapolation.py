import pytest
import torch
from torch import nn

from pilotage.prediction.changes.extrapolation import with_more_samples
from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import predicted, traced


class Images(nn.Module):
    """A convolution with a normalisation, a classifier, and a loss over all pairs of samples if asked for."""

    def __init__(self, pairs=False):
        super().__init__()
        self.convolution, self.norm, self.last = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)
        self.pairs = pairs

    def forward(self, images):
        x = self.last(torch.relu(self.norm(self.convolution(images))).mean((2, 3)))
        return (x @ x.T).square().mean() if self.pairs else x.square().mean()


def three(subject_of, device, pairs=False):
    model = device_model(device)
    subject = subject_of(Images(pairs), [torch.zeros(8, 3, 16, 16)])
    more = subject.with_samples(16)
    small, large = traced(subject.with_samples(4), model), traced(subject, model)
    return model, more, with_more_samples(more, small, large)


@pytest.mark.parametrize("device", ["bow", "h200"])
def test_twice_as_many_samples_need_no_capture(subject_of, device):
    model, more, found = three(subject_of, device)
    captured = traced(more, model)
    assert [each.work for each in found.update.operations] == [each.work for each in captured.update.operations]
    assert found.update.tensors == captured.update.tensors
    assert (found.samples, found.input_bytes) == (captured.samples, captured.input_bytes)
    assert predicted(found, model).update_seconds == predicted(captured, model).update_seconds


def test_pairs_of_samples_are_on_no_line(subject_of):
    assert three(subject_of, "bow", pairs=True)[-1] is None
