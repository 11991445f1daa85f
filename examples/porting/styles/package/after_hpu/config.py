from dataclasses import dataclass, field

import torch
import habana_frameworks.torch.core  # registers the device hpu


@dataclass
class Config:
    seed: int = 149
    epochs: int = 2
    batch_size: int = 16
    lr: float = 0.05
    momentum: float = 0.9
    gamma: float = 0.5
    path: str = "package.pt"
    device: torch.device = field(
        default_factory=lambda: torch.device("hpu" if torch.hpu.is_available() else "cpu"))
