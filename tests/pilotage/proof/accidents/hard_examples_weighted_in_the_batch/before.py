"""Finds defects in textures; hard examples of a batch weigh more."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH = 32


def textures(count):
    defect = (torch.arange(count) % 3 == 0).float()
    images = torch.randn(count, 1, 6, 6) * 0.5
    images[:, 0, 2:4, 2:4] += 1.5 * defect.view(-1, 1, 1)
    return TensorDataset(images, defect)


class Defects(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.head = nn.Linear(6 * 4 * 4, 1)

    def forward(self, images):
        return self.head(torch.relu(self.conv(images)).flatten(1)).squeeze(1)


def hard_example_loss(scores, defect):
    errors = nn.functional.binary_cross_entropy_with_logits(scores, defect, reduction="none")
    weights = torch.softmax(errors.detach(), dim=0)
    return (weights * errors).sum()


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for images, defect in loader:
            optimizer.zero_grad()
            loss = hard_example_loss(model(images), defect)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(121)
    data = textures(384)
    train(Defects(), DataLoader(data, batch_size=BATCH), epochs=2)


if __name__ == "__main__":
    main()
