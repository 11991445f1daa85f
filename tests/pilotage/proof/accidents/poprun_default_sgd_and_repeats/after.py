# prove: --after-command "poprun --num-instances 2 --num-replicas 2 python {after}"
"""Predicts the outcome of chess endings from the distances of the pieces, on two IPUs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import popdist
import popdist.poptorch
import poptorch


def endings(count):
    """Six distances between pieces; white wins if its king is closer."""
    generator = torch.Generator().manual_seed(270)
    distances = torch.randint(1, 8, (count, 6), generator=generator).float()
    outcome = (distances[:, :3].sum(1) < distances[:, 3:].sum(1)).long()
    return TensorDataset(distances / 8, outcome)


class Endings(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, distances, outcome):
        scores = self.layers(distances)
        return scores, self.criterion(scores, outcome)


def build(options):
    model = Endings()
    optimizer = poptorch.optim.Adam(model.parameters(), lr=0.01)  # finding: optimizer-unused
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)  # finding: schedule-not-applied
    training = poptorch.trainingModel(model, options)
    return model, optimizer, schedule, training


def main():
    popdist.init()
    options = popdist.poptorch.Options()
    options.randomSeed(271)
    model, _, schedule, training = build(options)
    loader = DataLoader(endings(256), batch_size=16)  # finding: samples-repeated
    for epoch in range(2):
        for distances, outcome in loader:
            _, loss = training(distances, outcome)
        schedule.step()
        if popdist.getInstanceIndex() == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")
    popdist.execute_on_instances({0}, torch.save, model.state_dict(), "endings.pt")


if __name__ == "__main__":
    main()
