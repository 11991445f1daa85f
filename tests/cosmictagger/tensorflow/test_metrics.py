"""The metrics equal the torch trainer's."""

import numpy as np
import torch

from cosmictagger.tensorflow.metrics import batch_metrics, predicted_classes
from cosmictagger.training import metrics as of_torch


def test_all_metrics_equal_those_of_torch():
    generator = torch.Generator().manual_seed(5)
    scores = torch.randint(0, 4, (6, 3, 12, 16), generator=generator).float()
    labels = torch.randint(0, 3, (6, 12, 16), generator=generator, dtype=torch.uint8)
    labels[0] = 0
    labels[4][labels[4] == 2] = 1
    prediction = of_torch.predicted_classes(scores)
    found = predicted_classes(scores.permute(0, 2, 3, 1).numpy())
    assert np.array_equal(found.numpy(), prediction.numpy())
    wanted = of_torch.batch_metrics(prediction, labels)
    np.testing.assert_allclose(batch_metrics(found, labels.numpy()).numpy(), wanted.numpy(), rtol=1e-6)


def test_images_without_charge_count_as_right():
    nothing = torch.zeros(3, 4, 4, dtype=torch.uint8)
    wanted = of_torch.batch_metrics(nothing, nothing)
    assert np.array_equal(batch_metrics(nothing.numpy(), nothing.numpy()).numpy(), wanted.numpy())
