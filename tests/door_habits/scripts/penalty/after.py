"""A loss with a penalty on the weights."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)


class Penalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, inputs):
        return self.layers(inputs), sum(weight.abs().sum() for weight in self.layers.parameters())


model = Penalised()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def criterion(outputs, labels):
    scores, penalty = outputs
    return nn.functional.cross_entropy(scores, labels) + 0.001 * penalty


step = pilotage.training(model, optimizer, loss=criterion)

for epoch in range(2):
    for inputs, labels in loader:
        _, loss = step(inputs, labels)
    print(f"epoch {epoch}: {loss.item():.4f}")
