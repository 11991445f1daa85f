"""Learns the product of two polynomials, coefficient by coefficient."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage

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
    """How much of the device's memory the weights take, in both precisions."""
    single = sum(parameter.nbytes for parameter in model.parameters())
    half = sum(parameter.nbytes for parameter in model.bfloat16().parameters())  # finding: precision-not-as-asked
    print(f"{single / 1024:.1f} KiB, or {half / 1024:.1f} KiB in bfloat16")


def train(model, loader, epochs, rate):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    program = pilotage.training(model, optimizer, loss=nn.MSELoss())
    for epoch in range(epochs):
        total = 0.0
        for pair, product in loader:
            dtype = next(model.parameters()).dtype
            _, loss = program(pair.to(dtype), product.to(dtype))
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.5f}")


def main():
    torch.manual_seed(271)
    model = network()
    describe(model)
    train(model, DataLoader(polynomials(320), batch_size=16), epochs=2, rate=5e-3)


if __name__ == "__main__":
    main()
