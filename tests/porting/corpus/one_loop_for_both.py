import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if not torch.cuda.is_available():
    print("Warning: no GPU found, training will be slow")

torch.manual_seed(0)


def loop(model, dl, criterion, optimizer=None, device=None):
    is_train = optimizer is not None
    model.train() if is_train else model.eval()
    total = 0.0
    for xb, yb in dl:
        xb, yb = xb.to(device), yb.to(device)
        if is_train:
            optimizer.zero_grad()
        with torch.set_grad_enabled(is_train):
            loss = criterion(model(xb), yb)
        if is_train:
            loss.backward()
            optimizer.step()
        total += loss.item() * len(xb)
    return total / len(dl.dataset)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tr = DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=16, shuffle=True)
    va = DataLoader(TensorDataset(torch.randn(32, 8), torch.randn(32, 1)), batch_size=16)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 1)).to(device)
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    best, best_state = float("inf"), None
    for epoch in range(4):
        train_loss = loop(model, tr, criterion, optimizer, device)
        val_loss = loop(model, va, criterion, device=device)
        scheduler.step()
        if val_loss < best:
            best = val_loss
            best_state = copy.deepcopy(model.state_dict())
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "best.pt")
        print(epoch, train_loss, val_loss)
    model.load_state_dict(best_state)


main()
