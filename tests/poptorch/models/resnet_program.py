"""A PopTorch program for poprun: trains a small ResNet-18 with BatchNorm, each instance on its part of the data.

python -m pilotage.cli.run.poprun --num-instances 2 python resnet_program.py FOLDER
"""

import sys
from pathlib import Path

import torch
from torch import nn

SAMPLES, BATCH, CLASSES, RATE, MOMENTUM, EPOCHS = 16, 2, 4, 0.05, 0.9, 2


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + identity)


class ResNet18(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        stages, inputs = [], width
        for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
            stages += [BasicBlock(inputs, outputs, stride), BasicBlock(outputs, outputs, 1)]
            inputs = outputs
        self.layers = nn.Sequential(*stages)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, CLASSES)

    def forward(self, x):
        x = self.layers(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()

    def forward(self, images, labels=None):
        scores = self.model(images)
        return scores if labels is None else (scores, self.loss(scores, labels))


def model():
    torch.manual_seed(0)
    return WithLoss(ResNet18()).train()


def dataset():
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(SAMPLES, 3, 16, 16, generator=generator)
    return torch.utils.data.TensorDataset(images, torch.arange(SAMPLES) % CLASSES)


def main(folder):
    import horovod.torch as hvd
    import popdist
    import popdist.poptorch
    import poptorch

    popdist.init()
    hvd.init()
    options = popdist.poptorch.Options()
    options.randomSeed(42).showCompilationProgressBar(False)
    loader = poptorch.DataLoader(options, dataset(), batch_size=BATCH, shuffle=False, drop_last=True)
    network = model()
    optimizer = poptorch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM, use_combined_accum=False)
    training = poptorch.trainingModel(network, options, optimizer)
    losses = []
    for _ in range(EPOCHS):
        for images, labels in loader:
            _, loss = training(images, labels)
            losses.append(hvd.allreduce(loss.mean(), op=hvd.Average).item())
    torch.save({"losses": losses, "state": network.state_dict()}, Path(folder, f"{popdist.getInstanceIndex()}.pt"))


if __name__ == "__main__":
    main(sys.argv[1])
