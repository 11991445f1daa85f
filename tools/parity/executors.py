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
                "cycleCount": "Raises, as in PopTorch without IPU hardware.",
                "weight.replicaGrouping": "Of any parameter: `model.layer.weight`, `model.get_parameter(name)`.",
            },
            differs={
                "rng_state": "a longer list of numbers: the seed, then the state of torch's generator for each replica",
                "destroy": "also allows another training wrapper if nothing was compiled yet",
                "save": "the file contains program, options, weights and optimizer state as plain data, and no pickle",
                "compileAndExport": "as `save`",
                "getTensorNames": "weights, gradients and losses have PopTorch's names, operations those of the "
                "captured graph",
                "getPerfCounters": "for each micro-batch on the CPU; on a card, which has its own queue, for the "
                "whole call",
                "getHostIpuLatency": "zero on a card: sending is part of computing there",
                "getIpuHostLatency": "zero on a card: returning is part of computing there",
                "_debugGetPopartIR": "the operations are torch's",
                "loadExecutable": "like `load`; the settings of the optimizer are used, not those in the file",
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
                "_executor.proxies.ParameterProxy.replicaGrouping(variable_retrieval_mode)": "OnePerGroup, because "
                "the replicas of a group never differ; AllReplicas only if each replica is a group"
            },
        ),
    ),
    Table(
        title="What wrapping and calling do",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Plain attributes keep the values they had when the model was wrapped; weights are shared": "",
                "Arguments are normalised to forward's signature; later calls must match the first": "",
                "Every input is cut into deviceIterations x replicas / group x gradientAccumulation parts": "",
                "Outputs have forward's structure; their first dimension follows the output mode": "",
                "A constant output is returned once": "",
                "In-place changes of inputs are written back": "",
                "`backward()` on an output raises": "",
                "The one loss operation that feeds no other is the root of training": "a warning says if a returned "
                "value is computed after it",
                "Every way of reading the module shows the trained weights": "",
                "An inference wrapper follows the training of its module": "",
                "Implicit downloads call the wrapped model's `copyWeightsToHost`, once after each training": "a "
                "program that replaces this method also sees the download that iterating over parameters causes",
                "`copyWeightsToDevice` replaces newer weights of the device by those of the host": "with a warning",
                "`torch.manual_seed` in forward seeds the host, once; the device's generator is not affected": "",
                "uint8 masks select like boolean ones; `one_hot` and `bincount` need their sizes": "",
                "Only one training wrapper at a time, until `destroy()`": "",
                "Floating-point buffers that forward writes need `broadcastBuffers(False)` with several replicas in "
                "one "
                "process; batch normalisation and several instances do not": "the host sees the buffers of the first "
                "replica of its instance",
                "Buffers and parameters that forward removes or replaces are refused": "also by "
                "`self.p.data = …`, `self.p.set_(…)` or `self.half()`; what changes nothing, as "
                "`self.p = self.p.to(x.device)` and `self.float()` on a float32 model, is not",
                "Linear, convolutions, norms and products of mixed types compute in the type of their input, and "
                "weights "
                "keep theirs; recurrent networks and all other functions promote": "what torch has no half-precision "
                "kernel for, such as `ctc_loss` and `cdist` on a processor, computes in float32 and returns half",
                '`device="ipu"` in forward is the device that the model runs on': "",
                "What forward does to plain Python attributes happens once, when it is captured; the program continues "
                "with that constant": "with a warning that names the attribute",
                "Submodules without state may be created in forward": "",
            },
            differs={
                "int64 inputs become int32": "they keep 64 bits inside the program, and are returned as int32",
                "Weights of float64 or bfloat16 become float32": "they keep their type, like inputs of that type, and "
                "outputs are returned as float32",
                "A CPU tensor that forward has changed cannot be an operand": "it is a constant, with the value of the "
                "capture; a write after the program has read it, through a view or of a value of the program is "
                "refused",
                "A CPU tensor as an operand of an operation is refused": "on the CPU backend it is a constant",
                "Buffers of whole numbers are constants: what forward writes to them is lost after the call": "they "
                "are "
                "kept, such as the `num_batches_tracked` of batch normalisation",
                "`interpolate` supports only nearest neighbours": "all modes run",
                "`wrapped.to(device)` returns the bare module": "moving a wrapped model raises an error with the "
                "remedy, and methods that return the module return the wrapper",
                "The user's module gets another class, with `destroy()`, `copyWeightsToHostIfNeeded()` and "
                "`_host_weights_version`": "its class does not change, and it only gets `destroy()`; call the others "
                "on the wrapped model",
                "A model whose loss depends on no trained parameter runs": "with one warning",
                "`dynamic_slice` only takes sizes that divide the dimension": "any size",
            },
        ),
    ),
)
