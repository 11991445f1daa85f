"""Spectra classifier on the IPU, configured with hydra."""

import logging
from dataclasses import dataclass, field

import hydra
import torch
from hydra.core.config_store import ConfigStore
from torch import nn
from torch.utils.data import TensorDataset

import poptorch

logger = logging.getLogger("spectra")


@dataclass
class OptimizerConfig:
    name: str = "adam"
    learning_rate: float = 3e-3


@dataclass
class Config:
    seed: int = 7
    epochs: int = 3
    batch_size: int = 16
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)


ConfigStore.instance().store(name="config", node=Config)


class WithLoss(nn.Module):
    """PopTorch wants the loss inside of forward."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, spectra, labels):
        scores = self.net(spectra)
        return scores, self.criterion(scores, labels)


class Trainer:
    def __init__(self, config):
        self.config = config

    def initialize(self):
        torch.manual_seed(self.config.seed)
        spectra = torch.randn(256, 24)
        labels = (spectra[:, :8].sum(1) > spectra[:, 8:16].sum(1)).long()
        opts = poptorch.Options()
        data = TensorDataset(spectra, labels)
        self.loader = poptorch.DataLoader(opts, data, batch_size=self.config.batch_size, shuffle=True)
        self.net = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 2))
        model = WithLoss(self.net)
        self.model = poptorch.trainingModel(model, opts, optimizer=torch.optim.SGD(model.parameters(), lr=1e-3))
        self.init_optimizer()

    def init_optimizer(self):
        rate = self.config.optimizer.learning_rate
        if self.config.optimizer.name == "rmsprop":
            self.opt = poptorch.optim.RMSprop(self.net.parameters(), lr=rate, eps=1e-4)
        else:
            self.opt = poptorch.optim.Adam(self.net.parameters(), lr=rate)  # finding: optimizer-unused

    def train_step(self, spectra, labels):
        _, loss = self.model(spectra, labels)
        return loss

    def batch_process(self):
        for epoch in range(self.config.epochs):
            for spectra, labels in self.loader:
                loss = self.train_step(spectra, labels)
            logger.info("epoch %d: loss %.4f", epoch, loss.item())


@hydra.main(version_base=None, config_name="config")
def main(config: Config):
    trainer = Trainer(config)
    trainer.initialize()
    trainer.batch_process()


if __name__ == "__main__":
    main()
