"""Detects fraud in transactions, with a validation after each epoch and the best weights kept."""

import copy

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


def transactions(count, seed):
    generator = torch.Generator().manual_seed(seed)
    details = torch.randn(count, 8, generator=generator)
    fraud = (details[:, 0] * details[:, 1] + details[:, 2] > 1).long()
    return TensorDataset(details, fraud)


class Fraud(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, details, fraud):
        scores = self.layers(details)
        return scores, self.criterion(scores, fraud)


def train_epoch(training, loader):
    for details, fraud in loader:
        _, loss = training(details, fraud)
    training.detachFromDevice()
    return loss.item()


def validate(inference, loader):
    losses = [inference(details, fraud)[1].item() for details, fraud in loader]
    inference.detachFromDevice()
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(410)
    model = Fraud()
    options = poptorch.Options()
    training_data = poptorch.DataLoader(options, transactions(192, seed=1), batch_size=16)
    validation_data = poptorch.DataLoader(options, transactions(64, seed=2), batch_size=32)
    optimizer = poptorch.optim.Adam(model.parameters(), lr=0.02)
    training = poptorch.trainingModel(model, options, optimizer)
    # Each program keeps the mode that the model has when it is wrapped.
    model.eval()
    inference = poptorch.inferenceModel(model, options)
    model.train()
    best, kept = float("inf"), None
    for epoch in range(4):
        loss, validation = train_epoch(training, training_data), validate(inference, validation_data)
        print(f"epoch {epoch}: training {loss:.4f}, validation {validation:.4f}")
        if validation < best:
            best, kept = validation, copy.deepcopy(model.state_dict())
    torch.save(kept, "fraud.pt")


if __name__ == "__main__":
    main()
