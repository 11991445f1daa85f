"""Equal weights, buffers and optimizer state in all instances and stages, before they train together."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from torch import nn

from pilotage.distributed.equal_weights import equalize_weights
from pilotage.distributed.peers import Peers
from pilotage.distributed.pipeline_group import PipelineGroup
from pilotage.distributed.same_exchange import Settings
from pilotage.distributed.world import World
from pilotage.errors import OptionError
from pilotage.execution.spread_state import ProgramState
from pilotage.options.check import FIRST, OFF
from pilotage.options.choices import Tier
from pilotage.options.execution import Execution
from pilotage.runtime.weights import WeightKeeper


def checked_peers(peers: Peers | None, execution: Execution) -> Peers | None:
    """The other instances; raises if the launcher started more or fewer than the options say."""
    world = World() if peers is None else peers.world
    asked = (execution.instance, execution.batching.instances)
    if asked != (world.rank, world.size):
        raise OptionError(
            f"The options say that this is instance {asked[0]} of {asked[1]}, but it is rank {world.rank} of "
            f"{world.size}{world.set_by}. Start the script with poprun, mpirun, srun or torchrun and {asked[1]} "
            "instances."
        )
    return peers


def common_settings(execution: Execution, tier: Tier) -> Settings:
    """The options that decide what instances exchange, and how often."""
    batching, check = execution.batching, execution.check
    compares = not check.is_off and (check.is_explicit or tier is not Tier.EAGER)
    return {
        "gradient_accumulation": batching.gradient_accumulation,
        "device_iterations": batching.device_iterations,
        "replicas": batching.replicas,
        "reduction": execution.reduction.value,
        "pooling": execution.pooling.value,
        "check": (check.period or FIRST) if compares else OFF,
    }


def equalize(
    module: nn.Module,
    state: ProgramState,
    weights: WeightKeeper,
    pipeline_group: PipelineGroup | None,
    peers: Peers | None,
    own_buffers: Collection[str],
    settings: Settings,
) -> Iterator[str]:
    """Give all stages, then all instances the same values; yields a warning for each kind that differed.

    Raises if the ``settings`` of the instances differ.
    """
    if pipeline_group is not None:
        weights.fetch_for_reading()
        if unequal := equalize_stages(pipeline_group, module):
            weights.send(state)
            yield unequal
    if peers is not None and (unequal := equalize_instances(peers, state, own_buffers, settings)):
        yield unequal


def equalize_instances(
    peers: Peers, state: ProgramState, own_buffers: Collection[str] = (), settings: Settings | None = None
) -> str | None:
    """Copy the state of instance 0 to instances that differ; returns a warning if there were any.

    Each instance keeps its ``own_buffers`` if weights and optimizer state are equal everywhere.
    """
    # A slot that is sharded is in only one instance.
    own = {} if state.optimizer_shards is not None else state.slots
    slots = {f"{slot.name} of {slot.parameter}": tensor for slot, tensor in own.items()}
    counters = {counter.value: tensor for counter, tensor in state.counters.items()}
    tensors = {**state.parameters, **state.buffers(), **slots, **counters}
    unequal = equalize_weights(peers, tensors, own_buffers, settings)
    if not unequal:
        return None
    state.refresh_copies()
    state.load_buffers(state.buffers())
    return _notice("instances", unequal)


def equalize_stages(group: PipelineGroup, module: nn.Module) -> str | None:
    """Copy the weights of the first stage's module to stages that differ; returns a warning if there were any."""
    unequal = equalize_weights(group, {**dict(module.named_parameters()), **dict(module.named_buffers())})
    return _notice("stages", unequal) if unequal else None


def _notice(which: str, unequal: list[str]) -> str:
    return (
        f"The {which} would have started with different values of {len(unequal)} tensors, including {unequal[0]}; all "
        f"of them start with those of {which.removesuffix('s')} 0. Seed torch in the same way everywhere, or load the "
        "same checkpoint."
    )
