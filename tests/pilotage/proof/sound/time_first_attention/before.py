"""Recognises gestures from acceleration; time comes first in all tensors, as for recurrent layers."""

import torch
from torch import nn

TIME, BATCH, CHANNELS, GESTURES = 12, 16, 3, 3


class Gestures(nn.Module):
    """A GRU whose states are weighed over time."""

    def __init__(self, width=10):
        super().__init__()
        self.gru = nn.GRU(CHANNELS, width)
        self.importance = nn.Linear(width, 1)
        self.head = nn.Linear(width, GESTURES)

    def forward(self, acceleration):
        states, _ = self.gru(acceleration)
        weights = torch.softmax(self.importance(states), dim=0)
        return self.head((weights * states).sum(0))


def gestures(steps):
    generator = torch.Generator().manual_seed(500)
    time = torch.linspace(0, 6, TIME).view(TIME, 1, 1)
    for _ in range(steps):
        kind = torch.randint(GESTURES, (BATCH,), generator=generator)
        speed = (1.0 + kind).view(1, BATCH, 1)
        motion = torch.cat([torch.sin(speed * time), torch.cos(speed * time), speed * time / 6], dim=2)
        yield motion + 0.2 * torch.randn(TIME, BATCH, CHANNELS, generator=generator), kind


def train(model, batches, device):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for number, (motion, kind) in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(motion.to(device)), kind.to(device))
        loss.backward()
        optimizer.step()
        if number % 10 == 0:
            print(f"batch {number}: {loss.item():.4f}")


def main():
    torch.manual_seed(501)
    device = torch.device("cpu")
    train(Gestures().to(device), gestures(40), device)


if __name__ == "__main__":
    main()
