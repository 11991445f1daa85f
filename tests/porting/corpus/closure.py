"""The step is a closure that the optimizer calls."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(43)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, torch.sin(x).sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range(2):
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)

        def closure():
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, targets)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
    print(epoch, loss.item())
