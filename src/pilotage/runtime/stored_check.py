"""Whether what lies in a file beside its program belongs to it: weights, the optimizer's state, other names of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError
from pilotage.program.layout import Section, StateLayout
from pilotage.program.specification import TensorSpec
from pilotage.storage.layout_text import names_among
from pilotage.storage.plain_data import flag, number, refuse, table, text

_LARGEST_RANDOM_STATE = 1 << 20


def check_stored(content: Mapping[str, Any], tensors: Mapping[str, Tensor], layout: StateLayout) -> None:
    """Raise where the tensors of a file are not those that its program has, or where names do not fit."""
    parameters = zip(layout.parameters, layout.section(Section.PARAMETERS, whole=True), strict=True)
    weights = {**dict(parameters), **layout.buffers}
    with_weights = flag(content["with_weights"], "with_weights")
    _check_tensors(_below("weight/", tensors), weights if with_weights else {}, "weights")
    slots = zip(layout.slots, layout.section(Section.SLOTS, whole=True), strict=True)
    of_slots = {f"{slot.name}/{slot.parameter}": spec for slot, spec in slots}
    for name in ("updates", "loss_scale"):
        if content[name] is not None:
            number(content[name], name)
    _check_tensors(
        _below("slot/", tensors), of_slots if content["updates"] is not None else {}, "state of the optimizer"
    )
    for state in _below("random/", tensors).values():
        if state.dtype != torch.uint8 or state.dim() != 1 or state.numel() > _LARGEST_RANDOM_STATE:
            raise refuse("the state of random numbers", TensorSpec.of(state), "a list of bytes")
    _check_names(content, weights)


def _check_names(content: Mapping[str, Any], weights: Mapping[str, TensorSpec]) -> None:
    tied = table(content["tied"], "the tied weights")
    for name, kept in tied.items():
        if text(name, "a tied weight") in weights or kept not in weights:
            raise refuse("a tied weight", [name, kept], "another name of one of the weights")
    names_among([*weights, *tied], content["hidden"], "the hidden buffers")
    table(content["extra"], "what else is in the file")


def _check_tensors(given: Mapping[str, Tensor], wanted: Mapping[str, TensorSpec], what: str) -> None:
    if given.keys() != wanted.keys():
        odd = _few(given.keys() ^ wanted.keys())
        raise ProgramFileError(
            f"The {what} in the file are not those of its program: {odd}. It was modified or is damaged."
        )
    for name, tensor in given.items():
        if (tuple(tensor.shape), tensor.dtype) != (wanted[name].shape, wanted[name].dtype):
            raise refuse(f"{name} of the {what}", str(TensorSpec.of(tensor)), str(wanted[name]))


def _few(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
