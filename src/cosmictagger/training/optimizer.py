"""The configured optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import torch

from cosmictagger.configuration.choices import OptimizerKind, ScheduleKind
from cosmictagger.configuration.mode import Optimizer
from cosmictagger.errors import CheckpointError, ConfigurationError
from cosmictagger.training.layerwise import Lamb, Lars

RMSPROP_EPSILON = 1e-4
"""Version 2.0's value."""

NEWER_EPSILON = 1e-6
"""Version 2.1's value for adam, rmsprop and adadelta."""

NEWER_BETAS = (0.8, 0.9)
"""Version 2.1's values for adam."""


def build_optimizer(
    kind: OptimizerKind,
    parameters: Iterable[torch.nn.Parameter],
    rate: float,
    family: ModuleType = torch.optim,
    *,
    newer: bool = False,
) -> torch.optim.Optimizer:
    """An optimizer with the original's settings: version 2.0's, or version 2.1's if ``newer``.

    ``family`` can be ``poptorch.optim``.
    """
    match kind:
        case OptimizerKind.adam:
            settings: dict[str, Any] = {"betas": NEWER_BETAS, "eps": NEWER_EPSILON} if newer else {}
            built = family.Adam(parameters, lr=rate, **settings)
        case OptimizerKind.rmsprop:
            built = family.RMSprop(parameters, lr=rate, eps=NEWER_EPSILON if newer else RMSPROP_EPSILON)
        case OptimizerKind.sgd:
            built = family.SGD(parameters, lr=rate)
        case OptimizerKind.lamb if hasattr(family, "LAMB"):
            # In PopTorch's class, a corrected bias and unlimited norms are the default.
            built = family.LAMB(parameters, lr=rate, eps=1e-6, bias_correction=False, max_weight_norm=10.0)
        case _ if family is not torch.optim:
            raise ConfigurationError(
                f"mode.optimizer.name={kind.name} is not available on an IPU: PopTorch has adam, rmsprop, sgd and lamb."
            )
        case OptimizerKind.adagrad:
            built = family.Adagrad(parameters, lr=rate)
        case OptimizerKind.adadelta:
            built = family.Adadelta(parameters, lr=rate, eps=NEWER_EPSILON)
        case OptimizerKind.lamb:
            built = Lamb(parameters, lr=rate)
        case OptimizerKind.lars:
            built = Lars(parameters, lr=rate)
    return built  # type: ignore[no-any-return]


def is_newer(settings: Optimizer) -> bool:
    """Whether a configuration uses a schedule of version 2.1, and with it that version's settings of the optimizers."""
    return settings.lr_schedule.name is not ScheduleKind.warmup


_SQUARES = frozenset({"square_avg"})
_MOMENTS = frozenset({"exp_avg", "exp_avg_sq"})
SLOTS: dict[OptimizerKind, frozenset[str]] = {
    OptimizerKind.adam: _MOMENTS,
    OptimizerKind.rmsprop: _SQUARES,
    OptimizerKind.sgd: frozenset(),
    OptimizerKind.adagrad: frozenset({"sum"}),
    OptimizerKind.adadelta: frozenset({"square_avg", "acc_delta"}),
    OptimizerKind.lars: frozenset(),
    OptimizerKind.lamb: _MOMENTS,
}
"""The tensors that each optimizer keeps for a weight."""


def check_optimizer_state(kind: OptimizerKind, optimizer_state: Mapping[str, Any] | None) -> None:
    """Raise if a checkpoint belongs to another optimizer than the configured one."""
    states = (optimizer_state or {}).get("state", {}).values()
    slots = frozenset(slot for each in states for slot, value in each.items() if slot != "step" and value is not None)
    if not states or slots == SLOTS[kind]:
        return
    others = [other.name for other, known in SLOTS.items() if known == slots] or ["another optimizer"]
    raise CheckpointError(
        f"The checkpoint was trained with {' or '.join(others)}, so mode.optimizer.name={kind.name} cannot continue "
        f"it. Use mode.optimizer.name={others[0]}, or start with another run.id."
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def load_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Load what an optimizer remembers of its steps. Its settings stay the configured ones, on every device."""
    configured = [{name: each for name, each in group.items() if name != "params"} for group in optimizer.param_groups]
    optimizer.load_state_dict(dict(state))
    for group, own in zip(optimizer.param_groups, configured, strict=True):
        group.update(own)
