"""Saving and loading weights and the optimizer's state after each epoch."""

import io

import torch
from torch import nn

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()

for _epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    checkpoint_file = io.BytesIO()
    torch.save(saved, checkpoint_file)
    checkpoint_file.seek(0)
    restored = torch.load(checkpoint_file)
    model.load_state_dict(restored["model"])
    optimizer.load_state_dict(restored["optimizer"])
