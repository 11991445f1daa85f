"""A list of the losses of all steps."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
step = pilotage.training(model, optimizer, loss=criterion, device_iterations=2, outputs="all")
losses = []

for _epoch in range(2):
    for inputs, labels in pilotage.batches(loader, step):
        _, loss = step(inputs, labels)
        losses += loss.tolist()
