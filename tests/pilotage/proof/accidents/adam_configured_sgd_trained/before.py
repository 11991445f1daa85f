"""Spectra classifier, configured with hydra."""

import logging
from dataclasses import dataclass, field

import hydra
import torch
from hydra.core.config_store import ConfigStore
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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


class Trainer:
    def __init__(self, config):
        self.config = config

    def initialize(self):
        torch.manual_seed(self.config.seed)
        spectra = torch.randn(256, 24)
        labels = (spectra[:, :8].sum(1) > spectra[:, 8:16].sum(1)).long()
        self.loader = DataLoader(TensorDataset(spectra, labels), batch_size=self.config.batch_size, shuffle=True)
        self.net = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 2))
        self.init_optimizer()

    def init_optimizer(self):
        rate = self.config.optimizer.learning_rate
        if self.config.optimizer.name == "rmsprop":
            self.opt = torch.optim.RMSprop(self.net.parameters(), lr=rate, eps=1e-4)
        else:
            self.opt = torch.optim.Adam(self.net.parameters(), lr=rate)

    def train_step(self, spectra, labels):
        self.opt.zero_grad()
        loss = nn.functional.cross_entropy(self.net(spectra), labels)
        loss.backward()
        self.opt.step()
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
