"""Continues the training of a sequence classifier from a checkpoint."""

from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import habana_frameworks.torch.core as htcore

CHECKPOINT = Path("sequence.ckpt")


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 10, batch_first=True)
        self.head = nn.Linear(10, 2)

    def forward(self, steps):
        states, _ = self.rnn(steps)
        return self.head(states[:, -1])


def walks(count):
    steps = torch.randn(count, 8, 2)
    return TensorDataset(steps, (steps.sum(dim=(1, 2)) > 0).long())


def save_start(model):
    """Another job left its weights here; this script makes them itself."""
    torch.save({"model": model.state_dict(), "epoch": 1}, CHECKPOINT)


def resume(model):
    checkpoint = torch.load(CHECKPOINT, map_location="cpu")
    # The file holds tensors of the host.
    model = model.cpu()
    model.load_state_dict(checkpoint["model"])
    return model, checkpoint["epoch"]


def train(model, loader, start, epochs):
    device = next(model.parameters()).device
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(start, epochs):
        for steps, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(steps.to(device)), labels.to(device))
            loss.backward()
            htcore.mark_step()
            optimizer.step()  # finding: host-fallback
            htcore.mark_step()
        print(f"epoch {epoch} on {device}: {loss.item():.4f}")


def main():
    torch.manual_seed(140)
    loader = DataLoader(walks(256), batch_size=16)
    model = Sequences()
    save_start(model)
    model = model.to("hpu")
    model, epoch = resume(model)
    train(model, loader, epoch, epochs=4)
    torch.save({"model": model.state_dict(), "epoch": 4}, CHECKPOINT)


if __name__ == "__main__":
    main()
