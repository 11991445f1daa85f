"""The engine's own public door: a PyTorch module, its optimizer and its loss as one program.

step = pilotage.training(model, optimizer, loss=torch.nn.CrossEntropyLoss(), device_iterations=50)
for images, labels in pilotage.batches(loader, step):
    outputs, loss = step(images, labels)
"""

from __future__ import annotations

from pilotage.door.batches import Batches, batches
from pilotage.door.compiled_model import CompiledModel, record_of
from pilotage.door.settings import Options, execution
from pilotage.door.with_loss import WithLoss
from pilotage.door.wrapping import inference, training

__all__ = [
    "Batches",
    "CompiledModel",
    "Options",
    "WithLoss",
    "batches",
    "execution",
    "inference",
    "record_of",
    "training",
]
