"""Recognises which of four chirps a signal contains."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, LENGTH, CHIRPS = 400, 40, 4


def chirps():
    time = torch.linspace(0, 1, LENGTH)
    labels = torch.arange(SAMPLES) % CHIRPS
    rate = 6.0 + 5.0 * labels.unsqueeze(1)
    signals = torch.sin(rate * time + rate * time**2) + 0.2 * torch.randn(SAMPLES, LENGTH)
    return TensorDataset(signals.unsqueeze(1), labels)


class ChirpNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten())
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(8 * 18, CHIRPS))

    def forward(self, signals):
        return self.head(self.features(signals))


def evaluate(model, dataset):
    model.eval()
    signals, labels = dataset.tensors
    with torch.no_grad():
        right = model(signals).argmax(1) == labels
    return right.float().mean().item()


def main():
    torch.manual_seed(6)
    dataset = chirps()
    loader = DataLoader(dataset, batch_size=10, shuffle=True)
    model = ChirpNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(1):
        for signals, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(signals), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: last loss {loss.item():.4f}")
    print(f"accuracy {evaluate(model, dataset):.1%}")
    torch.save(model.state_dict(), "chirps.pt")


if __name__ == "__main__":
    main()
