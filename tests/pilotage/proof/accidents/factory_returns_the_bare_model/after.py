"""Classifies sounds of insects; the program for the IPU is made by a factory."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


class Insects(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 7, stride=3)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(6 * 14, 4)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, sound, kind):
        scores = self.head(self.dropout(torch.relu(self.conv(sound)).flatten(1)))
        return scores, self.criterion(scores, kind)


def sounds(count):
    kind = torch.arange(count) % 4
    time = torch.linspace(0, 1, 48)
    sound = torch.sin(2 * torch.pi * (5 + 3 * kind.unsqueeze(1)) * time)
    return TensorDataset((sound + 0.3 * torch.randn(count, 48)).unsqueeze(1), kind)


class Factory:
    """Makes what a run needs, once."""

    def __init__(self, options):
        self.options = options
        self.made = {}

    def model(self):
        return self.made.setdefault("model", Insects())

    def optimizer(self):
        if "optimizer" not in self.made:
            self.made["optimizer"] = poptorch.optim.Adam(self.model().parameters(), lr=5e-3)
        return self.made["optimizer"]

    def program(self):
        program = poptorch.trainingModel(self.model(), self.options, self.optimizer())  # finding: wrapper-lost
        self.made["program"] = program
        return program.model


def main():
    torch.manual_seed(560)
    factory = Factory(poptorch.Options())
    program, optimizer = factory.program(), factory.optimizer()
    print(f"dropout {factory.model().eval().dropout.p}")  # finding: eval-mode-in-training
    loader = poptorch.DataLoader(factory.options, sounds(240), batch_size=16)
    for epoch in range(2):
        for sound, kind in loader:
            optimizer.zero_grad()
            _, loss = program(sound, kind)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
