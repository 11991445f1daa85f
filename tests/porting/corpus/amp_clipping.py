"""The order of a mixed-precision step with clipping: scale, unscale, clip, step, update."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.GRU(4, width, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, sequence):
        states, _ = self.rnn(sequence)
        return self.head(states[:, -1]).squeeze(-1)


def run(args):
    device = torch.device(args.device)
    amp = device.type == "cuda"
    sequences = torch.randn(64, 6, 4)
    loader = DataLoader(TensorDataset(sequences, sequences.sum((1, 2))), batch_size=8, shuffle=True)
    model = Regressor(12).to(device)
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    scaler = torch.amp.GradScaler("cuda", enabled=amp)
    for epoch in range(args.epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            with torch.amp.autocast(device_type=device.type, enabled=amp):
                prediction = model(x)
                loss = criterion(prediction, y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
        print(epoch, float(loss))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--epochs", type=int, default=2)
    torch.manual_seed(0)
    run(parser.parse_args())
