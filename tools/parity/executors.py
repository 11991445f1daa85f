"""Wrapped models."""

from __future__ import annotations

from tools.parity.rows import Sort, Table, arguments, rows

TABLES = (
    Table(
        title="Wrapped models",
        of="PoplarExecutor",
        rows=rows(
            works="__call__ model options training state_dict parameters compile isCompiled isAttachedToDevice "
            "attachToDevice "
            "detachFromDevice getAnchoredTensor getComputeLatency getLatency copyWeightsToHost copyWeightsToDevice "
            "copyWeightsToHostIfNeeded copyNamedBuffersToDevice "
            "load_state_dict setOptimizer compilationTime __repr__",
            noted={
                "cycleCount": "Raises as it does without IPU hardware.",
                "weight.replicaGrouping": "Of any parameter: `model.layer.weight`, `model.get_parameter(name)`.",
            },
            differs={
                "rng_state": "a longer list of numbers: the seed, then the state of torch's generator for each replica",
                "destroy": "also makes room for another training wrapper where nothing was compiled yet",
                "save": "the file holds program, options, weights and optimizer state as plain data, and no pickle",
                "compileAndExport": "as `save`",
                "getTensorNames": "weights, gradients and the like under PopTorch's names, operations under the "
                "graph's own",
                "getPerfCounters": "for each micro-batch on the processor; on a card, which has a queue of its own, "
                "the times of "
                "the whole call",
                "getHostIpuLatency": "on a card zero: sending is part of computing there",
                "getIpuHostLatency": "on a card zero: returning is part of computing there",
                "_debugGetPopartIR": "the operations are torch's",
                "loadExecutable": "as `load`; the optimizer's own settings count, not those in the file",
            },
        ),
    ),
    Table(
        title="Arguments of wrappers",
        sort=Sort.ARGUMENTS,
        rows=arguments(
            {
                "trainingModel": "model options optimizer",
                "inferenceModel": "model options",
                "load": "filename edit_opts_fn",
                "PoplarExecutor.save": "filename export_model save_rng_state",
                "PoplarExecutor.compileAndExport": "filename export_model",
                "PoplarExecutor.loadExecutable": "filename",
                "PoplarExecutor.load_state_dict": "state_dict strict",
                "_executor.proxies.ParameterProxy.replicaGrouping": "comm_group_type shards",
            },
            differs={
                "_executor.proxies.ParameterProxy.replicaGrouping(variable_retrieval_mode)": "OnePerGroup, as the "
                "replicas of a group never differ; AllReplicas only where each is a group of its own"
            },
        ),
    ),
    Table(
        title="What wrapping and calling do",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Plain attributes count as they were when the model was wrapped; weights are shared": "",
                "Arguments are normalised against forward's signature; later calls have to fit the first": "",
                "Every input is cut into deviceIterations x replicas / group x gradientAccumulation parts": "",
                "Outputs have forward's structure; their first dimension follows the output mode": "",
                "A constant output is not multiplied": "",
                "In-place changes of inputs are written back": "",
                "`backward()` on an output raises": "",
                "The one loss operation that feeds no other is the root of training": "work after it that is "
                "returned is warned of",
                "Reading the module shows the trained weights, by whatever route": "",
                "An inference wrapper follows the training of its module": "",
                "Only one training wrapper at a time, until `destroy()`": "",
                "Written buffers need `broadcastBuffers(False)` with several replicas": "",
                "Buffers and parameters that forward removes or replaces are refused": "",
            },
            differs={
                "int64 inputs become int32": "they keep 64 bits inside of the program, and come out as int32",
                "Weights of float64 or bfloat16 become float32": "they keep their type, inputs of that type with them, "
                "and outputs come back as float32",
                "A CPU tensor as an operand of an operation is refused": "on the CPU backend it is a constant",
                "interpolate only by nearest neighbours": "all modes run",
                "`wrapped.to(device)` returns the bare module": "moving a wrapped model raises with the remedy, and "
                "methods "
                "that return the module return the wrapper",
                "The user's module gets another class, with `destroy()`, `copyWeightsToHostIfNeeded()` and "
                "`_host_weights_version`": "the module and its class are left as they are; call these on the wrapped "
                "model",
            },
        ),
    ),
)
