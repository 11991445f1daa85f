"""Compiled models as files: program, options, weights and optimizer state, and no pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.compiler.cache import Entry
from pilotage.compiler.packed_code import PackedCode
from pilotage.errors import OptionError, ProgramFileError
from pilotage.events import Warned
from pilotage.logs import log_event
from pilotage.options.choices import Tier
from pilotage.program.layout import Section, Slot, StateLayout
from pilotage.program.program import Program
from pilotage.program.signature import CallSignature
from pilotage.program.specification import TensorSpec
from pilotage.runtime.executor import Executor
from pilotage.runtime.optimizer_state import OptimizerState
from pilotage.storage.archive import read_archive, write_archive
from pilotage.storage.layout_text import names_among
from pilotage.storage.permission import UNTRUSTED, Permission
from pilotage.storage.plain_data import flag, invalid_value, number, table, text, well_formed
from pilotage.storage.program_check import check_program
from pilotage.storage.program_text import program_from_data, program_to_data
from pilotage.storage.signature_text import signature_from_data, signature_to_data

_LARGEST_RANDOM_STATE = 1 << 20
"""Bytes."""


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """The content of a file."""

    program: Program
    signature: CallSignature
    weights: dict[str, Tensor] | None
    """Parameters and buffers; None if they were left out."""

    tied: dict[str, str] = field(default_factory=dict)
    """Other names of parameters and buffers, each with the name under which its tensor is stored."""

    hidden: tuple[str, ...] = ()
    """Non-persistent buffers, which the module's state dictionary leaves out."""

    optimizer: OptimizerState | None = None
    random_streams: list[Tensor] | None = None
    code: PackedCode | None = None
    """Compiled code, to be used only if the file is trusted."""

    extra: dict[str, Any] = field(default_factory=dict)
    """Additional plain data of a drop-in."""


def store(
    executor: Executor,
    path: Path,
    *,
    with_weights: bool = True,
    with_random_streams: bool = True,
    extra: dict[str, Any] | None = None,
) -> None:
    """Write a compiled model to a file."""
    session = executor.session
    if executor.pipeline_group is not None:
        raise OptionError(
            "The program is one stage of several, so its file would be useless elsewhere. Save state_dict() "
            "instead, or compile and save it in one process."
        )
    if session.gather is not None:
        raise OptionError(
            "The program updates only this instance's share of the parameters, so its file would be useless "
            "elsewhere. Save state_dict() of model and optimizer instead, or do not shard the optimizer state."
        )
    # The optimizer's values may have changed since the program was captured.
    program, constants = program_to_data(replace(session.captured, plan=executor.plan))
    tensors = {f"constant/{name}": tensor for name, tensor in constants.items()}
    if with_weights:
        tensors |= {f"weight/{name}": tensor for name, tensor in _weights(executor.module).items()}
    optimizer = session.optimizer_state()
    if optimizer is not None:
        tensors |= {f"slot/{slot.name}/{slot.parameter}": tensor for slot, tensor in optimizer.slots.items()}
    if with_random_streams:
        tensors |= {f"random/{number}": state for number, state in enumerate(session.streams.states)}
    # A stored program runs on one device, or is cut again: it has no use for the code of stages.
    if session.tier is Tier.COMPILED and isinstance(session.entry, Entry):
        tensors |= {f"code/{name}": data for name, data in _machine_code(session.entry).items()}
    content = {
        "program": program,
        "signature": signature_to_data(executor.signature),
        "updates": None if optimizer is None else optimizer.updates,
        "loss_scale": None if optimizer is None else optimizer.loss_scale,
        "with_weights": with_weights,
        "tied": _tied(executor.module),
        "hidden": _hidden(executor.module),
        "extra": extra or {},
    }
    write_archive(path, content, tensors)


def _machine_code(entry: Entry) -> dict[str, Tensor]:
    try:
        return PackedCode.of(entry).tensors()
    except ProgramFileError as error:
        log_event(Warned(message=f"The model is saved without its compiled code. {error}"))
        return {}


def read_stored(path: Path, permission: Permission = UNTRUSTED) -> StoredModel:
    """Read a file of `store`; raises if it is another kind of file, or if its program does something forbidden."""
    content, mapped = read_archive(path)
    if "program" not in content:
        kind = "a checkpoint" if "step" in content else "other data"
        raise ProgramFileError(
            f"{path} contains {kind}, not a compiled model. Name the file of a compiled model, or continue a "
            "checkpoint with restore_checkpoint()."
        )
    # The file may be overwritten while the model still exists.
    tensors = {name: tensor.clone() for name, tensor in mapped.items()}
    with well_formed(str(path)):
        program = program_from_data(content["program"], _named(tensors, "constant/"), permission)
        check_program(program, permission)
        _check_stored(content, tensors, program.layout)
        return _stored(content, tensors, program)


