"""Classifies spectra of stars, configured with hydra."""

from dataclasses import dataclass, field

import hydra
import torch
from hydra.core.config_store import ConfigStore
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Optimizer:
    name: str = "adam"
    learning_rate: float = 5e-3


@dataclass
class Config:
    seed: int = 510
    epochs: int = 3
    batch_size: int = 16
    optimizer: Optimizer = field(default_factory=Optimizer)


ConfigStore.instance().store(name="stars", node=Config)


class Stars(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 4, 5)
        self.head = nn.Linear(4 * 16, 3)

    def forward(self, spectra, kind):
        scores = self.head(torch.relu(self.conv(spectra)).flatten(1))
        return scores, nn.functional.cross_entropy(scores, kind)


def stars(count):
    kind = torch.randint(3, (count,))
    spectra = 0.3 * torch.randn(count, 1, 20)
    spectra[torch.arange(count), 0, 5 * kind + 2] -= 1.0
    return TensorDataset(spectra, kind)


def make_optimizer(config, model):
    kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    return kinds[config.name](model.parameters(), lr=config.learning_rate)


@hydra.main(version_base=None, config_name="stars")
def main(config: Config):
    torch.manual_seed(config.seed)
    model = Stars()
    loader = DataLoader(stars(240), batch_size=config.batch_size, shuffle=True)
    optimizer = make_optimizer(config.optimizer, model)
    for epoch in range(config.epochs):
        for spectra, kind in loader:
            optimizer.zero_grad()
            _, loss = model(spectra, kind)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
