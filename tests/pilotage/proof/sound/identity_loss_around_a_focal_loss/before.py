"""Spots defective welds with a focal loss and a penalty."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

GAMMA, PENALTY = 2.0, 1e-2


def welds(count):
    defect = (torch.arange(count) % 5 == 0).long()
    current = torch.randn(count, 12)
    current[defect == 1, 4:7] -= 1.2
    return TensorDataset(current, defect)


class Welds(nn.Module):
    """Sound or defective, from twelve samples of the current."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 2))

    def loss(self, scores, defect):
        entropy = nn.functional.cross_entropy(scores, defect, reduction="none")
        focal = ((1 - torch.exp(-entropy)) ** GAMMA * entropy).mean()
        return focal + PENALTY * self.layers[0].weight.pow(2).sum()

    def forward(self, current, defect=None):
        scores = self.layers(current)
        if defect is None:
            return scores
        return scores, self.loss(scores, defect)


def main():
    torch.manual_seed(350)
    model = Welds()
    loader = DataLoader(welds(320), batch_size=16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        for current, defect in loader:
            optimizer.zero_grad()
            _, loss = model(current, defect)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.5f}")


if __name__ == "__main__":
    main()
