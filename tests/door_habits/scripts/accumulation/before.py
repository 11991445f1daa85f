"""Gradients of two batches for each update."""

import torch
from torch import nn

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for _epoch in range(2):
    for number, (inputs, labels) in enumerate(loader):
        loss = criterion(model(inputs), labels) / 2
        loss.backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
