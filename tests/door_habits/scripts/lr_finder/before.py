"""A search for the learning rate, which starts again from the first weights afterwards."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
first = copy.deepcopy((model.state_dict(), optimizer.state_dict()))

losses = {}
optimizer.param_groups[0]["lr"] = 1e-4
for inputs, labels in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), labels)
    loss.backward()
    optimizer.step()
    losses[optimizer.param_groups[0]["lr"]] = loss.item()
    optimizer.param_groups[0]["lr"] *= 10
model.load_state_dict(first[0])
optimizer.load_state_dict(first[1])
optimizer.param_groups[0]["lr"] = min(losses, key=losses.get)

for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
