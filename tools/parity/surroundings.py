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
            noted={"POPTORCH_MAX_GRAPH_LEN": "Limits the graph in the log at level TRACE."},
            differs={
                "POPTORCH_LOG_DEST": "for the logger `poptorch::backend`; lines of the engine go to standard error, "
                "or wherever the application sends the logger `pilotage`",
                "POPTORCH_IPU_MODEL": "runs on the CPU backend, and prints the prediction for an IPU",
                "POPTORCH_SMALL_IPU_MODEL": "runs on the CPU backend, and prints the prediction for 4 tiles",
                "POPLAR_ENGINE_OPTIONS": "only the autoReport options and debug.allowOutOfMemory have an effect",
                "POPTORCH_IPU_MODEL_VERSION": "chooses the IPU that is predicted; results are the same for all",
                "POPTORCH_EXPORT_PROTO_FILE": "the captured program as JSON instead of a protocol buffer",
                "POPTORCH_EXPORT_PROTO_FILE_AS_BINARY": "an archive of the program and its constant tensors",
                "PVTI_OPTIONS": "tracepoints go to <directory>/<fileName>_<process>.json, for Perfetto and "
                "chrome://tracing",
            },
            absent={
                "POPTORCH_WAIT_FOR_IPU": "devices are shared, so programs do not wait for one",
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
                "Tracepoints of loading: poptorch.DataLoader, dataset.__getitem__": "in the file of each loading "
                "process",
                "Compiled programs are kept in the directory of `enableExecutableCaching`": "machine code, compiled "
                "in the background",
                "Processes that share a cache compile once": "",
            },
            differs={
                "The cache has a file `<md5 of the model>.lock`, logs it at DEBUG, and recommends it if several "
                "processes compile": "a lock named after the fingerprint of the program; nothing is logged, because "
                "compiling does not block the run",
                "`<dir>/<model name>/profile.pop` after `enableProfiling`": "a trace of the first run in JSON, for "
                "Perfetto and chrome://tracing; report.html and report.json beside it predict the program on an IPU",
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
            noted={"rank": "the result of `getInstanceIndex`"},
            differs={
                "getDeviceId": "the index of the instance on its host",
                "registerBackend": "raises: instances communicate by torch.distributed",
                "tensorflow.set_ipu_config": "raises: TensorFlow is not supported",
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
                "Stages of a pipeline are separate processes with `--ipus-per-replica`": "by "
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
            absent={"IPUOF_VIPU_API_*": "no V-IPU server is used"},
        ),
    ),
    Table(
        title="Packages around PopTorch",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Another package that is installed under one of these names is used instead": "",
            },
            differs={
                "`popart`": "enums, versions, errors and `getLogger`; building and running graphs raises. The numbers "
                "of enums that PopTorch does not have were not compared with a PopART, and nothing here reads them",
                "`libpvti`": "channels, tracepoints and graphs go to the file of PVTI_OPTIONS, as JSON for Perfetto; "
                "names and signatures were not compared with a libpvti",
                "`poptorch_geometric`": "fixed-size options, collating, sampling and loading, maskers, parsers, "
                "`set_aggregation_dim_size` and `TrainingStepper`, for PyTorch Geometric, with one number or one for "
                "each type of nodes and edges; graphs with several types are not trimmed, and functions of "
                "torch_cluster are not replaced",
                "`horovod.torch`": "ranks and collectives on the host over the instances that poprun, torchrun, mpirun "
                "or srun started; `DistributedOptimizer` and `elastic` raise, because programs exchange their "
                "gradients themselves and poprun restarts jobs",
            },
        ),
    ),
)