def _check_stored(content: Mapping[str, Any], tensors: Mapping[str, Tensor], layout: StateLayout) -> None:
    """Raise if the tensors of a file are not those of its program, or if names do not fit."""
    parameters = zip(layout.parameters, layout.section(Section.PARAMETERS, whole=True), strict=True)
    weights = {**dict(parameters), **layout.buffers}
    with_weights = flag(content["with_weights"], "with_weights")
    _check_tensors(_named(tensors, "weight/"), weights if with_weights else {}, "weights")
    slots = zip(layout.slots, layout.section(Section.SLOTS, whole=True), strict=True)
    of_slots = {f"{slot.name}/{slot.parameter}": spec for slot, spec in slots}
    for name in ("updates", "loss_scale"):
        if content[name] is not None:
            number(content[name], name)
    _check_tensors(
        _named(tensors, "slot/"), of_slots if content["updates"] is not None else {}, "state of the optimizer"
    )
    for state in _named(tensors, "random/").values():
        if state.dtype != torch.uint8 or state.dim() != 1 or state.numel() > _LARGEST_RANDOM_STATE:
            raise invalid_value("the state of random numbers", TensorSpec.of(state), "a list of bytes")
    _check_names(content, weights)


def _check_names(content: Mapping[str, Any], weights: Mapping[str, TensorSpec]) -> None:
    tied = table(content["tied"], "the tied weights")
    for name, kept in tied.items():
        if text(name, "a tied weight") in weights or kept not in weights:
            raise invalid_value("a tied weight", [name, kept], "another name of one of the weights")
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
            raise invalid_value(f"{name} of the {what}", str(TensorSpec.of(tensor)), str(wanted[name]))


def _few(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def _stored(content: dict[str, Any], tensors: dict[str, Tensor], program: Program) -> StoredModel:
    slots = {_slot(name): tensor for name, tensor in _named(tensors, "slot/").items()}
    updates = content["updates"]
    return StoredModel(
        program=program,
        signature=signature_from_data(content["signature"]),
        weights=_named(tensors, "weight/") if content["with_weights"] else None,
        tied=content["tied"],
        hidden=tuple(content["hidden"]),
        optimizer=None
        if updates is None
        else OptimizerState(slots=slots, updates=updates, loss_scale=content["loss_scale"]),
        random_streams=list(_named(tensors, "random/").values()) or None,
        code=PackedCode.of_tensors(_named(tensors, "code/")),
        extra=content["extra"],
    )


class BareModule(nn.Module):
    """Weights under their original names, without the class of the module."""

    @classmethod
    def of(cls, stored: StoredModel) -> BareModule:
        """A module with the weights of a stored model, but without its Python code."""
        module = cls()
        assert stored.weights is not None
        for name, tensor in stored.weights.items():
            trained = name in stored.program.layout.trained
            is_parameter = name in stored.program.layout.parameters
            kept_as = nn.Parameter(tensor, requires_grad=trained) if is_parameter else tensor
            module._register(name, kept_as, persistent=name not in stored.hidden)
        kept = _weights(module)
        for name, other in stored.tied.items():
            module._register(name, kept[other], persistent=name not in stored.hidden)
        return module

    def _register(self, name: str, tensor: Tensor, *, persistent: bool) -> None:
        *path, last = name.split(".")
        owner: nn.Module = self
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, BareModule())
            owner = owner._modules[part]  # type: ignore[assignment]
        if isinstance(tensor, nn.Parameter):
            owner.register_parameter(last, tensor)
        else:
            owner.register_buffer(last, tensor, persistent=persistent)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: only the stored program can run without the class."""
        raise RuntimeError(
            "This module was read from a file and has no Python code. Call the wrapped model, or load the file "
            "with an instance of the original class."
        )


@torch.no_grad()
def load_weights(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy stored weights into a module of the original class."""
    for name, tensor in _weights(module).items():
        tensor.copy_(weights[name])


def differences(module: nn.Module, program: Program) -> list[str]:
    """How the parameters and buffers of a module differ from those that a program was captured with."""
    layout = program.layout
    expected = {
        **dict(zip(layout.parameters, layout.section(Section.PARAMETERS, whole=True), strict=True)),
        **layout.buffers,
    }
    given = {name: TensorSpec.of(tensor) for name, tensor in _weights(module).items()}
    return [
        *(f"{name} is missing" for name in sorted(expected.keys() - given.keys())),
        *(f"{name} is not in the file" for name in sorted(given.keys() - expected.keys())),
        *(
            f"{name} is {given[name]} instead of {expected[name]}"
            for name in sorted(expected.keys() & given.keys())
            if (given[name].shape, given[name].dtype) != (expected[name].shape, expected[name].dtype)
        ),
    ]


def _weights(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _hidden(module: nn.Module) -> list[str]:
    shown = module.state_dict(keep_vars=True)
    return [name for name, _ in module.named_buffers(remove_duplicate=False) if name not in shown]


def _tied(module: nn.Module) -> dict[str, str]:
    names = {id(tensor): name for name, tensor in _weights(module).items()}
    everything = (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
    return {name: names[id(tensor)] for name, tensor in everything if names[id(tensor)] != name}


def _named(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _slot(name: str) -> Slot:
    slot, _, parameter = name.partition("/")
    return Slot(slot, parameter)
