"""Tags the pixels of small detector images as cosmic, neutrino or empty."""

import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(message)s")


def events(count):
    images = 0.1 * torch.randn(count, 1, 8, 8)
    labels = torch.zeros(count, 8, 8, dtype=torch.long)
    for number in range(count):
        row, column = number % 8, (3 * number) % 8
        images[number, 0, row] += 1.0
        labels[number, row] = 1
        images[number, 0, :, column] -= 1.0
        labels[number, :, column] = 2
    return TensorDataset(images, labels)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 6, 3, padding=1)
        self.up = nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, images, labels=None):
        scores = self.up(torch.relu(self.down(images)))
        if labels is None:
            return scores
        return scores, nn.functional.cross_entropy(scores, labels)


class Trainer:
    def __init__(self, rate, epochs):
        torch.manual_seed(0)
        self._rate = rate
        self._epochs = epochs

    def init_network(self):
        self._net = Tagger()

    def init_optimizer(self):
        self._opt = torch.optim.Adam(self._net.parameters(), self._rate)

    def init_loader(self):
        self._loader = DataLoader(events(160), batch_size=16)

    def train_step(self, images, labels):
        self._opt.zero_grad()
        _, loss = self._net(images, labels)
        loss.backward()
        self._opt.step()
        return loss

    def run(self):
        self.init_network()
        self.init_optimizer()
        self.init_loader()
        for epoch in range(self._epochs):
            for images, labels in self._loader:
                loss = self.train_step(images, labels)
            logging.info("epoch %d, loss %.4f", epoch, loss.item())


if __name__ == "__main__":
    Trainer(rate=3e-3, epochs=3).run()
