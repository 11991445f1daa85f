"""The metrics against counts on small images."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmictagger.training.metrics import KEYS, NAMES, batch_metrics, image_metrics, predicted_classes


def by_counting(prediction, label):
    pairs = list(zip(prediction.flatten().tolist(), label.flatten().tolist(), strict=True))
    right = sum(p == y for p, y in pairs) / len(pairs)
    marked = [(p, y) for p, y in pairs if y]
    non_background = sum(p == y for p, y in marked) / len(marked) if marked else 1.0

    def ratio(kind):
        union = sum(p == kind or y == kind for p, y in pairs)
        return sum(p == kind and y == kind for p, y in pairs) / union if union else 1.0

    return [right, non_background, ratio(1), ratio(2), 0.5 * (ratio(1) + ratio(2))]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_each_image_is_measured_by_counting(seed, events, classes):
    torch.manual_seed(seed)
    prediction, label = (torch.randint(0, classes, (3 * events, 3, 4), dtype=torch.uint8) for _ in range(2))
    found = image_metrics(prediction, label)
    for number in range(3 * events):
        wanted = by_counting(prediction[number], label[number])
        torch.testing.assert_close(found[number // events, number % events], torch.tensor(wanted))


def test_averages_are_over_images_then_planes():
    torch.manual_seed(0)
    prediction, label = (torch.randint(0, 3, (6, 4, 4), dtype=torch.uint8) for _ in range(2))
    numbers = dict(zip(KEYS, batch_metrics(prediction, label).tolist(), strict=True))
    assert len(KEYS) == 20
    images = image_metrics(prediction, label)
    for position, name in enumerate(NAMES):
        planes = [numbers[f"plane{plane}/{name}"] for plane in range(3)]
        assert planes == pytest.approx(images[:, :, position].mean(1).tolist())
        assert numbers[f"Average/{name}"] == pytest.approx(sum(planes) / 3)


def test_a_prediction_is_the_first_of_the_highest_scores():
    torch.manual_seed(0)
    scores = torch.randint(0, 3, (4, 3, 8, 8)).float()
    assert torch.equal(predicted_classes(scores).long(), scores.argmax(1))
