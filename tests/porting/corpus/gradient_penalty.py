"""The gradient with respect to the inputs is part of the loss."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(139)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 4)
loader = DataLoader(TensorDataset(x, x.pow(2).sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for inputs, targets in loader:
        inputs, targets = inputs.to(device).requires_grad_(), targets.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        slope, = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
        loss = nn.functional.mse_loss(outputs, targets) + 0.01 * slope.pow(2).mean()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
