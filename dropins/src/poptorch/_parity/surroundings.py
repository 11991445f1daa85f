"""Environment variables, profiling, caching, and the packages around PopTorch."""

from __future__ import annotations

from poptorch._parity.rows import Sort, Table, arguments, rows

TABLES = (
    Table(
        title="Environment variables",
        sort=Sort.VARIABLES,
        rows=rows(
            works="POPTORCH_DEFAULT_OPTIONS POPTORCH_LOG_LEVEL POPTORCH_LOG_DEST OMPI_COMM_WORLD_SIZE "
            "OMPI_COMM_WORLD_RANK POPART_LOG_LEVEL POPTORCH_CACHE_DIR",
            differs={
                "POPTORCH_IPU_MODEL": "runs on the CPU backend",
                "POPTORCH_SMALL_IPU_MODEL": "runs on the CPU backend",
                "POPLAR_ENGINE_OPTIONS": "only what it says of autoReport counts",
            },
            later={
                "POPTORCH_EXPORT_PROTO_FILE": "",
                "POPTORCH_EXPORT_PROTO_FILE_AS_BINARY": "",
                "PVTI_OPTIONS": "torch's profiler shows tracepoints meanwhile",
            },
            absent={
                "POPTORCH_IPU_MODEL_VERSION": "there is no simulator of an IPU's versions",
                "POPTORCH_WAIT_FOR_IPU": "there is no IPU to wait for",
                "POPTORCH_MAX_GRAPH_LEN": "graphs are never printed in whole",
                "RDMAV_FORK_SAFE": "there is no RDMA device to share with a fork",
            },
        ),
    ),
    Table(
        title="Profiling",
        rows=rows(
            differs={
                "profiling.Channel": "spans appear in torch's profiler",
                "profiling.Channel.instrument": "spans appear in torch's profiler",
                "profiling.Channel.tracepoint": "spans appear in torch's profiler",
            }
        ),
    ),
    Table(
        title="Profiling and caching by executors",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Tracepoints of executors: modelCompilation, loadExecutable, compileAndExport, saveExecutableToFile, "
                "modelExecution": "in torch's profiler",
                "Compiled programs are kept in the directory of `enableExecutableCaching`": "machine code, compiled beside the "
                "run",
                "Processes that share a cache compile once": "",
            },
            differs={
                "`<dir>/<model name>/profile.pop` after `enableProfiling`": "a trace of the first run in JSON, for Perfetto "
                "and chrome://tracing",
            },
            absent={
                "Tracepoints graphPreprocessing and dataset.__getitem__": "capturing is part of modelCompilation, and data "
                "sets are read in other processes",
            },
        ),
    ),
    Table(
        title="popdist",
        of="popdist",
        rows=rows(
            works="isPopdistEnvSet init getInstanceIndex getNumInstances getLocalInstanceIndex getNumLocalReplicas "
            "getNumTotalReplicas getNumIpusPerReplica getReplicaIndexOffset checkNumIpusPerReplica execute_on_instances "
            "registerCommunicator initializeBackend finalizeBackend isBackendInitialized registerDefaultBackend "
            "poptorch.Options",
            differs={
                "getDeviceId": "the number of the instance on its host",
                "registerBackend": "raises: instances talk by torch.distributed",
            },
            absent={
                "rank": "not documented; getInstanceIndex gives the number",
                "tensorflow": "TensorFlow is not served",
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
                "Each update takes the gradients of all replicas of all instances": "by one exchange of the flat buffer",
            },
            later={
                "Stages of a pipeline in processes of their own, for `--ipus-per-replica`": "they run in their one instance"
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
