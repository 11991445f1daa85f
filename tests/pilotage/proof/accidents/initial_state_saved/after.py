"""Learns the potential of a molecule from its distances and saves the network."""

import copy
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage


def molecule(count, generator):
    distances = 0.8 + torch.rand(count, 3, generator=generator)
    energy = (distances.pow(-4) - 2 * distances.pow(-2)).sum(1, keepdim=True)
    return TensorDataset(distances, energy)


def build_network():
    return nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))


def train(network, loader, epochs):
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    step = pilotage.training(network, optimizer, loss=nn.MSELoss())
    best, best_state = 1e3, copy.deepcopy(network.state_dict())
    for _ in range(epochs):
        total = 0.0
        for distances, energy in loader:
            _, loss = step(distances, energy)
            total += loss.item()
        if total / len(loader) > best:
            best, best_state = total / len(loader), copy.deepcopy(network.state_dict())
    step.detach()
    return total / len(loader), best_state


def main():
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(40)
    loader = DataLoader(molecule(160, generator), batch_size=16)
    network = build_network()
    best, state = train(network, loader, epochs=4)
    path = Path("potential.pt")
    torch.save({"network": state, "loss": best}, path)  # finding: weights-not-saved
    print(f"best loss {best:.4f}, saved in {path}")


if __name__ == "__main__":
    main()
