"""When a program is compiled."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.devices.registry import Choice
from pilotage.errors import OptionError
from pilotage.options.choices import NonFiniteLoss, Tier
from pilotage.options.execution import Execution
from pilotage.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class CompilePolicy:
    """When a program is compiled."""

    is_required: bool
    """Whether the tier is pinned to compiled code: the program is compiled before its first call, or refused."""

    after_seconds: float
    """Seconds of work on the graph before compiling begins, unless it is required."""

    with_others: bool = False
    """Whether all instances have to switch after the same update."""


def compile_policy(
    choice: Choice, execution: Execution, strategy: Strategy, *, has_peers: bool
) -> CompilePolicy | None:
    """When to compile a program; None if it stays as captured."""
    is_required = choice.tier is Tier.COMPILED
    if is_required and strategy.needs_graph:
        raise OptionError(
            f"The tier is 'compiled', but the program cannot run compiled code: {strategy.needs_graph}. Use the tier "
            "'graph', or one card (PILOTAGE_CARDS) that has all of the state."
        )
    if strategy.needs_graph or not (is_required or choice.rises):
        return None
    if execution.nonfinite_loss is NonFiniteLoss.RAISE and strategy.program.checks_loss:
        if is_required:
            raise OptionError(
                "nonfinite_loss is 'raise', but compiled code cannot stop in a step. Use the tier 'graph'."
            )
        return None
    # An explicit cache directory means: compile now.
    is_explicit = execution.cache_directory is not None
    after_seconds = 0.0 if is_explicit else choice.capabilities.seconds_before_compiling
    return CompilePolicy(is_required, after_seconds, with_others=has_peers and not is_required)
