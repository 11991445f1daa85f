from dataclasses import dataclass, field

import torch


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
        default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))
