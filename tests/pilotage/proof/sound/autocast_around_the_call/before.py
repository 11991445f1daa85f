"""Segments noisy stripes with a small network of convolutions, in mixed precision."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def stripes(count):
    phase = 8 * torch.rand(count, 1, 1)
    wave = torch.sin(phase + 1.5 * torch.arange(10.0)).expand(count, 10, 10)
    return TensorDataset((wave + 0.3 * torch.randn(count, 10, 10)).unsqueeze(1), (wave > 0).float().unsqueeze(1))


class Stripes(nn.Module):
    """Three convolutions with a shortcut."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 6, 3, padding=1)
        self.middle = nn.Conv2d(6, 6, 3, padding=1)
        self.up = nn.Conv2d(6, 1, 1)

    def forward(self, images):
        images = torch.relu(self.down(images))
        return self.up(images + torch.relu(self.middle(images)))


class Session:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        self.criterion = nn.BCEWithLogitsLoss()

    def step(self, images, mask):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = self.criterion(self.model(images), mask)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(380)
    session = Session(Stripes())
    for epoch in range(2):
        losses = [session.step(images, mask) for images, mask in DataLoader(stripes(192), batch_size=12)]
        print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
