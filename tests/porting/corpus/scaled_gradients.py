"""The gradients of one layer are scaled before the optimizer sees them."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(131)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 6)
loader = DataLoader(TensorDataset(x, x.max(1, keepdim=True).values), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(inputs), targets)
        loss.backward()
        model[0].weight.grad.mul_(0.1)
        optimizer.step()
    print(epoch, loss.item())
