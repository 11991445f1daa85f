"""A frozen backbone, and a head and a last block with rates of their own."""
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Pretrained(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
        self.layer4 = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        self.avgpool = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        x = self.avgpool(self.layer4(self.stem(x)))
        return self.fc(torch.flatten(x, 1))


if __name__ == "__main__":
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Pretrained()
    for param in model.parameters():
        param.requires_grad = False
    for param in model.layer4.parameters():
        param.requires_grad = True
    model.fc = nn.Linear(model.fc.in_features, 3)
    model = model.to(device)

    images = torch.randn(64, 3, 8, 8)
    loader = DataLoader(TensorDataset(images, images.mean((2, 3)).argmax(1)), batch_size=8, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD([
        {'params': model.layer4.parameters()},
        {'params': model.fc.parameters(), 'lr': 1e-1},
    ], lr=1e-2, momentum=0.9)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1], gamma=0.1)
    for epoch in range(2):
        running = 0.0
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running += loss.item() * inputs.size(0)
        scheduler.step()
        print(f"epoch {epoch}: {running / 64:.4f}")
