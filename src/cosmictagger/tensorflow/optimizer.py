"""Updating TensorFlow's variables by a torch optimizer's rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import torch
from tensorflow import Tensor, Variable

from cosmictagger.tensorflow.layout import to_tensorflow, to_torch
from cosmictagger.tensorflow.update_rules import rule_of
from cosmictagger.training.optimizer import load_state, set_rate


class VariableOptimizer:
    """The rule, the numbers and the file format of a torch optimizer, for TensorFlow's variables.

    The torch optimizer never steps: it says which rule to follow, and reads and writes the state of checkpoints.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, variables: Mapping[str, Any]) -> None:
        self._optimizer, self._variables = optimizer, list(variables.values())
        self._rule = rule_of(optimizer)
        self._slots = [[_zeros(each) for _ in self._rule.slots] for each in self._variables]
        self._updates = 0
        self._graph = tf.function(self._change, autograph=False)

    @property
    def name(self) -> str:
        """The name of the torch optimizer."""
        return type(self._optimizer).__name__

    def update(self, gradients: list[Tensor], rate: float) -> None:
        """Change all variables once."""
        set_rate(self._optimizer, rate)
        self._updates += 1
        self._graph(gradients, tf.constant(self._rule.numbers(rate, self._updates), self._variables[0].dtype))

    def _change(self, gradients: list[Tensor], numbers: Tensor) -> None:
        for variable, gradient, slots in zip(self._variables, gradients, self._slots, strict=True):
            change, renewed = self._rule.change(gradient, slots, numbers)
            variable.assign_sub(change)
            for slot, values in zip(slots, renewed, strict=True):
                slot.assign(values)

    def state(self) -> dict[str, Any]:
        """The state as a torch optimizer stores it."""
        if self._updates and self._rule.slots:
            for parameter, slots in zip(self._parameters(), self._slots, strict=True):
                named = zip(self._rule.slots, slots, strict=True)
                self._optimizer.state[parameter] = {
                    "step": torch.tensor(float(self._updates)),
                    **{name: to_torch(slot.numpy()) for name, slot in named},
                }
        return self._optimizer.state_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a torch optimizer."""
        load_state(self._optimizer, state)
        for parameter, slots in zip(self._parameters(), self._slots, strict=True):
            found = self._optimizer.state[parameter]
            self._updates = int(found.get("step", 0))
            for name, slot in zip(self._rule.slots, slots, strict=True):
                slot.assign(to_tensorflow(found[name]) if name in found else tf.zeros_like(slot))

    def _parameters(self) -> list[torch.nn.Parameter]:
        (group,) = self._optimizer.param_groups
        return list(group["params"])


def _zeros(variable: Any) -> Any:
    return Variable(tf.zeros_like(variable), trainable=False)
