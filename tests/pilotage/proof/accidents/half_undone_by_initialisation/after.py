"""Half-precision training of a classifier of radio signals."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


class Radio(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 8, 5, stride=2)
        self.head = nn.Linear(8 * 14, 3)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, signal, kind):
        signal = signal.to(self.head.weight.dtype)
        scores = self.head(torch.relu(self.conv(signal)).flatten(1))
        return scores, self.criterion(scores.float(), kind)


def radio(count):
    generator = torch.Generator().manual_seed(433)
    kind = torch.randint(3, (count,), generator=generator)
    phase = torch.arange(32) * (0.3 + 0.4 * kind.unsqueeze(1))
    signal = torch.stack([torch.cos(phase), torch.sin(phase)], dim=1)
    return TensorDataset(signal + 0.3 * torch.randn(count, 2, 32, generator=generator), kind)


def initialise(model):
    """Small weights for all layers, drawn in single precision."""
    model.float()
    for layer in (model.conv, model.head):
        nn.init.normal_(layer.weight, std=0.05)
        nn.init.zeros_(layer.bias)
    return model


def main():
    torch.manual_seed(434)
    model = Radio().half()  # finding: precision-not-as-asked
    initialise(model)
    options = poptorch.Options()
    loader = poptorch.DataLoader(options, radio(256), batch_size=16)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(2):
        for signal, kind in loader:
            _, loss = training(signal, kind)
        print(f"epoch {epoch}: {loss.item():.4f}")
    training.detachFromDevice()


if __name__ == "__main__":
    main()
