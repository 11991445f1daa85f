"""Recognises which of four chirps a signal contains."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch

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
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, signals, labels=None):
        scores = self.head(self.features(signals))
        if labels is None:
            return scores
        return scores, self.criterion(scores, labels)


def evaluate(model, dataset):
    model.eval()
    signals, labels = dataset.tensors
    inference = poptorch.inferenceModel(model)
    right = inference(signals).argmax(1) == labels
    return right.float().mean().item()


def main():
    torch.manual_seed(6)
    dataset = chirps()
    options = poptorch.Options().deviceIterations(10)
    loader = poptorch.DataLoader(options, dataset, batch_size=10, shuffle=True)
    model = ChirpNet()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(1):
        for signals, labels in loader:
            _, loss = training(signals, labels)
        print(f"epoch {epoch + 1}: last loss {loss.item():.4f}")
    training.detachFromDevice()
    print(f"accuracy {evaluate(model, dataset):.1%}")
    torch.save(model.state_dict(), "chirps.pt")


if __name__ == "__main__":
    main()
