from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset, default_collate

from examples.datasets.fashion_mnist import CLASSES, LabelledImages, generate
from examples.datasets.fashion_mnist.dataset import FashionMNIST, normalised


def drawn(count: int = 40) -> FashionMNIST:
    return FashionMNIST(generate(train=count, test=0).train)


def test_every_grey_level_is_normalised_like_torchvision() -> None:
    grey = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16)
    # What ToTensor and then Normalize((0.5,), (0.5,)) compute.
    mean = std = torch.tensor([0.5]).view(-1, 1, 1)
    expected = grey.to(torch.get_default_dtype()).div(255).sub_(mean).div_(std)
    assert torch.equal(normalised(grey)[0], expected)
    assert normalised(grey).dtype == torch.float32


def test_the_dataset_is_a_tensor_dataset_of_images_and_labels() -> None:
    dataset = drawn()
    assert isinstance(dataset, TensorDataset)
    images, labels = dataset.tensors
    assert images is dataset.images
    assert labels is dataset.labels
    assert images.shape == (40, 1, 28, 28)
    assert labels.dtype == torch.int64
    assert dataset.classes == CLASSES


def test_several_items_at_once_equal_one_by_one() -> None:
    dataset = drawn()
    chosen = [3, 1, 1, 39]
    for (image, label), index in zip(dataset.__getitems__(chosen), chosen, strict=True):
        assert torch.equal(image, dataset[index][0])
        assert torch.equal(label, dataset[index][1])


def test_a_whole_batch_equals_the_collation_of_single_samples() -> None:
    dataset = drawn()
    chosen = [3, 1, 1, 39]
    images, labels = default_collate([dataset[index] for index in chosen])
    batch = dataset.fetch_batch(chosen)
    assert torch.equal(batch[0], images)
    assert torch.equal(batch[1], labels)


def test_a_loader_gives_the_pictures_in_order() -> None:
    dataset = drawn()
    batches = list(DataLoader(dataset, batch_size=16))
    assert torch.equal(torch.cat([images for images, _ in batches]), dataset.images)
    assert torch.equal(torch.cat([labels for _, labels in batches]), dataset.labels)


def test_the_dataset_owns_its_memory() -> None:
    # Arrays read from a file cannot be written; torch must not be handed one of those.
    frozen = LabelledImages(np.zeros((2, 28, 28), np.uint8), np.zeros(2, np.uint8))
    frozen.images.flags.writeable = frozen.labels.flags.writeable = False
    FashionMNIST(frozen).images.add_(1)
    assert not frozen.images.any()


def test_the_splits_are_training_and_test_set() -> None:
    train, test = FashionMNIST.splits("generated", limit=30)
    assert len(train) == len(test) == 30
    assert not torch.equal(train.images, test.images)


def test_plain_arrays_need_no_torch() -> None:
    program = "import sys; from examples.datasets.fashion_mnist import load; load('generated', limit=1)\n"
    program += "sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[4]
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=root).returncode == 0
