"""A stream of samples instead of an indexed data set."""

import torch
from torch import nn

import pilotage

torch.manual_seed(0)


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(1)
        for number in range(72):
            yield torch.randn(8, generator=generator), number % 3


loader = torch.utils.data.DataLoader(Stream(), batch_size=16)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
step = pilotage.training(model, optimizer, loss=criterion, device_iterations=2)

for epoch in range(2):
    for inputs, labels in pilotage.batches(loader, step):
        _, loss = step(inputs, labels)
    print(f"epoch {epoch}: {loss.item():.4f}")
