"""Finds the loss by the rule of `pilotage.training`: what forward returns.

In this order:

1. The tensor that forward marks with `mark_loss`.
2. The entry ``loss`` of the dictionary, data class or named tuple that forward returns, such as a Hugging Face output.
3. The only scalar output that requires a gradient; if there is no scalar, the only such tensor with one element.

A loss has one real element, as ``loss.backward()`` requires. Anything else is an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from pilotage.capture.loss.dropped_work import DroppedWork
from pilotage.capture.loss.search import Loss, Marks, differentiable, final_losses
from pilotage.errors import LossError
from pilotage.program.structure import Parsers, flatten, tensor_paths

_REMEDY = (
    "Return the loss, wrap it in pilotage.mark_loss(loss) inside forward, or give pilotage.training a function of "
    "outputs and target as loss=."
)
_SHOWN = 8
"""How many outputs an error lists."""


class ReturnedLossRule(Marks):
    """Finds the loss among the outputs of forward."""

    def __init__(self, parsers: Parsers) -> None:
        super().__init__()
        self._parsers = parsers

    def root(self, value: Any) -> Loss:
        """The loss to start backward from."""
        if self.found:
            return self._marked()
        named = _entry_called_loss(value)
        return Loss.of(self._only_scalar(value) if named is None else named)

    def dropped_work(self, root: Loss, value: Any) -> DroppedWork | None:
        """None: training uses exactly what forward returns or marks."""
        return None

    def _marked(self) -> Loss:
        final = final_losses(differentiable(self.found))
        if len(final) > 1:
            lines = ", ".join(loss.line or "a line outside your code" for loss in final)
            raise LossError(
                f"forward marks {len(final)} independent losses, at {lines}. "
                "Mark only the final one, such as their sum."
            )
        require_scalar(final[0].value, "The marked loss")
        return final[0]

    def _only_scalar(self, value: Any) -> Tensor:
        tensors, structure = flatten(value, self._parsers)
        outputs = list(zip(tensor_paths(structure, "output"), tensors, strict=True))
        trained = [(path, tensor) for path, tensor in outputs if _can_be_loss(tensor)]
        candidates = _each_once([each for each in trained if each[1].dim() == 0] or trained)
        if not candidates:
            raise LossError(_none_found(value, outputs))
        if len(candidates) > 1:
            raise LossError(
                f"forward returns {len(candidates)} scalars that require a gradient, and any of them could be the "
                f"loss: {_described(candidates)}. Wrap the one to train on in pilotage.mark_loss(loss), return it "
                "under the name 'loss' in a dictionary, data class or named tuple, detach() the others, or give "
                "pilotage.training a function of outputs and target as loss=."
            )
        return candidates[0][1]


def require_scalar(loss: Tensor, what: str) -> None:
    """Raise unless eager PyTorch could call ``loss.backward()``: a loss has one real element."""
    if loss.numel() != 1 or loss.is_complex():
        raise LossError(
            f"{what} is a tensor {_kind(loss)}, but backward starts from one real number. Reduce it, for example with "
            ".mean() or .sum()."
        )


def _entry_called_loss(value: Any) -> Tensor | None:
    """The output named ``loss``; None if there is no trainable one."""
    found, loss = _look_up_loss(value)
    if found and loss is None:
        raise LossError(
            "forward returns None as 'loss'. Models that compute their own loss need labels: pass them in the call. "
            f"{_REMEDY}"
        )
    if not isinstance(loss, Tensor) or not loss.requires_grad:
        return None
    require_scalar(loss, "What forward returns as 'loss'")
    return loss


def _look_up_loss(value: Any) -> tuple[bool, Any]:
    # Attributes first: a Hugging Face output is a dictionary without the entries that are None.
    if (
        dataclasses.is_dataclass(value)
        and not isinstance(value, type)
        and "loss" in (field.name for field in dataclasses.fields(value))
    ):
        return True, getattr(value, "loss", None)
    if isinstance(value, tuple) and "loss" in getattr(value, "_fields", ()):
        return True, getattr(value, "loss", None)
    if isinstance(value, Mapping) and "loss" in value:
        return True, value["loss"]
    return False, None


def _can_be_loss(tensor: Tensor) -> bool:
    return tensor.requires_grad and tensor.numel() == 1 and not tensor.is_complex()


def _each_once(outputs: list[tuple[str, Tensor]]) -> list[tuple[str, Tensor]]:
    """The outputs without duplicates."""
    return list({Loss.of(tensor).edge: (path, tensor) for path, tensor in reversed(outputs)}.values())[::-1]


def _none_found(value: Any, outputs: list[tuple[str, Tensor]]) -> str:
    returned = _described(outputs) if outputs else f"no tensor (but {type(value).__name__})"
    if any(tensor.numel() == 1 and not tensor.requires_grad for _, tensor in outputs):
        return (
            "No scalar that forward returns depends on any parameter that requires a gradient. Check requires_grad, "
            f"detach() and torch.no_grad() on the way to the loss. forward returned {returned}. {_REMEDY}"
        )
    return f"forward returns no loss: no scalar that requires a gradient. It returned {returned}. {_REMEDY}"


def _described(outputs: Iterable[tuple[str, Tensor]]) -> str:
    texts = [f"{path} {_kind(tensor)}" for path, tensor in outputs]
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def _kind(tensor: Tensor) -> str:
    type_name = str(tensor.dtype).removeprefix("torch.")
    gradient = "" if tensor.requires_grad else ", no gradient"
    return f"of shape {tuple(tensor.shape)} ({type_name}{gradient})"
