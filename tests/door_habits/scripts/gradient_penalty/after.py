"""A penalty on the gradient with respect to the inputs."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, inputs):
        inputs = inputs.detach().requires_grad_()
        scores = self.layers(inputs)
        (slopes,) = torch.autograd.grad(scores.sum(), inputs, create_graph=True)
        return scores, slopes.square().sum(1).mean()


model = Smooth()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def criterion(outputs, labels):
    scores, penalty = outputs
    return nn.functional.cross_entropy(scores, labels) + 0.1 * penalty


step = pilotage.training(model, optimizer, loss=criterion)

for epoch in range(2):
    for inputs, labels in loader:
        _, loss = step(inputs, labels)
    print(f"epoch {epoch}: {loss.item():.4f}")
