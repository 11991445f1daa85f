"""The variables of poprun."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.distributed.environments.variables import is_on_one_host, master_address, number
from pilotage.distributed.world import World
from pilotage.errors import OptionError
from pilotage.options.environment import JOB_DIRECTORY, STAGE

TOTAL_REPLICAS = "POPDIST_NUM_TOTAL_REPLICAS"
LOCAL_REPLICAS = "POPDIST_NUM_LOCAL_REPLICAS"
STAGES = "POPDIST_NUM_IPUS_PER_REPLICA"
FIRST_REPLICA = "POPDIST_REPLICA_INDEX_OFFSET"
LOCAL_INSTANCE = "POPDIST_LOCAL_INSTANCE_INDEX"
UNIFORM = "POPDIST_UNIFORM_REPLICAS_PER_INSTANCE"


def is_under_poprun(environment: Mapping[str, str]) -> bool:
    """Whether poprun started this process."""
    return TOTAL_REPLICAS in environment


def poprun_world(environment: Mapping[str, str]) -> World | None:
    """The world in poprun's variables; None if there are none."""
    if not is_under_poprun(environment):
        return None
    total, local = number(environment, TOTAL_REPLICAS), number(environment, LOCAL_REPLICAS, 1)
    first = number(environment, FIRST_REPLICA, 0)
    if local < 1 or total % local or first % local:
        raise OptionError(
            f"{LOCAL_REPLICAS} is {local}. It must divide {TOTAL_REPLICAS}, which is {total}, and {FIRST_REPLICA}, "
            f"which is {first}: all instances have the same number of replicas."
        )
    address, port = master_address(environment)
    directory = environment.get(JOB_DIRECTORY.name) or None
    stages = number(environment, STAGES, 1)
    # A job without stages that a stage of another job starts inherits that job's variable.
    is_stage = stages > 1 and environment.get(STAGE.name)
    return World(
        rank=first // local,
        size=total // local,
        local_rank=number(environment, LOCAL_INSTANCE, 0),
        replicas_per_instance=local,
        stages_per_replica=stages,
        stage=number(environment, STAGE.name) if is_stage else None,
        address=address,
        port=port,
        one_host=directory is not None or is_on_one_host(environment, address),
        directory=directory,
        launcher="poprun",
    )


def poprun_variables(world: World) -> dict[str, str]:
    """The variables in which poprun describes the world to an instance."""
    layout = {
        TOTAL_REPLICAS: world.replicas,
        LOCAL_REPLICAS: world.replicas_per_instance,
        STAGES: world.stages_per_replica,
        FIRST_REPLICA: world.first_replica,
        LOCAL_INSTANCE: world.local_rank,
        UNIFORM: 1,
        STAGE.name: world.stage,
    }
    rendezvous = {"MASTER_ADDR": world.address, "MASTER_PORT": world.port, JOB_DIRECTORY.name: world.directory}
    return {name: str(value) for name, value in {**layout, **rendezvous}.items() if value is not None}
