"""A loss module of one's own."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma = gamma
        self.alpha = alpha

    def forward(self, logits, targets):
        entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        probability = torch.exp(-entropy)
        return (self.alpha * (1 - probability) ** self.gamma * entropy).mean()


torch.manual_seed(31)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(128, 9)
y = (x[:, 0] > 1.2).float().unsqueeze(1)
dataloader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(9, 18), nn.SiLU(), nn.Linear(18, 1)).to(device)
criterion = FocalLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.99))

for epoch in range(2):
    epoch_loss = 0
    for xb, yb in dataloader:
        xb = xb.to(device)
        yb = yb.to(device)
        optimizer.zero_grad()
        pred = model(xb)
        loss = criterion(pred, yb)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    print(f"Epoch {epoch}: {epoch_loss / len(dataloader):.5f}")
