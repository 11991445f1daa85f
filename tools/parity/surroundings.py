"""Environment variables, profiling, caching, and the packages around PopTorch."""

from __future__ import annotations

from tools.parity.rows import Sort, Table, arguments, rows

TABLES = (
    Table(
        title="Environment variables",
        sort=Sort.VARIABLES,
        rows=rows(
            works="POPTORCH_DEFAULT_OPTIONS POPTORCH_LOG_LEVEL OMPI_COMM_WORLD_SIZE "
            "OMPI_COMM_WORLD_RANK POPART_LOG_LEVEL POPTORCH_CACHE_DIR",
            noted={"POPTORCH_MAX_GRAPH_LEN": "Of the graph in the log at level TRACE."},
            differs={
                "POPTORCH_LOG_DEST": "lines of the logger `poptorch::backend`; those of the engine go to standard "
                "error, or where "
                "the application sends the logger `pilotage`",
                "POPTORCH_IPU_MODEL": "runs on the CPU backend",
                "POPTORCH_SMALL_IPU_MODEL": "runs on the CPU backend",
                "POPLAR_ENGINE_OPTIONS": "only what it says of autoReport counts",
                "POPTORCH_IPU_MODEL_VERSION": "checked; the CPU backend computes the same for ipu1, ipu2 and ipu21",
                "POPTORCH_EXPORT_PROTO_FILE": "the captured program as JSON, and no protocol buffer",
                "POPTORCH_EXPORT_PROTO_FILE_AS_BINARY": "an archive of the same with the tensors that are built in",
                "PVTI_OPTIONS": "tracepoints go to <directory>/<fileName>_<process>.json, for Perfetto and "
                "chrome://tracing",
            },
            absent={
                "POPTORCH_WAIT_FOR_IPU": "devices are shared here, and none has to be waited for",
            },
        ),
    ),
    Table(
        title="Profiling",
        rows=rows(
            differs={
                "profiling.Channel": "spans appear in torch's profiler and, with PVTI_OPTIONS, in a file",
                "profiling.Channel.instrument": "spans appear in torch's profiler and, with PVTI_OPTIONS, in a file",
                "profiling.Channel.tracepoint": "spans appear in torch's profiler and, with PVTI_OPTIONS, in a file",
            }
        ),
    ),
    Table(
        title="Profiling and caching by executors",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Tracepoints of executors: modelCompilation, graphPreprocessing, loadExecutable, compileAndExport, "
                "saveExecutableToFile, modelExecution": "",
                "Tracepoints of loading: poptorch.DataLoader, dataset.__getitem__": "in the file of each process "
                "that reads",
                "Compiled programs are kept in the directory of `enableExecutableCaching`": "machine code, compiled "
                "beside the "
                "run",
                "Processes that share a cache compile once": "",
            },
            differs={
                "The cache has a file `<md5 of the model>.lock`, tells of it at DEBUG, and is advised where several "
                "processes "
                "compile": "a lock by the fingerprint of the program; nothing is said of it, as compiling stands in "
                "nobody's way",
                "`<dir>/<model name>/profile.pop` after `enableProfiling`": "a trace of the first run in JSON, for "
                "Perfetto "
                "and chrome://tracing",
            },
        ),
    ),
    Table(
        title="popdist",
        of="popdist",
        rows=rows(
            works="isPopdistEnvSet init getInstanceIndex getNumInstances getLocalInstanceIndex getNumLocalReplicas "
            "getNumTotalReplicas getNumIpusPerReplica getReplicaIndexOffset checkNumIpusPerReplica "
            "execute_on_instances "
            "registerCommunicator initializeBackend finalizeBackend isBackendInitialized registerDefaultBackend "
            "poptorch.Options",
            noted={"rank": "what `getInstanceIndex` gives"},
            differs={
                "getDeviceId": "the number of the instance on its host",
                "registerBackend": "raises: instances talk by torch.distributed",
                "tensorflow.set_ipu_config": "raises: TensorFlow is not served",
            },
        ),
    ),
    Table(
        title="Arguments of popdist",
        of="popdist",
        sort=Sort.ARGUMENTS,
        rows=arguments({"poptorch.Options": "ipus_per_replica", "getDeviceId": "ipusPerReplica"}),
    ),
    Table(
        title="Behaviour of popdist.poptorch.Options",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "`useIpuId`, `replicationFactor`, `Distributed.disable`, `Distributed.setEnvVarNames` and "
                "`Distributed.configureProcessId` raise": "",
                "Replicas, device and process come from poprun, or are one process with one replica": "",
                "Each update takes the gradients of all replicas of all instances": "by one exchange of the flat "
                "buffer",
                "Stages of a pipeline are processes of their own with `--ipus-per-replica`": "by "
                "torch.distributed.pipelining",
            },
        ),
    ),
    Table(
        title="Variables of poprun",
        sort=Sort.VARIABLES,
        rows=rows(
            works="POPDIST_NUM_TOTAL_REPLICAS POPDIST_NUM_LOCAL_REPLICAS POPDIST_NUM_IPUS_PER_REPLICA "
            "POPDIST_REPLICA_INDEX_OFFSET POPDIST_LOCAL_INSTANCE_INDEX POPDIST_UNIFORM_REPLICAS_PER_INSTANCE",
            absent={"IPUOF_VIPU_API_*": "there is no V-IPU server"},
        ),
    ),
)
