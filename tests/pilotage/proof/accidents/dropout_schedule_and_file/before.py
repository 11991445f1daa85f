"""Recognises spoken vowels from formants."""

import copy
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Hyperparameters:
    epochs: int = 3
    batch_size: int = 16
    rate: float = 0.1
    gamma: float = 0.5
    dropout: float = 0.3


def vowels(count):
    generator = torch.Generator().manual_seed(250)
    vowel = torch.randint(5, (count,), generator=generator)
    centres = torch.randn(5, 4, generator=generator)
    return TensorDataset(centres[vowel] + 0.4 * torch.randn(count, 4, generator=generator), vowel)


class Vowels(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 5))

    def forward(self, formants, vowel=None):
        scores = self.layers(formants)
        if vowel is None:
            return scores
        return scores, nn.functional.cross_entropy(scores, vowel)


def preview(model, data):
    """What the network says before training."""
    model.eval()
    print(f"first guesses: {model(data.tensors[0][:5]).argmax(1).tolist()}")
    state = copy.deepcopy(model.state_dict())
    model.train()
    return state


def main(settings):
    torch.manual_seed(251)
    data, model = vowels(240), Vowels(settings.dropout)
    start = preview(model, data)
    loader = DataLoader(data, batch_size=settings.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.rate)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, settings.gamma)
    for epoch in range(settings.epochs):
        for formants, vowel in loader:
            optimizer.zero_grad()
            _, loss = model(formants, vowel)
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    moved = sum((model.state_dict()[name] - value).abs().sum().item() for name, value in start.items())
    print(f"the weights moved by {moved:.2f}")
    torch.save({"state": model.state_dict(), "settings": settings.__dict__}, "vowels.pt")


if __name__ == "__main__":
    main(Hyperparameters())
