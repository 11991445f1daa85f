"""Fits decay curves; training and saving are closures."""

import torch
from torch import nn

import pilotage


def curves(steps, size=16):
    generator = torch.Generator().manual_seed(570)
    time = torch.linspace(0, 3, 20)
    for _ in range(steps):
        rate = 0.2 + 2 * torch.rand(size, 1, generator=generator)
        yield torch.exp(-rate * time) + 0.02 * torch.randn(size, 20, generator=generator), rate


def make_network():
    return nn.Sequential(nn.Linear(20, 24), nn.ReLU(), nn.Linear(24, 1))


def make_trainer(network, optimizer):
    program = pilotage.training(network, optimizer, loss=nn.SmoothL1Loss())

    def step(curve, rate):
        return program(curve, rate)[1].item()

    return step


def make_saver(network, path):
    state = {name: value.clone() for name, value in network.state_dict().items()}

    def save():
        torch.save(state, path)  # finding: weights-not-saved

    return save


def main():
    torch.manual_seed(571)
    network = make_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)  # finding: optimizer-unused
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)  # finding: schedule-not-applied
    save = make_saver(network, "decay.pt")

    # A fresh optimizer for the restart: its moments should not remember the first attempt.
    fresh = torch.optim.Adam(network.parameters(), lr=0.01)
    step = make_trainer(network, fresh)
    for number, (curve, rate) in enumerate(curves(40), 1):
        loss = step(curve, rate)
        schedule.step()
        if number % 10 == 0:
            print(f"step {number}: {loss:.5f}")
    save()


if __name__ == "__main__":
    main()
