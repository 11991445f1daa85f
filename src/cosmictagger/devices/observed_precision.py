"""The types that a network actually computes in, observed while it runs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cosmictagger.networks.uresnet import UResNet
from cosmictagger.training.precision import NumberTypes, type_name


class ObservedPrecision:
    """Observes the output type of a network's core, at each run or when it is captured."""

    def __init__(self, network: UResNet, asked: NumberTypes) -> None:
        self._network, self._asked = network, asked
        self._kinds: set[torch.dtype] = set()
        network.net_core.register_forward_hook(self._observe)

    def _observe(self, module: nn.Module, inputs: tuple[object, ...], output: Tensor) -> None:
        self._kinds.add(output.dtype)

    @property
    def precision(self) -> str:
        """The types as text."""
        if not self._kinds:
            return f"{self._asked} (not run)"
        scaling = ["loss scaling"] if self._asked.scales_loss else []
        return ", ".join([f"{_type_names(self._kinds)} activations", f"{_type_names(self._weights)} weights", *scaling])

    @property
    def problems(self) -> tuple[str, ...]:
        """Differences from the requested types."""
        asked = {"activations": (self._asked.activations, self._kinds), "weights": (self._asked.weights, self._weights)}
        return tuple(
            f"precision: {type_name(wanted)} {what} were requested, but {_type_names(found)} {what} were computed"
            for what, (wanted, found) in asked.items()
            if found and found != {wanted}
        )

    @property
    def _weights(self) -> set[torch.dtype]:
        return {parameter.dtype for parameter in self._network.parameters()}


def _type_names(kinds: set[torch.dtype]) -> str:
    return " and ".join(sorted(map(type_name, kinds)))
