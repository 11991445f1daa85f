"""What the settings of an optimizer mean to the engine."""

from __future__ import annotations

import torch

from pilotage.engine import DisableTorchFunctionSubclass, Refinements
from poptorch._errors import require
from poptorch._optimizer_attributes import VariableAttributes

__all__ = ["check_settings", "refinements_of", "wants_running_mean"]

_ACCUMULATION_TYPES = (
    "accum_type",
    "velocity_accum_type",
    "first_order_momentum_accum_type",
    "second_order_momentum_accum_type",
)
_ENGINE_NAMES = {"betas": ("beta1", "beta2")}
_PLAN_VALUES = {"loss_scaling": "loss_scaling", "max_grad_norm": "max_gradient_norm"}
_NARROW = frozenset({torch.float16, torch.bfloat16, torch.float32})


def check_settings(optimizer: torch.optim.Optimizer) -> None:
    """Refuse settings that PopTorch refuses."""
    for name in _ACCUMULATION_TYPES:
        given = getattr(optimizer, name, torch.float32)
        require(
            given in (torch.float32, torch.float16),
            f"Accumulation types must be either torch.float32 or torch.float16; {name} is {given}.",
        )
    if any(group.get("amsgrad") for group in optimizer.param_groups):
        raise ValueError("amsgrad must be False: PopTorch has no AMSGrad variant of Adam and AdamW.")
    centered = {group.get("centered") for group in optimizer.param_groups}
    require(len(centered) == 1, "centered must be the same for all parameter groups.")


def refinements_of(optimizer: torch.optim.Optimizer, *, automatic_loss_scaling: bool = False) -> Refinements:
    """PopTorch's extra settings of an optimizer; torch's own optimizers have the defaults."""
    return Refinements(
        loss_scaling=float(getattr(optimizer, "loss_scaling", 1.0)),
        max_gradient_norm=float(getattr(optimizer, "max_grad_norm", float("inf"))),
        accumulation_type=getattr(optimizer, "accum_type", torch.float32),
        plan_constants=_plan_constants(optimizer) - ({"loss_scaling"} if automatic_loss_scaling else set()),
        constants=_constants(optimizer),
        first_moment_dtype=_moment_type(optimizer, "velocity_accum_type", "first_order_momentum_accum_type"),
        second_moment_dtype=_moment_type(optimizer, "second_order_momentum_accum_type"),
        bias_correction=getattr(optimizer, "bias_correction", None),
        tensorflow=getattr(optimizer, "use_tf_variant", False),
    )


def wants_running_mean(optimizer: torch.optim.Optimizer) -> bool:
    """Whether gradients are pooled in a type so narrow that a running mean is needed."""
    return getattr(optimizer, "accum_type", torch.float32) == torch.float16 and not getattr(
        optimizer, "use_combined_accum", False
    )


def _constants(optimizer: torch.optim.Optimizer) -> frozenset[str] | None:
    attributes: VariableAttributes | None = getattr(optimizer, "variable_attrs", None)
    if attributes is None:
        return None
    return frozenset(engine for name in attributes.constants for engine in _ENGINE_NAMES.get(name, (name,)))


def _plan_constants(optimizer: torch.optim.Optimizer) -> frozenset[str]:
    attributes: VariableAttributes | None = getattr(optimizer, "variable_attrs", None)
    variable = attributes.variables if attributes is not None else _PLAN_VALUES.keys() & vars(optimizer).keys()
    return frozenset(engine for name, engine in _PLAN_VALUES.items() if name not in variable)


def _moment_type(optimizer: torch.optim.Optimizer, *names: str) -> torch.dtype | None:
    """The type of stored moments; parameters of more than 32 bits have moments of the same type."""
    wanted: torch.dtype = next((getattr(optimizer, name) for name in names if hasattr(optimizer, name)), torch.float32)
    # Reading a type needs no up-to-date weights.
    with DisableTorchFunctionSubclass():
        types = {parameter.dtype for group in optimizer.param_groups for parameter in group["params"]}
    return None if wanted == torch.float32 and types - _NARROW else wanted
