"""LAMB: Adam's direction, scaled by the norm of each parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError
from pilotage.optim.arithmetic import add_scaled_, divide_, is_zero, shift_, square_root
from pilotage.optim.eager import loss_of, update_eagerly
from pilotage.optim.family import Family, GroupSettings, Refinements
from pilotage.optim.moments import FIRST, SECOND, MomentRule, bias_divisor, moment_values, update_moments
from pilotage.optim.rule import Value
from pilotage.optim.workspace import Workspace
from pilotage.torch_private import foreach_addcmul_, foreach_div, foreach_norm, foreach_sqrt


@dataclass(frozen=True, kw_only=True)
class LambRule(MomentRule):
    """LAMB's arithmetic: values ``lr``, ``beta1``, ``beta2``, ``eps``, ``weight_decay`` and ``max_weight_norm``."""

    @property
    def kind(self) -> str:
        """The optimizer by name."""
        return "LAMB"

    @property
    def slots(self) -> tuple[str, ...]:
        """The two moments."""
        return (FIRST, SECOND)

    def apply(self, work: Workspace, step: Tensor, values: Mapping[str, Value]) -> None:
        """Update parameters and moments in place."""
        update_moments(work, work.gradients, values["beta1"], values["beta2"])
        updates = self._directions(work, step, values)
        if not is_zero(values["weight_decay"]):
            add_scaled_(updates, work.parameters, values["weight_decay"])
        lengths = -values["lr"] * _trust_ratios(work.parameters, updates, values["max_weight_norm"])
        foreach_addcmul_(work.parameters, updates, lengths.unbind())

    def _directions(self, work: Workspace, step: Tensor, values: Mapping[str, Value]) -> list[Tensor]:
        roots = list(foreach_sqrt(work.slots[SECOND]))
        if self.bias_correction:
            divide_(roots, square_root(bias_divisor(step, values["beta2"])))
        shift_(roots, values["eps"])
        directions = list(foreach_div(work.slots[FIRST], roots))
        if self.bias_correction:
            divide_(directions, bias_divisor(step, values["beta1"]))
        return directions


def _trust_ratios(parameters: list[Tensor], updates: list[Tensor], max_weight_norm: Value) -> Tensor:
    """The norm of each parameter divided by that of its update, or 1 if either is zero, as a vector."""
    # Squares of half precision numbers overflow easily, so the norms are at least float32.
    dtype = torch.promote_types(updates[0].dtype, torch.float32)
    weight_norms = torch.stack(foreach_norm(parameters, 2, dtype))
    update_norms = torch.stack(foreach_norm(updates, 2, dtype))
    if isinstance(max_weight_norm, Tensor):
        max_weight_norm = max_weight_norm.to(dtype)
    ratios = weight_norms.clamp(max=max_weight_norm) / update_norms
    return torch.where((weight_norms > 0) & (update_norms > 0), ratios, torch.ones_like(ratios))


class Lamb(torch.optim.Optimizer):
    """LAMB as an ordinary torch optimizer."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        max_weight_norm: float = 65500.0,
        *,
        bias_correction: bool = True,
        maximize: bool = False,
    ) -> None:
        _check_ranges(lr, betas, eps, weight_decay, max_weight_norm)
        self.bias_correction = bias_correction
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "max_weight_norm": max_weight_norm,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"bias_correction": self.bias_correction}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; returns the result of the closure."""
        loss = loss_of(closure)
        for group in self.param_groups:
            rule = LambRule(maximize=group["maximize"], bias_correction=self.bias_correction)
            update_eagerly(rule, group["params"], self.state, lamb_values(group))
        return loss


def lamb_values(group: Mapping[str, Any]) -> dict[str, float]:
    """The values of a parameter group under the names of `LambRule`."""
    return moment_values(group, "lr", "eps", "weight_decay", "max_weight_norm")


def _check_ranges(
    lr: float, betas: tuple[float, float], eps: float, weight_decay: float, max_weight_norm: float
) -> None:
    given = {"lr": lr, "eps": eps, "weight_decay": weight_decay, "max_weight_norm": max_weight_norm}
    for name, value in given.items():
        if not value >= 0:
            raise OptionError(f"{name} is {value!r}. It must be zero or more.")
    for beta in betas:
        if not 0 <= beta < 1:
            raise OptionError(f"betas are {betas!r}. Each must be at least 0 and less than 1.")


def _lamb_rule(
    optimizer: torch.optim.Optimizer, settings: GroupSettings, constants: frozenset[str], refinements: Refinements
) -> LambRule:
    corrected = refinements.bias_correction
    return LambRule(
        maximize=settings["maximize"],
        bias_correction=getattr(optimizer, "bias_correction", True) if corrected is None else corrected,
        first_moment_dtype=refinements.first_moment_dtype,
        second_moment_dtype=refinements.second_moment_dtype,
    )


LAMB = Family(
    optimizer=Lamb,
    values=lamb_values,
    rule=LambRule,
    choices=_lamb_rule,
    defaults={"eps": 1e-8, "weight_decay": 1e-2, "max_weight_norm": 65500.0},
    fixed=frozenset({"beta1", "beta2"}),
)
