"""Accumulation with an update for the rest of an epoch, clipping, and a schedule that counts updates."""
import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def train_epoch(model, criterion, optimizer, scheduler, loader, device, accumulate, max_norm):
    model.train()
    running = 0.0
    optimizer.zero_grad()
    for step, (x, y) in enumerate(tqdm(loader)):
        x, y = x.to(device), y.to(device)
        logits = model(x)
        loss = criterion(logits, y)
        if accumulate > 1:
            loss = loss / accumulate
        loss.backward()
        if (step + 1) % accumulate == 0 or (step + 1) == len(loader):
            if max_norm > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        running += loss.item()
    return running / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=3)
    parser.add_argument("--max-norm", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(94)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(72, 5)
    loader = DataLoader(TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long()), batch_size=6, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    updates = math.ceil(len(loader) / args.accumulate) * args.epochs
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=updates)
    for epoch in range(args.epochs):
        loss = train_epoch(
            model, nn.CrossEntropyLoss(), optimizer, scheduler, loader, device, args.accumulate, args.max_norm
        )
        print(epoch, loss)


if __name__ == "__main__":
    main()
