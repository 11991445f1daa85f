"""Where the tensors of a program are kept: the requested locations, as far as device and tier support them."""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from pilotage.devices.registry import Choice
from pilotage.errors import OptionError
from pilotage.events import Event, Noted, Warned
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.options.locations import Locations
from pilotage.program.optimizer_shards import Broadcast, OptimizerShards, assign_owners
from pilotage.program.program import Program


def possible_locations(wanted: Locations, choice: Choice, *, trains: bool) -> Locations:
    """The locations that are possible on a device."""
    if not choice.capabilities.has_own_memory:
        return replace(wanted, activations=None, optimizer=None)
    has_backward = trains and choice.tier is Tier.GRAPH
    return wanted if has_backward else replace(wanted, activations=None)


def notice_of_locations(wanted: Locations, choice: Choice, *, trains: bool) -> Event | None:
    """A notice about locations without effect, if any."""
    if wanted.uses_host and not choice.capabilities.has_own_memory:
        name = choice.capabilities.name
        return Noted(message=f"Nothing is offloaded to the host: the {name} backend uses the host's memory.")
    if trains and wanted.activations is not None and choice.tier is not Tier.GRAPH:
        return Warned(
            message=f"Activations stay on the device in the tier {choice.tier.value!r}. They are offloaded to the host "
            "only in the tier 'graph'."
        )
    return None


def refuse_slots_on_host(program: Program) -> None:
    """Raise for stages on several cards whose optimizer state would be kept on the host."""
    if program.layout.slots_on_host is not None:
        raise OptionError(
            "The stages are placed on several cards of this process. The optimizer state cannot be kept on the host "
            "in this case yet: keep it on the device, or start a process for each stage."
        )


def optimizer_shards_of(
    module: nn.Module, plan: OptimizerPlan | None, execution: Execution, broadcast: Broadcast | None
) -> OptimizerShards | None:
    """Which instance updates which parameter; None if each updates all of them."""
    minimum = execution.locations.shared_optimizer
    if minimum is None or plan is None or broadcast is None:
        return None
    trained = {name for group in plan.groups for name in group.parameters}
    elements = {n: p.numel() for n, p in module.named_parameters() if n in trained and p.requires_grad}
    owners = assign_owners(elements, execution.batching.instances, minimum)
    return OptimizerShards(owners=owners, instance=execution.instance, broadcast=broadcast)
