"""Stops when the validation loss has not improved for a while, and goes back to the best weights."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0, path="best.pt"):
        self.patience, self.delta, self.path = patience, delta, path
        self.best, self.counter, self.stop = np.inf, 0, False

    def __call__(self, value, model):
        if value < self.best - self.delta:
            self.best, self.counter = value, 0
            torch.save(model.state_dict(), self.path)
        else:
            self.counter += 1
            self.stop = self.counter >= self.patience


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    losses = []
    for features, price in loader:
        features, price = features.to(device), price.to(device)
        optimizer.zero_grad()
        predicted = model(features)
        loss = criterion(predicted, price)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    losses = [criterion(model(features.to(device)), price.to(device)).item() for features, price in loader]
    return np.mean(losses)


if __name__ == "__main__":
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    features = torch.randn(160, 6)
    houses = TensorDataset(features, features @ torch.randn(6, 1) + 0.1 * torch.randn(160, 1))
    train_set, valid_set = random_split(houses, [128, 32])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=16)

    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)).to(device)
    criterion = nn.L1Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    early_stopping = EarlyStopping()
    for epoch in range(4):
        train_loss = train_epoch(model, train_loader, criterion, optimizer, device)
        valid_loss = evaluate(model, valid_loader, criterion, device)
        print(f"{epoch:3d} {train_loss:.4f} {valid_loss:.4f}")
        early_stopping(valid_loss, model)
        if early_stopping.stop:
            print("no improvement any more")
            break
    model.load_state_dict(torch.load("best.pt", weights_only=True))
