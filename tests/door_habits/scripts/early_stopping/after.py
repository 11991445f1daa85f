"""Stopping when the validation no longer improves, and taking back the best weights."""

import copy

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
held_out = torch.randn(32, 8), torch.randint(0, 3, (32,))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
criterion = nn.CrossEntropyLoss()
best, weights, waited = float("inf"), {}, 0
step = pilotage.training(model, optimizer, loss=criterion)

for epoch in range(8):
    model.train()
    for inputs, labels in loader:
        _, loss = step(inputs, labels)
    model.eval()
    with torch.no_grad():
        found = criterion(model(held_out[0]), held_out[1]).item()
    if found < best:
        best, weights, waited = found, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
    if waited == 2:
        print(f"stopped after epoch {epoch}")
        break
model.load_state_dict(weights)
