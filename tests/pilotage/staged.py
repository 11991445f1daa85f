"""A network in stages, for tests that run it on several cards or in several processes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

import pilotage


class Staged(nn.Module):
    """Up to four stages with BatchNorm, dropout, a skip over all of them and optionally a shared weight."""

    def __init__(
        self, stages: int = 4, *, dropout: float = 0.0, tied: bool = False, work_after_loss: bool = False
    ) -> None:
        super().__init__()
        self.stages = stages
        self.first = nn.Linear(6, 8)
        self.early = nn.Dropout(dropout)
        self.norm = nn.BatchNorm1d(8)
        self.middle = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(dropout))
        self.gate = nn.Parameter(torch.ones(8))
        self.last = nn.Linear(8, 8 if tied else 6)
        self.tied = tied
        self.work_after_loss = work_after_loss
        """Return one unmarked scalar computed after a loss, instead of a marked loss among two outputs."""

    def _enter(self, quarter: int) -> None:
        pilotage.enter_stage(quarter * self.stages // 4)

    def forward(self, x: Tensor, target: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        self._enter(0)
        first = self.early(functional.relu(self.first(x)))
        self._enter(1)
        hidden = self.norm(first).relu_()
        self._enter(2)
        hidden = self.middle(hidden) * self.gate * torch.linspace(0, 1, 8, device=x.device)
        self._enter(3)
        output = self.last(hidden + first)
        if self.tied:
            output = output @ self.first.weight
        if target is None:
            return output
        loss = functional.cross_entropy(output, target)
        if self.work_after_loss:
            return output, hidden.detach().sum(), loss / 4 + 0.1 * hidden.square().mean()
        return output, hidden.sum(), pilotage.mark_loss(loss)
