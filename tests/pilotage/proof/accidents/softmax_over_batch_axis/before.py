"""Classifies small images of garments; runs on a GPU if there is one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


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
        return self.log_softmax(self.fc2(x))


def garments(count):
    labels = torch.randint(10, (count,))
    images = 0.3 * torch.randn(count, 1, 12, 12)
    for image, label in zip(images, labels, strict=True):
        image[0, int(label), 2:10] += 1.0
    return TensorDataset(images, labels)


def main():
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_dataloader = DataLoader(garments(512), batch_size=16, shuffle=True, drop_last=True)
    model = ClassificationModel()
    model.train()
    model = model.to(device)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    for epoch in range(1):
        for images, labels in train_dataloader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        print(f"[Epoch {epoch + 1:02}] loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
