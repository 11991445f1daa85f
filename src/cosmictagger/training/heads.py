"""Losses and metrics of the heads for event class and vertex."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from cosmictagger.configuration.network import Network
from cosmictagger.networks.uresnet import Outputs

EVENT_WEIGHT = 0.01
PRESENCE_WEIGHT = 0.1
OFFSET_WEIGHT = 0.1 * 3

EVENT_KEYS = ("Event_Accuracy", "loss/event_label")
VERTEX_KEYS = ("VertexDetection", "VertexResolution", "loss/vertex")


def head_keys(network: Network) -> tuple[str, ...]:
    """The names of the metrics that the heads add."""
    return (EVENT_KEYS if network.event_label else ()) + (VERTEX_KEYS if network.vertex else ())


def head_losses(outputs: Outputs, event_label: Tensor, vertex: Tensor) -> tuple[Tensor, Tensor]:
    """The weighted loss of the heads, and the metrics that `head_keys` names."""
    losses, numbers = [], []
    if outputs.event is not None:
        loss = F.cross_entropy(outputs.event, event_label)
        losses.append(EVENT_WEIGHT * loss)
        numbers += [(outputs.event.argmax(1) == event_label).float().mean(), loss.detach()]
    if outputs.vertex is not None:
        search = _VertexSearch(outputs.vertex, vertex, outputs.scores.shape[-2])
        losses.append(search.loss())
        numbers += [*search.found(), losses[-1].detach()]
    return torch.stack(losses).sum(), torch.stack(numbers)


class _VertexSearch:
    """The vertices of a batch on the grid of the head, stacked plane by plane like the scores."""

    def __init__(self, values: Tensor, vertex: Tensor, height: int) -> None:
        self.size = height // values.shape[-2]
        self.columns = values.shape[-1]
        self.presence = values[:, 0].flatten(1)
        self.offsets = values[:, 1:].sigmoid().flatten(2)
        places = vertex.transpose(0, 1).reshape(-1, 2) / self.size
        self.present = (places[:, 0] >= 0).to(places.dtype)
        self.places = places.clamp(min=0.0)
        self.cells = self.places.floor()
        self.index = (self.cells[:, 0] * self.columns + self.cells[:, 1]).long().clamp(max=self.presence.shape[1] - 1)
        self.events = len(vertex)

    def loss(self) -> Tensor:
        """Focal cross entropy of the presence over the cells of a plane, and squared offsets in the true cell."""
        truth = torch.zeros_like(self.presence).scatter(1, self.index[:, None], self.present[:, None])
        entropy = F.binary_cross_entropy_with_logits(self.presence, truth, reduction="none")
        weights = (truth - self.presence.detach().sigmoid()).square()
        presence = ((weights * entropy).sum(1) / weights.sum(1).clamp(min=1e-12)).sum()
        offsets = ((self._offsets_at(self.index) - (self.places - self.cells)).square().sum(1) * self.present).sum()
        return (PRESENCE_WEIGHT * presence + OFFSET_WEIGHT * offsets) / self.events

    @torch.no_grad()
    def found(self) -> tuple[Tensor, Tensor]:
        """The share of vertices found in their cell and the mean distance in pixels; 1 and 0 if there are none."""
        best = self.presence.argmax(1)
        cells = torch.stack((best // self.columns, best % self.columns), dim=1)
        away = (cells + self._offsets_at(best) - self.places).square().sum(1).sqrt() * self.size
        hit = (best == self.index).to(away.dtype)
        count = self.present.sum()
        detection = torch.where(count > 0, (hit * self.present).sum() / count.clamp(min=1), torch.ones_like(count))
        return detection, (away * self.present).sum() / count.clamp(min=1)

    def _offsets_at(self, index: Tensor) -> Tensor:
        return self.offsets.gather(2, index[:, None, None].expand(-1, 2, 1))[:, :, 0]
