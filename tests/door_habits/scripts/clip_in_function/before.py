"""Clipping inside of a function that makes the update."""

import torch
from torch import nn

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()


def update(inputs, labels):
    optimizer.zero_grad()
    loss = criterion(model(inputs), labels)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss


for epoch in range(2):
    for inputs, labels in loader:
        loss = update(inputs, labels)
    print(f"epoch {epoch}: {loss.item():.4f}")
