"""Learns the product of two polynomials, coefficient by coefficient."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEGREE = 3


def polynomials(count):
    first, second = torch.rand(2, count, DEGREE + 1)
    product = torch.zeros(count, 2 * DEGREE + 1)
    for shift in range(DEGREE + 1):
        product[:, shift : shift + DEGREE + 1] += first[:, shift : shift + 1] * second
    return TensorDataset(torch.cat([first, second], dim=1), product)


def network():
    return nn.Sequential(nn.Linear(2 * DEGREE + 2, 40), nn.ReLU(), nn.Linear(40, 2 * DEGREE + 1))


def describe(model):
    numbers = sum(parameter.numel() for parameter in model.parameters())
    print(f"{numbers} parameters, {4 * numbers / 1024:.1f} KiB")


def train(model, loader, epochs, rate):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for epoch in range(epochs):
        total = 0.0
        for pair, product in loader:
            dtype = next(model.parameters()).dtype
            optimizer.zero_grad()
            loss = criterion(model(pair.to(dtype)), product.to(dtype))
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.5f}")


def main():
    torch.manual_seed(271)
    model = network()
    describe(model)
    train(model, DataLoader(polynomials(320), batch_size=16), epochs=2, rate=5e-3)


if __name__ == "__main__":
    main()
