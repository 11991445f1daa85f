"""A mixture of experts: each row goes through the experts that the router chose for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from habana_frameworks.torch.hpex.operations.registry import Operations

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "relu": functional.relu,
}
_BEFORE = "Tensor hidden_states, Tensor expert_routing_table, Tensor router_weights"
_AFTER = "bool permuted_weights, str activation"
_EXPERTS = "int experts_min, int experts_max"


def mixture_of_experts(
    hidden_states: Tensor,
    expert_routing_table: Tensor,
    router_weights: Tensor,
    w1: Sequence[Tensor],
    w2: Sequence[Tensor],
    w3: Sequence[Tensor],
    permuted_weights: bool,
    activation: str,
    experts_min: int,
    experts_max: int,
) -> Tensor:
    """Sum the experts' outputs, weighted by the router: w1 is the gate, w2 goes up, w3 down.

    The weights are those of the experts from ``experts_min`` to ``experts_max``, both included.
    """
    if activation not in _ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}. Choose one of: {', '.join(_ACTIVATIONS)}.")
    if len(w1) != experts_max - experts_min + 1:
        raise ValueError(f"{len(w1)} experts were given for the numbers {experts_min} to {experts_max}.")
    rows = hidden_states.reshape(-1, hidden_states.shape[-1])
    chosen = expert_routing_table.reshape(rows.shape[0], -1)
    shares = router_weights.reshape(rows.shape[0], -1).to(rows.dtype)
    result = torch.zeros_like(rows)
    for number in range(len(w1)):
        gate, up, down = (each[number] if permuted_weights else each[number].mT for each in (w1, w2, w3))
        share = (shares * (chosen == experts_min + number)).sum(-1, keepdim=True)
        inner = _ACTIVATIONS[activation](functional.linear(rows, gate)) * functional.linear(rows, up)
        result = result + share * functional.linear(inner, down)
    return result.reshape(hidden_states.shape)


def _with_fused_weights(
    hidden_states: Tensor,
    expert_routing_table: Tensor,
    router_weights: Tensor,
    w12: Sequence[Tensor],
    w3: Sequence[Tensor],
    permuted_weights: bool,
    activation: str,
    experts_min: int,
    experts_max: int,
) -> Tensor:
    """The same with gate and up in one matrix."""
    halves = [each.chunk(2, 0 if permuted_weights else -1) for each in w12]
    gates, ups = [each[0] for each in halves], [each[1] for each in halves]
    given = hidden_states, expert_routing_table, router_weights
    return mixture_of_experts(*given, gates, ups, w3, permuted_weights, activation, experts_min, experts_max)


def _in_blocks(
    hidden_states: Tensor,
    expert_routing_table: Tensor,
    router_weights: Tensor,
    w1: Sequence[Tensor],
    w2: Sequence[Tensor],
    w3: Sequence[Tensor],
    d_scale_w1: Sequence[Tensor],
    d_scale_w2: Sequence[Tensor],
    d_scale_w3: Sequence[Tensor],
    permuted_weights: bool,
    activation: str,
    block_size: int,
    experts_min: int,
    experts_max: int,
) -> Tensor:
    """The same with float8 weights, whose blocks have scales."""
    pairs = ((w1, d_scale_w1), (w2, d_scale_w2), (w3, d_scale_w3))
    kind = hidden_states.dtype
    gates, ups, downs = (
        [_dequantized(each, scale, block_size, kind) for each, scale in zip(weights, scales, strict=True)]
        for weights, scales in pairs
    )
    given = hidden_states, expert_routing_table, router_weights
    return mixture_of_experts(*given, gates, ups, downs, permuted_weights, activation, experts_min, experts_max)


def _dequantized(weight: Tensor, scale: Tensor, block: int, kind: torch.dtype) -> Tensor:
    rows, columns = weight.shape
    spread = scale.float().repeat_interleave(block, 0)[:rows].repeat_interleave(block, 1)[:, :columns]
    return (weight.float() * spread).to(kind)


OPERATIONS: Operations = (
    (
        f"mixture_of_experts({_BEFORE}, Tensor[] w1, Tensor[] w2, Tensor[] w3, {_AFTER}, {_EXPERTS}) -> Tensor",
        mixture_of_experts,
    ),
    (
        f"mixture_of_experts.fused_weights({_BEFORE}, Tensor[] w12, Tensor[] w3, {_AFTER}, {_EXPERTS}) -> Tensor",
        _with_fused_weights,
    ),
    (
        f"mixture_of_experts.blocks({_BEFORE}, Tensor[] w1, Tensor[] w2, Tensor[] w3, Tensor[] d_scale_w1, "
        f"Tensor[] d_scale_w2, Tensor[] d_scale_w3, {_AFTER}, int block_size, {_EXPERTS}) -> Tensor",
        _in_blocks,
    ),
)
