"""Detects anomalies in sensor readings with an autoencoder."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import habana_frameworks.torch.core as htcore

SENSORS, BATCH = 12, 16


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(SENSORS, 4)
        self.decode = nn.Linear(4, SENSORS)

    def forward(self, readings):
        return self.decode(torch.tanh(self.encode(readings)))


def readings(count):
    drivers = torch.randn(count, 3)
    mixing = torch.randn(3, SENSORS)
    return TensorDataset(drivers @ mixing + 0.1 * torch.randn(count, SENSORS))


def train(model, loader, device, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seen = 0
    for epoch in range(epochs):
        for (batch,) in loader:
            # Another shape would be compiled once more.
            if len(batch) != BATCH:
                continue
            batch = batch.to(device)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch), batch)
            loss.backward()
            htcore.mark_step()
            optimizer.step()
            htcore.mark_step()
            seen += len(batch)
        print(f"epoch {epoch}: {loss.item():.4f} after {seen} readings")


def main():
    torch.manual_seed(33)
    device = torch.device("hpu")
    data = readings(250)
    model = Autoencoder().to(device)
    loader = DataLoader(data, batch_size=BATCH)  # finding: samples-dropped
    train(model, loader, device, epochs=3)

    errors = (model(data.tensors[0].to(device)) - data.tensors[0].to(device)).pow(2).mean(1)
    print(f"strangest reading: {errors.argmax().item()}")


if __name__ == "__main__":
    main()
