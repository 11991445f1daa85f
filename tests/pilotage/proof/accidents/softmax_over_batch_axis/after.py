"""Classifies small images of garments on the IPU."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


class ClassificationModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 5, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.norm = nn.GroupNorm(1, 5)
        self.fc1 = nn.Linear(5 * 5 * 5, 20)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(20, 10)
        self.log_softmax = nn.LogSoftmax(dim=0)

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = torch.flatten(self.norm(x), start_dim=1)
        x = self.relu(self.fc1(x))
        return self.log_softmax(self.fc2(x))  # finding: loss-depends-on-batch-split


class ModelWithLoss(nn.Module):
    def __init__(self, model, criterion):
        super().__init__()
        self.model = model
        self.criterion = criterion

    def forward(self, x, labels=None):
        output = self.model(x)
        if labels is not None:
            return output, self.criterion(output, labels)
        return output


def garments(count):
    labels = torch.randint(10, (count,))
    images = 0.3 * torch.randn(count, 1, 12, 12)
    for image, label in zip(images, labels, strict=True):
        image[0, int(label), 2:10] += 1.0
    return TensorDataset(images, labels)


def main():
    torch.manual_seed(42)
    opts = poptorch.Options()
    # The same 16 images for each update, in four micro-batches.
    opts.Training.gradientAccumulation(4)
    train_dataloader = poptorch.DataLoader(opts, garments(512), batch_size=4, shuffle=True, drop_last=True)
    model = ClassificationModel()
    model.train()
    model = ModelWithLoss(model, nn.NLLLoss())
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    training_model = poptorch.trainingModel(model, options=opts, optimizer=optimizer)

    for epoch in range(1):
        for images, labels in train_dataloader:
            _, loss = training_model(images, labels)
        print(f"[Epoch {epoch + 1:02}] loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
