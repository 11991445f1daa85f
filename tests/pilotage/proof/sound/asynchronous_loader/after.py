"""Reads images of handwritten strokes and predicts their angle."""

import torch
from torch import nn
from torch.utils.data import Dataset

import poptorch


class Strokes(Dataset):
    """Draws a stroke when it is asked for."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        angle = torch.tensor(index / self.count * torch.pi)
        y, x = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
        image = torch.exp(-20 * (x * torch.sin(angle) - y * torch.cos(angle)) ** 2)
        return image.unsqueeze(0), torch.stack([torch.cos(2 * angle), torch.sin(2 * angle)])


class Angle(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 5, 3)
        self.head = nn.Linear(5 * 3 * 3, 2)

    def forward(self, image, direction):
        features = nn.functional.avg_pool2d(torch.relu(self.conv(image)), 2)
        guess = self.head(features.flatten(1))
        return guess, nn.functional.mse_loss(guess, direction)


def train(training, loader, epochs):
    for epoch in range(epochs):
        for image, direction in loader:
            _, loss = training(image, direction)
        print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    torch.manual_seed(440)
    model = Angle()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    options = poptorch.Options().deviceIterations(4)
    loader = poptorch.DataLoader(options, Strokes(160), batch_size=8, num_workers=1, mode=poptorch.DataLoaderMode.Async)
    training = poptorch.trainingModel(model, options, optimizer)
    train(training, loader, epochs=2)
    loader.terminate()


if __name__ == "__main__":
    main()
