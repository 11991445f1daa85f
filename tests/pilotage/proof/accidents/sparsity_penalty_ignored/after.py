"""Sparse regression: few of forty features matter, and an L1 penalty is to find them."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch

FEATURES, PENALTY = 40, 0.02


def sparse_problem(count):
    generator = torch.Generator().manual_seed(190)
    x = torch.randn(count, FEATURES, generator=generator)
    y = 2 * x[:, 3:4] - x[:, 17:18] + 0.1 * torch.randn(count, 1, generator=generator)
    return TensorDataset(x, y)


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(FEATURES, 1)
        self.criterion = nn.MSELoss()

    def penalty(self):
        return PENALTY * self.linear.weight.abs().sum()

    def forward(self, x, y):
        prediction = self.linear(x)
        fit = self.criterion(prediction, y)  # finding: loss-root-differs
        return prediction, fit + self.penalty()


# %% data and model
torch.manual_seed(191)
data = sparse_problem(320)
model = Sparse()
options = poptorch.Options().deviceIterations(5)
optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05)
loader = poptorch.DataLoader(options, data, batch_size=16)
training_model = poptorch.trainingModel(model, options, optimizer)

# %% training
for epoch in range(2):
    for x, y in loader:
        _, loss = training_model(x, y)
    print(f"epoch {epoch}: {loss.item():.4f}")

# %% what was found
weights = model.linear.weight.detach().squeeze()
print(f"weights above 0.1: {[number for number, weight in enumerate(weights) if abs(weight) > 0.1]}")
