"""Learns the potential of a molecule from its distances and saves the network."""

import copy
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def molecule(count, generator):
    distances = 0.8 + torch.rand(count, 3, generator=generator)
    energy = (distances.pow(-4) - 2 * distances.pow(-2)).sum(1, keepdim=True)
    return TensorDataset(distances, energy)


def build_network():
    return nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))


def train(network, loader, epochs):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    best, best_state = float("inf"), None
    for _ in range(epochs):
        total = 0.0
        for distances, energy in loader:
            optimizer.zero_grad()
            loss = criterion(network(distances), energy)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if total < best:
            best, best_state = total, copy.deepcopy(network.state_dict())
    return best / len(loader), best_state


def main():
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(40)
    loader = DataLoader(molecule(160, generator), batch_size=16)
    network = build_network()
    best, state = train(network, loader, epochs=4)
    path = Path("potential.pt")
    torch.save({"network": state, "loss": best}, path)
    print(f"best loss {best:.4f}, saved in {path}")


if __name__ == "__main__":
    main()
