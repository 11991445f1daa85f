"""Fine-tunes the head of a network whose body comes from an earlier task."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(10, 24)
        self.mix = nn.Linear(24, 24)

    def forward(self, x):
        return torch.tanh(self.mix(torch.tanh(self.embed(x))))


class Tuned(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.requires_grad_(False)
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.body(x))


def earlier_task():
    """The body as it was left by another script."""
    generator = torch.Generator().manual_seed(420)
    body = Body()
    with torch.no_grad():
        for parameter in body.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return body


def samples(count):
    x = torch.randn(count, 10)
    return TensorDataset(x, x[:, :4].argmax(1))


def tune(model, loader, epochs):
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=0.02)
    step = pilotage.training(model, optimizer, loss=nn.CrossEntropyLoss())
    for epoch in range(epochs):
        for x, kind in loader:
            _, loss = step(x, kind)
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(421)
    model = Tuned(earlier_task())
    tune(model, DataLoader(samples(240), batch_size=16), epochs=3)
    torch.save(model.head.state_dict(), "head.pt")
