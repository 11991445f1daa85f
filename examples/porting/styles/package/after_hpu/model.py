import torch.nn as nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(6 * 4 * 4, classes)

    def forward(self, images):
        return self.classifier(self.features(images).flatten(1))


def build_model(config):
    return Net(4)
