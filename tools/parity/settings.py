"""Options, their groups, and execution strategies."""

from __future__ import annotations

from collections.abc import Iterable

from tools.parity.option_meanings import OPTION_MEANINGS, Meaning, OptionMeaning
from tools.parity.rows import Row, Sort, Status, Table, rows

_STATUS = {
    Meaning.EFFECT: Status.WORKS,
    Meaning.DEPRECATED: Status.WORKS,
    Meaning.IPU_ONLY: Status.DIFFERS,
}


def _row(option: OptionMeaning) -> Row:
    status = _STATUS[option.meaning]
    if option.meaning is Meaning.IPU_ONLY:
        remark = option.remark.removesuffix(".")
        return Row(option.path, status, f"checked and stored only: {remark[0].lower()}{remark[1:]}")
    return Row(option.path, status, option.remark)


def _rows_of(options: Iterable[OptionMeaning]) -> tuple[Row, ...]:
    return tuple(_row(option) for option in options if option.meaning is not Meaning.OWN)


_PROCESSES = "under `poprun --ipus-per-replica` each stage is a separate process, {order}; in one process "

_ONE_DEVICE = (
    "stages run in order and with equal results, on one device or on all available cards, which was tested only on "
    "emulated cards"
)

TABLES = (
    Table(
        title="How options are stored",
        of="Options",
        rows=rows(
            works="set createOrSet exists deleteIfExists update toDict clone checkIsFrozen _freeze _unfreeze _values "
            "TensorLocations Distributed Jit Precision Training _Popart "
            "replication_factor input_group_size input_cgt broadcast_buffers device_iterations log_dir max_repeat_logs "
            "auto_round_num_ipus anchored_tensors output_mode output_return_period connection_type sync_pattern "
            "available_memory_proportion _execution_strategy _source_location_excludes _relax_optimizer_checks "
            "_show_compilation_progress_bar _module_namescope_enabled _progress_bar "
            "Training.gradient_accumulation Training.accumulation_and_replication_reduction_type "
            "Training.meanAccumulationAndReplicationReductionStrategy "
            "Distributed.processId Distributed.numProcesses Distributed.num_distributed_processes "
            "Distributed.distributed_process_id Distributed.ipuof_configs _Popart.options",
            noted={"__call__": "`options(name)` reads an option."},
        ),
    ),
    Table(
        title="What storage does",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Options that exist are set to values of their type; `use_model`, `model_name`, `random_seed` and "
                "`ipu_version` appear once they are set": "",
                "Loaders and wrappers freeze the caller's object; `clone()` and `copy.deepcopy` open a copy": "",
                "Options can be pickled, and equal ones look equal": "",
            }
        ),
    ),
    Table(title="Options", of="Options", rows=_rows_of(OPTION_MEANINGS)),
    Table(
        title="Tensor locations",
        of="TensorLocationSettings",
        rows=rows(
            noted={
                "useOnChipStorage": "False keeps activations and the optimizer state on the host; on the CPU, host "
                "and device share memory.",
                "minElementsForOffChip": "2 by default.",
                "useReplicatedTensorSharding": "For the optimizer state: divided among processes, parameter by "
                "parameter. Replicas of one process always share it.",
                "minElementsForReplicatedTensorSharding": "8192 by default.",
            },
            differs=dict.fromkeys(
                ["useIOTilesToLoad", "useIOTilesToStore"], "checked and stored only: the tiles of an IPU"
            ),
        ),
    ),
    Table(
        title="Execution strategies",
        rows=rows(
            works="Stage.blocks Stage.ipu Phase.stages Phase.stage Phase.ipus PipelinedExecution.stage "
            "PipelinedExecution.backendOptions ParallelPhasedExecution.backendOptions "
            "SerialPhasedExecution.backendOptions "
            "ParallelPhasedExecution.phase SerialPhasedExecution.phase",
            noted={
                "ParallelPhasedExecution.sendTensorsOffChipAfterFwd": "Like an activation location off the chip.",
                "SerialPhasedExecution.setTensorsLiveness": "All except AlwaysLive work like an activation location "
                "off the chip.",
            },
            differs={
                "PipelinedExecution": _PROCESSES.format(order="1F1B or GPipe") + _ONE_DEVICE,
                "ShardedExecution": _PROCESSES.format(order="one micro-batch after the other") + _ONE_DEVICE,
                "ParallelPhasedExecution": _ONE_DEVICE,
                "SerialPhasedExecution": _ONE_DEVICE,
                "ParallelPhasedExecution.useSeparateBackwardPhase": "checked and stored only: backward follows "
                "forward anyway",
                "SerialPhasedExecution.useSeparateBackwardPhase": "checked and stored only: backward follows forward "
                "anyway",
            },
        ),
    ),
    Table(
        title="Checks of strategies",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Pipelined training needs gradientAccumulation of at least 2 x stages - 1": "",
                "Pipelined inference needs as many deviceIterations as stages": "",
                "A block in two stages, and a block in none, are refused": "",
                "An operation after a closed block is refused": "",
                "A number of IPUs that is not a power of two, or above 64, is refused": "",
                "The IPU is that of the stage, of the block, or the number of the stage": "",
                "In a parallel phased execution even phases are on even IPUs, and odd phases on odd ones": "",
            }
        ),
    ),
)
