"""Four small batches make one update."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
accumulation_steps = 4

points = torch.randn(128, 8)
labels = (points[:, 0] * points[:, 1] > 0).long()
train_loader = DataLoader(TensorDataset(points, labels), batch_size=4, shuffle=True, drop_last=True)

model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

model.train()
for epoch in range(2):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(train_loader):
        x, y = x.to(device), y.to(device)
        predictions = model(x)
        loss = criterion(predictions, y)
        loss = loss / accumulation_steps  # the mean over all four
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch}: {accumulation_steps * loss.item():.4f}")

torch.save(model.state_dict(), "accumulated.pt")
