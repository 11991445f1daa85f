"""A copy of the user's module for the reference run, so that the run leaves no trace in the original.

The copy is made in two steps. A skeleton is taken before the module is captured: it has its own Python attributes, as
forward finds them at the first call, and shares the tensors. For a run, the skeleton is copied once more, and each
parameter and buffer becomes a given tensor wherever the module refers to it: tied weights, lists, other modules.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MethodType

import torch
from torch import Tensor, nn

from pilotage.capture.stand_ins import StandIns
from pilotage.torch_private import DisableTorchFunctionSubclass, backward_hooks


class CopyError(Exception):
    """The module cannot be copied."""


class Skeleton:
    """The Python side of a module, with the module's own tensors."""

    def __init__(self, module: nn.Module, modes: Mapping[nn.Module, bool]) -> None:
        # Attributes with a history, such as the weight that `nn.utils.weight_norm` computes, cannot be copied.
        memo = {id(constant): constant.detach() for constant in _constants(module) if not constant.is_leaf}
        self._module = _copied(module, memo | {id(tensor): tensor for tensor in _state(module).values()})
        for own, original in zip(self._module.modules(), module.modules(), strict=True):
            own.training = modes.get(original, original.training)
        self._original = module

    def stand_ins(self, tensors: Mapping[str, Tensor]) -> StandIns:
        """Puts these parameters and buffers in place of the module's own, which a loss function may refer to."""
        state = _state(self._module)
        return StandIns({id(state[name]): tensor for name, tensor in tensors.items()})

    def filled(self, tensors: Mapping[str, Tensor], convert: Callable[[Tensor], Tensor]) -> nn.Module:
        """A module with these parameters and buffers; ``convert`` moves its other tensors."""
        state = _state(self._module)
        memo = {id(constant): convert(constant.detach()) for constant in _constants(self._module)}
        memo |= {id(state[name]): tensor for name, tensor in tensors.items()}
        filled = _copied(self._module, memo)
        for name, parameter in self._original.named_parameters():
            # A deep copy does not carry the hooks of tensors; looking for them needs no up-to-date weights.
            with DisableTorchFunctionSubclass():
                hooks = list((backward_hooks(parameter) or {}).values())
            for hook in hooks if tensors[name].requires_grad else ():
                tensors[name].register_hook(hook)
        return filled


def _state(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _constants(module: nn.Module) -> list[Tensor]:
    """Tensors that are plain attributes."""
    return [value for part in module.modules() for value in vars(part).values() if isinstance(value, Tensor)]


def _copied(module: nn.Module, memo: Mapping[int, Tensor]) -> nn.Module:
    try:
        return _deep_copy(module, memo)
    except Exception as error:
        shared = _functions_of_others(module)
        if shared:
            with suppress(Exception):
                return _deep_copy(module, {**memo, **shared})
        reason = str(error).strip().partition("\n")[0]
        raise CopyError(f"the module cannot be copied ({type(error).__name__}: {reason})") from error


def _deep_copy(module: nn.Module, memo: Mapping[int, object]) -> nn.Module:
    with torch.no_grad():
        return copy.deepcopy(module, dict(memo))


def _functions_of_others(module: nn.Module) -> dict[int, object]:
    """Functions that a module calls and that belong to something else, such as a loss that is a method of a trainer.

    A trainer may hold files, locks or processes. It is used as it is if it cannot be copied.
    """
    values = [value for part in module.modules() for value in vars(part).values()]
    return {
        id(value): value
        for value in values
        if isinstance(value, partial) or (isinstance(value, MethodType) and not isinstance(value.__self__, nn.Module))
    }
