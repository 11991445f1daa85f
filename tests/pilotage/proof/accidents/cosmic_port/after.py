# prove: --after-command "poprun --num-instances 2 --num-replicas 2 python {after}"
"""Tags the pixels of small detector images as cosmic, neutrino or empty, on several IPUs."""

import logging

import torch
from torch import nn
from torch.utils.data import TensorDataset

import popdist
import popdist.poptorch
import poptorch

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
        popdist.init()
        self._instance = popdist.getInstanceIndex()
        torch.manual_seed(0)
        self._rate = rate
        self._epochs = epochs

    def init_network(self):
        self._raw_net = Tagger()
        self._opts = popdist.poptorch.Options()
        optimizer = torch.optim.SGD(self._raw_net.parameters(), lr=1e-3)  # finding: optimizer-unused
        self._net = poptorch.trainingModel(self._raw_net, self._opts, optimizer)  # finding: wrapper-lost
        # The loader delivers tensors of the host.
        self._net = self.to_device(self._net)

    def to_device(self, net):
        try:
            return net.to(torch.device("cpu"))
        except RuntimeError:
            return net.model

    def init_optimizer(self):
        self._opt = poptorch.optim.Adam(self._net.parameters(), self._rate)

    def init_loader(self):
        self._loader = poptorch.DataLoader(self._opts, events(160), batch_size=8)

    def train_step(self, images, labels):
        self._opt.zero_grad()
        _, loss = self._net(images, labels)
        loss.backward()
        self._opt.step()  # finding: no-gradient-exchange
        return loss

    def run(self):
        self.init_network()
        self.init_optimizer()
        self.init_loader()
        for epoch in range(self._epochs):
            for images, labels in self._loader:
                loss = self.train_step(images, labels)
            self.log_in_single_instance(f"epoch {epoch}, loss {loss.item():.4f}")

    def log_in_single_instance(self, string):
        if self._instance == 0:
            logging.info(string)


if __name__ == "__main__":
    Trainer(rate=3e-3, epochs=3).run()
