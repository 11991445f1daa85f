"""Read the parameter groups of an optimizer whose own step() becomes part of a program."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError, PilotageError
from pilotage.optim.own_step.first_state import FirstState, first_state
from pilotage.optim.own_step.rule import OwnStepRule, refusal, shape_key
from pilotage.optim.own_step.stepper import State, Stepper
from pilotage.optim.rule import Group
from pilotage.optim.settings import NOT_READ, SCHEDULER_SETTINGS, as_number
from pilotage.torch_private import DisableTorchFunctionSubclass, FakeTensorMode, bare_step

_REASONS: Mapping[type[torch.optim.Optimizer], str] = {
    torch.optim.LBFGS: "its line search runs the model several times in each step. Use Adam or SGD.",
    torch.optim.SparseAdam: "it takes sparse gradients, and those of a program are dense. Use Adam, and "
    "sparse=False in Embedding.",
}


def own_step_groups(
    optimizer: torch.optim.Optimizer,
    settings: Mapping[str, Any],
    parameters: Mapping[str, Tensor],
    earlier: Sequence[Group] = (),
) -> list[Group]:
    """The groups of a plan for one parameter group: one for the parameters whose states have the same entries.

    ``earlier`` are those of a compiled plan; if nothing but values has changed, their rules are used again.
    """
    _refuse_known(optimizer)
    values = _values(settings)
    chosen = _chosen(settings, values)
    names = tuple(parameters)
    if {name for group in earlier for name in group.parameters} == set(names):
        rules = [group.rule for group in earlier]
        if all(isinstance(rule, OwnStepRule) and json.loads(rule.description)["settings"] == chosen for rule in rules):
            return [Group(rule=group.rule, parameters=group.parameters, values=values) for group in earlier]
    stepper = Stepper(optimizer, {name: value for name, value in settings.items() if name != "params"})
    alike: dict[tuple[str, ...], dict[str, FirstState]] = {}
    for name, parameter in parameters.items():
        start = _start(stepper, parameter, values)
        alike.setdefault(tuple(start.entries), {})[name] = start
    return [
        Group(
            rule=_rule(stepper, chosen, slots, {name: parameters[name] for name in starts}, starts, values),
            parameters=tuple(starts),
            values=values,
        )
        for slots, starts in alike.items()
    ]


def _start(stepper: Stepper, parameter: Tensor, values: Mapping[str, float]) -> FirstState:
    with DisableTorchFunctionSubclass():
        form = torch.zeros_like(parameter, device="cpu", requires_grad=False)
    try:
        return first_state(stepper, form, values, stepper.optimizer.state.get(parameter))
    except PilotageError:
        raise
    except Exception as error:
        raise refusal(stepper, error) from error


def _rule(
    stepper: Stepper,
    chosen: str,
    slots: Sequence[str],
    parameters: Mapping[str, Tensor],
    starts: Mapping[str, FirstState],
    values: Mapping[str, float],
) -> OwnStepRule:
    entries = {
        shape_key(parameter): {slot: _entry(starts[name].entries[slot], parameter) for slot in slots}
        for name, parameter in parameters.items()
    }
    given = any(start.is_constructed for start in starts.values())
    description = {"kind": stepper.kind, "settings": chosen, "slots": list(slots), "entries": entries, "given": given}
    rule = OwnStepRule(description=json.dumps(description, sort_keys=True), stepper=stepper)
    _try_capture(stepper, next(iter(parameters.values())), next(iter(starts.values())).entries, values)
    return rule


def _entry(value: Any, parameter: Tensor) -> list[Any]:
    if not isinstance(value, Tensor):
        return [[], "float64", float(value), type(value).__name__]
    fill = float(value.reshape(-1)[0]) if value.numel() and not value.is_complex() else 0.0
    shape = None if value.shape == parameter.shape and value.dim() else list(value.shape)
    return [shape, str(value.dtype).removeprefix("torch."), fill, None]


def _try_capture(stepper: Stepper, parameter: Tensor, start: State, values: Mapping[str, float]) -> None:
    """Run step() on tensors without values, as capture does, so that a refusal comes at once."""
    with FakeTensorMode():
        own = torch.empty(parameter.shape, dtype=parameter.dtype)
        state: State = {
            name: torch.empty(value.shape, dtype=value.dtype)
            if isinstance(value, Tensor) and value.dim()
            else torch.zeros((), dtype=torch.float64)
            for name, value in start.items()
        }
        numbers = {name: torch.zeros((), dtype=torch.float64) for name in values}
        try:
            stepper.run([own], [torch.empty_like(own)], [state], numbers, captures=True)
        except PilotageError:
            raise
        except Exception as error:
            raise refusal(stepper, error) from error


def _refuse_known(optimizer: torch.optim.Optimizer) -> None:
    for kind, reason in _REASONS.items():
        if isinstance(optimizer, kind):
            raise OptionError(f"{type(optimizer).__name__} cannot become part of a program: {reason}")
    own = list(inspect.signature(bare_step(type(optimizer))).parameters.values())[1:]
    if any(each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD for each in own):
        raise OptionError(
            f"{type(optimizer).__name__} cannot become part of a program: its step() needs {own[0].name}, and a "
            "program computes the loss once for each update."
        )


def _values(settings: Mapping[str, Any]) -> dict[str, float]:
    """What may change from call to call: the learning rate, and a cycled momentum."""
    names = ["lr"] if "lr" in settings else []
    if "base_momentum" in settings and "momentum" in settings:
        names.append("momentum")
    values = {name: float(settings[name]) for name in names}
    if "base_momentum" in settings and "betas" in settings:
        values["beta1"] = float(settings["betas"][0])
    return values


def _chosen(settings: Mapping[str, Any], values: Mapping[str, float]) -> str:
    """All other settings as a text."""
    left_out = {*NOT_READ, *SCHEDULER_SETTINGS, *values, "max_momentum"}
    chosen = {name: as_number(value) for name, value in sorted(settings.items()) if name not in left_out}
    if "beta1" in values:
        chosen["betas"] = tuple(settings["betas"][1:])
    return repr(chosen)
