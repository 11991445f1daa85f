"""An optimizer that the script brings along."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters, lr, betas=(0.9, 0.99)):
        super().__init__(parameters, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["average"] = torch.zeros_like(parameter)
                update = state["average"] * beta1 + parameter.grad * (1 - beta1)
                parameter.add_(update.sign(), alpha=-group["lr"])
                state["average"].mul_(beta2).add_(parameter.grad, alpha=1 - beta2)


optimizer = Lion(model.parameters(), lr=0.003)
criterion = nn.CrossEntropyLoss()
step = pilotage.training(model, optimizer, loss=criterion)

for epoch in range(2):
    for inputs, labels in loader:
        _, loss = step(inputs, labels)
    print(f"epoch {epoch}: {loss.item():.4f}")
