"""Training and scores in ordinary PyTorch: the same as `train.py` and `evaluate.py`, without poptorch."""

from time import perf_counter

import torch
from model import GarmentClassifier
from settings import Settings, TrainingRecord
from torch import Tensor
from torch.utils.data import DataLoader
from tqdm.auto import tqdm

from examples.datasets.fashion_mnist.dataset import FashionMNIST


def train(model: GarmentClassifier, dataset: FashionMNIST, settings: Settings) -> TrainingRecord:
    """Train ``model`` in place."""
    model.train()
    loader = DataLoader(dataset, batch_size=settings.batch_size, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    started = perf_counter()

    losses = []
    for epoch in range(settings.epochs):
        total = 0.0
        for images, labels in tqdm(loader, desc=f"epoch {epoch + 1}/{settings.epochs}", unit="step"):
            optimizer.zero_grad()
            _, loss = model(images, labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        losses.append(float(total) / len(loader))
    return TrainingRecord(
        losses=tuple(losses),
        steps=settings.epochs * len(loader),
        images_per_epoch=len(loader) * settings.batch_size,
        seconds=perf_counter() - started,
        preparation=0.0,
    )


def scores(model: GarmentClassifier, images: Tensor) -> Tensor:
    """The log-probabilities of the ten classes for each image."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(batch) for batch in images.split(100)])
