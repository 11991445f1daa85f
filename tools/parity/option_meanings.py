"""What each option does here: the source of the options' rows in the parity page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["OPTION_MEANINGS", "Meaning", "OptionMeaning"]


class Meaning(Enum):
    """How far an option reaches."""

    EFFECT = "works"
    IPU_ONLY = "stored only: can matter only on IPU silicon"
    DEPRECATED = "accepted; without effect in PopTorch too"
    OWN = "not in PopTorch"


@dataclass(frozen=True, slots=True)
class OptionMeaning:
    """One row: an option by its path below ``poptorch.Options()``, and what it does."""

    path: str
    meaning: Meaning
    remark: str


def _rows(meaning: Meaning, remarks: dict[str, str]) -> tuple[OptionMeaning, ...]:
    return tuple(OptionMeaning(path, meaning, remark) for path, remark in remarks.items())


OPTION_MEANINGS: tuple[OptionMeaning, ...] = (
    *_rows(
        Meaning.EFFECT,
        {
            "deviceIterations": "How many times the captured step runs in one call.",
            "replicationFactor": "Replicas without their own device take turns on one device.",
            "broadcastBuffers": "True refuses models that write to floating-point buffers, if this process has several "
            "replicas with different data; batch normalisation is allowed.",
            "randomSeed": "Seeds torch at once, and the program's random streams.",
            "outputMode": "All, EveryN, Final and Sum.",
            "anchorTensor": "Weights, inputs, loss, gradients, updated weights, the optimizer's values, and "
            "operations by the names of the graph.",
            "anchorMode": "The old name of outputMode.",
            "defaultOutputMode": "True until a mode is chosen.",
            "useIpuModel": "True runs on the CPU backend, and prints the prediction for an IPU after the first run; a "
            "program that does not fit raises Poplar's error, unless debug.allowOutOfMemory is set.",
            "connectionType": "Never forbids running.",
            "useOfflineIpuTarget": "Forbids running, like connectionType(Never).",
            "setExecutionStrategy": "Stages, phases and IPUs are checked. Under poprun --ipus-per-replica each stage "
            "is a process; otherwise stages run on one device, or each on its own card.",
            "autoRoundNumIPUs": "Whether to refuse a number of IPUs that is not a power of two.",
            "maxRepeatLogs": "Limits equal messages during a compilation.",
            "logCycleCount": "True raises when the model runs, as in PopTorch without IPU hardware.",
            "updatableNamedBuffers": "Names the buffers that copyNamedBuffersToDevice copies.",
            "relaxOptimizerAttributesChecks": "Moves messages about optimizers to DEBUG.",
            "showCompilationProgressBar": "Draws the bar and times compilations.",
            "from_json": "A name that occurs twice is called twice; strings name enums and torch dtypes.",
            "loadFromFile": "Lines are parsed and never executed.",
            "Distributed.disable": "One process.",
            "Distributed.setEnvVarNames": "Read at once.",
            "Distributed.configureProcessId": "Shards the data loader, and shares each update with the other "
            "processes.",
            "Training.gradientAccumulation": "Gradients are pooled before each update.",
            "Training.accumulationAndReplicationReductionType": "Mean or Sum.",
            "Precision.enableStochasticRounding": "New half-precision weights are rounded up or down at random; "
            "other results to the nearest.",
            "Training.setAutomaticLossScaling": "The loss scale doubles while no gradient is large, and halves "
            "otherwise.",
            "Training.setMeanAccumulationAndReplicationReductionStrategy": "Running, Post and PostAndLoss; they "
            "differ by rounding.",
            "inputReplicaGrouping": "Groups of replicas read the same data, consecutive or orthogonal.",
            "enableSyntheticData": "Inputs are generated once on the device (random or zeros) and the host's are "
            "ignored; outputs are returned.",
            "sourceLocationExcludes": "Leaves files out of the source locations in messages.",
            "appendToLocationExcludes": "Leaves files out of the source locations in messages.",
            "enableExecutableCaching": "Programs are compiled in the background from the first call, and stored in "
            "this directory.",
            "modelName": "Names the model in the log and the directory of its profile.",
            "disableModuleNamescope": "Leaves submodules out of the names of operations.",
            "enableProfiling": "Writes a trace of the first run to <dir>/<model name>/profile.pop, as JSON for "
            "Perfetto and chrome://tracing, and beside it report.html: the program predicted on an IPU.",
            "TensorLocations.setActivationLocation": "Off the chip, activations are kept on the host until backward "
            "needs them; on cards, in the graph tier.",
            "TensorLocations.setOptimizerLocation": "Off the chip, the optimizer state is on the card only during the "
            "update; with replicated tensor sharding each process holds a shard.",
            "_Popart.set": "Names are checked when a program is compiled; autoRecomputation, enableEngineCaching, "
            "cachePath, partialsTypeMatMuls, syntheticDataMode, enableFloatingPointChecks and "
            "groupNormStridedChannelGrouping have an effect.",
            "Precision.setPartialsType": "The type in which half-precision matrix products accumulate on NVIDIA "
            "cards; CPUs always use float.",
            "Precision.enableFloatingPointExceptions": "Every operation of forward and backward is checked; after the "
            "call, an error names the operation and its line. Not in the eager tier.",
        },
    ),
    *_rows(
        Meaning.IPU_ONLY,
        {
            "setAvailableMemoryProportion": "The memory of tiles.",
            "syncPattern": "Synchronisation between IPUs.",
            "useIpuId": "A number of an IPU.",
            "logDir": "Where PopART writes its files.",
            "enableStableNorm": "Norms here are always computed by the stable formula.",
            "Training.setConvolutionDithering": "The placement of convolutions on tiles.",
            "TensorLocations.numIOTiles": "Tiles for transfers.",
            "TensorLocations.setWeightLocation": "Weights stay on the device; off-chip storage gives a warning.",
            "TensorLocations.setAccumulatorLocation": "Pooled gradients stay on the device; off-chip storage gives a "
            "warning.",
            "_Popart.setEngineOptions": "Options of Poplar.",
            "_Popart.setPatterns": "Rewriting patterns of PopART.",
        },
    ),
    *_rows(
        Meaning.DEPRECATED,
        {
            "Jit.traceModel": "Warns; True is refused.",
            "Precision.halfFloatCasting": "Warns.",
            "Precision.runningStatisticsAlwaysFloat": "Warns.",
        },
    ),
    *_rows(
        Meaning.OWN,
        {
            "runOn": "Chooses Pilotage's backend, its tier, what a NaN loss does and the order of a pipeline.",
            "check": "Chooses which calls are compared with eager PyTorch, and what a difference does.",
        },
    ),
)
"""Every option that can be called."""
