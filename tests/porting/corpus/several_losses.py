"""Two heads and two losses, weighted: which kind, and where."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Boxes(Dataset):
    def __init__(self, count):
        self.kinds = torch.randint(3, (count,))
        self.corners = torch.randint(2, 6, (count, 2))
        self.images = 0.1 * torch.randn(count, 1, 10, 10)
        for image, kind, (row, column) in zip(self.images, self.kinds, self.corners):
            image[0, row:row + 3, column:column + 3] += 1.0 + kind

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        return self.images[index], self.kinds[index], self.corners[index].float() / 10


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.classify = nn.Linear(96, 3)
        self.locate = nn.Linear(96, 2)

    def forward(self, images):
        features = self.backbone(images)
        return self.classify(features), self.locate(features)


def train_one_epoch(model, loader, optimizer, device, box_weight=5.0):
    model.train()
    classification_loss = nn.CrossEntropyLoss()
    box_loss = nn.SmoothL1Loss()
    for images, kinds, corners in loader:
        images = images.to(device)
        kinds = kinds.to(device)
        corners = corners.to(device)

        scores, places = model(images)
        loss_kind = classification_loss(scores, kinds)
        loss_box = box_loss(places, corners)
        loss = loss_kind + box_weight * loss_box

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"total {loss.item():.4f} kind {loss_kind.item():.4f} box {loss_box.item():.4f}")


def main():
    torch.manual_seed(9)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Boxes(64), batch_size=8, shuffle=True)
    model = Detector().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    for _ in range(2):
        train_one_epoch(model, loader, optimizer, device)


if __name__ == "__main__":
    main()
