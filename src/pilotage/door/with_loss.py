"""A module together with a loss function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from pilotage.capture.loss.returned import require_scalar
from pilotage.capture.loss.search import mark_loss
from pilotage.errors import LossError, MissingArgumentError


class WithLoss(nn.Module):
    """A module and its loss: the last argument of a call is the target."""

    def __init__(self, module: nn.Module, loss: Callable[[Any, Any], Tensor]) -> None:
        super().__init__()
        self.module = module
        self.loss = loss

    def forward(self, *arguments: Any, **named: Any) -> tuple[Any, Tensor]:
        """The module's output, and its loss against the last argument that has no name."""
        *inputs, target = arguments or (None,)
        if not arguments or not _takes(self.module, inputs, named):
            raise MissingArgumentError(
                "With loss=, a call takes what the model takes and then the target: step(inputs, target). It got "
                f"{len(arguments)} of them without a name. If the model computes its loss itself, leave out loss=."
            )
        output = self.module(*inputs, **named)
        loss = self.loss(output, target)
        if not isinstance(loss, Tensor):
            raise LossError(f"loss= returned {type(loss).__name__}, and backward starts from a tensor of one element.")
        require_scalar(loss, "What loss= returned")
        return output, mark_loss(loss)


def _takes(module: nn.Module, inputs: Sequence[Any], named: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(module.forward).bind(*inputs, **named)
    except TypeError:
        return False
    except ValueError:
        # forward has no readable signature.
        return True
    return True
