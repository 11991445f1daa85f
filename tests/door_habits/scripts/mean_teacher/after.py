"""A teacher that is the running average of its student."""

import copy

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
teacher = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def criterion(scores, labels, wanted):
    return nn.functional.cross_entropy(scores, labels) + (scores.softmax(1) - wanted).square().mean()


step = pilotage.training(model, optimizer, loss=lambda scores, targets: criterion(scores, *targets))

for _epoch in range(2):
    for inputs, labels in loader:
        wanted = teacher(inputs).softmax(1)
        _, loss = step(inputs, (labels, wanted))
        for average, weight in zip(teacher.parameters(), model.parameters(), strict=True):
            average.data.lerp_(weight.data, 0.1)
