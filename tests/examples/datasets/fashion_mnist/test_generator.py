from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from examples.datasets.fashion_mnist import CLASSES, generate
from examples.datasets.fashion_mnist.dataset import FashionMNIST
from examples.datasets.fashion_mnist.garments import GARMENTS
from examples.datasets.fashion_mnist.generator import CHUNK

pytestmark = pytest.mark.slow


def test_there_is_a_garment_for_every_class() -> None:
    names = [garment.__name__.replace("_", " ") for garment in GARMENTS]
    assert names == [name.lower().replace("-", " ") for name in CLASSES]


@settings(max_examples=10, deadline=None)
@given(count=st.integers(0, 3 * CHUNK), seed=st.integers(0, 2**32))
def test_a_longer_set_begins_with_the_shorter_one(count: int, seed: int) -> None:
    shorter = generate(train=count, test=0, seed=seed).train
    longer = generate(train=count + 1, test=0, seed=seed).train
    assert len(shorter) == count
    assert np.array_equal(shorter.images, longer.images[:count])
    assert np.array_equal(shorter.labels, longer.labels[:count])


def test_seed_and_split_each_change_the_pictures() -> None:
    first, second = generate(train=10, test=10, seed=0), generate(train=10, test=10, seed=1)
    drawn = [split.images.tobytes() for splits in (first, second) for split in (splits.train, splits.test)]
    assert len(set(drawn)) == 4


def test_all_classes_are_equally_frequent_and_all_images_differ() -> None:
    train = generate(train=2 * CHUNK, test=0).train
    assert np.array_equal(np.bincount(train.labels), np.full(10, CHUNK // 5))
    assert len({image.tobytes() for image in train.images}) == len(train)


def test_images_are_light_garments_on_black() -> None:
    images = generate(train=CHUNK, test=0).train.images
    assert images.dtype == np.uint8
    covered = (images > 0).mean(axis=(1, 2))
    assert covered.min() > 0.04
    assert covered.max() < 0.9
    assert np.median(images[:, 0, 0]) == 0


@pytest.mark.slow
def test_a_small_network_learns_most_of_them_but_not_all() -> None:
    splits = generate(train=4000, test=2000)
    train, test = FashionMNIST(splits.train), FashionMNIST(splits.test)
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(288, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(6):
        for chosen in torch.randperm(len(train)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(train.images[chosen]), train.labels[chosen]).backward()
            optimizer.step()
    accuracy = (network(test.images).argmax(1) == test.labels).float().mean().item()
    assert 0.75 < accuracy < 0.99
