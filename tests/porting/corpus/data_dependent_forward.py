"""The number of layers that a batch goes through depends on its values."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Adaptive(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        steps = 0
        while x.norm() > 4.0 and steps < 3:
            x = torch.tanh(self.inner(x))
            steps += 1
        return self.head(x)


torch.manual_seed(113)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 8)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True)
model = Adaptive().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
