"""Mixup with smooth labels: another share at each step."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
smooth = nn.CrossEntropyLoss(label_smoothing=0.1)


def criterion(scores, labels, others, share):
    return share * smooth(scores, labels) + (1 - share) * smooth(scores, others)


step = pilotage.training(model, optimizer, loss=lambda scores, targets: criterion(scores, *targets))

for _epoch in range(2):
    for inputs, labels in loader:
        order, share = torch.randperm(len(inputs)), torch.distributions.Beta(0.4, 0.4).sample().item()
        mixed = share * inputs + (1 - share) * inputs[order]
        _, loss = step(mixed, (labels, labels[order], torch.tensor(share)))
