"""Training through poptorch. `plain.py` has the same loop in ordinary PyTorch: read the two side by side."""

from time import perf_counter

from model import GarmentClassifier
from settings import Settings, TrainingRecord

import pilotage
import poptorch
from examples.datasets.fashion_mnist.dataset import FashionMNIST


def train(model: GarmentClassifier, dataset: FashionMNIST, settings: Settings) -> TrainingRecord:
    """Train ``model`` in place."""
    options = poptorch.Options()
    options.deviceIterations(settings.device_iterations)

    # The loader reads from the options how many micro-batches one call consumes.
    loader = poptorch.DataLoader(options, dataset, batch_size=settings.batch_size, shuffle=True)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    training_model = poptorch.trainingModel(model.train(), options=options, optimizer=optimizer)

    # The first call would compile as well. Compiling here keeps it out of the measured time.
    started = perf_counter()
    per_call = loader.combinedBatchSize
    training_model.compile(dataset.images[:per_call], dataset.labels[:per_call])
    ready = perf_counter()

    losses = []
    for epoch in range(settings.epochs):
        total = 0.0
        bar = pilotage.progress_bar(loader, description=f"epoch {epoch + 1}/{settings.epochs}", unit="call")
        for images, labels in bar:
            # One call does forward, backward and the update of the weights.
            _, loss = training_model(images, labels)
            total += loss
        losses.append(float(total) / len(loader))
    finished = perf_counter()

    # Frees the device for the evaluation. `model` already has the trained weights.
    training_model.detachFromDevice()
    return TrainingRecord(
        losses=tuple(losses),
        steps=settings.epochs * len(loader) * settings.device_iterations,
        images_per_epoch=len(loader) * per_call,
        seconds=finished - ready,
        preparation=ready - started,
    )
