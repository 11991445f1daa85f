"""Batches are dictionaries, and the loss is outside of the model."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Weather(Dataset):
    def __init__(self, days):
        self.measured = torch.randn(days, 5)

    def __len__(self):
        return len(self.measured)

    def __getitem__(self, day):
        return {"features": self.measured[day], "target": self.measured[day].mean(0, keepdim=True)}


torch.manual_seed(67)
train_loader = DataLoader(Weather(64), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1)).to(device)
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(2):
    for batch in train_loader:
        features = batch["features"].to(device)
        target = batch["target"].to(device)
        optimizer.zero_grad()
        loss = loss_fn(model(features), target)
        loss.backward()
        optimizer.step()
    print(f"{epoch}: {loss.item():.5f}")
