"""The package itself: names, errors, logging and what importing it does."""

from __future__ import annotations

from tools.parity.rows import Sort, Table, rows

TABLES = (
    Table(
        title="The package",
        rows=rows(
            works="PoplarExecutor trainingModel inferenceModel DataLoader AsynchronousDataAccessor "
            "isRunningOnIpu createPoptorchError getIpuTensorId setLogLevel registerPreCompileHook "
            "registerPostCompileHook "
            "ICustomArgParser registerCustomArgParser registerGeometricCustomArgParsers module_repr print "
            "ConfigFileError Options TensorLocationSettings Stage Phase BlockId optim profiling options enums ops "
            "testing poptorch_core "
            "_impl _logging _dataloader _poplar_executor _args_parser _optimizer_attributes _options_impl "
            "_options_config "
            "_printing logger _utils _utils.combine_batch_tensors_gen _utils.combined_batch_generator "
            "_utils.flattenTensorStructure _utils.reconstructTensorStructure _utils.custom_arg_parsers "
            "_utils.getCustomParser poptorch_core.isCompilingWithDispatcher poptorch_core.TestErrorType "
            "poptorch_core._throwTestError _impl.isDispatchTracing _impl.setDispatchTracing _impl.setIpuContext",
            noted={
                "__version__": "3.4.0, the version whose interface this is.",
                "ipuHardwareIsAvailable": "False, unless PILOTAGE_IPU_AVAILABLE=1, which makes it True for up to 64.",
                "ipuHardwareVersion": "Raises AssertionError, as PopTorch does without an IPU. With "
                "PILOTAGE_IPU_AVAILABLE=1, 2.",
                "testing.allclose": "",
                "_logging.setPopartLogLevel": "Sets the log level of the engine, which replaces PopART.",
                "poptorch_core._validateOptions": "",
            },
            differs={
                "load": "reads files that contain no pickle; the class of the model is not needed, and `model=` "
                "accepts an instance of it",
                "_OverwriteContextManager": "applies registered substitutions; it has none of its own, because "
                "tensors created in forward are captured on the device without `device=`",
                "_impl._restoreWrapperIfNecessary": "returns the object: wrapping does not change the class of "
                "anything",
                "poptorchAtExit": "does nothing: no device has to be released",
                "importPoptorchMetadataFromFile": "raises an error that explains: files contain no pickled metadata",
                "accessAttributes": "raises an error that explains: custom ops get their attributes as keyword "
                "arguments",
            },
            absent={
                "_poptorch_data": "private; files have another format",
                "attributes_lists": "an artefact of PopTorch's package layout",
            },
        ),
    ),
    Table(
        title="Errors",
        rows=rows(
            works="Error Error.type Error.message Error.location RecoverableError UnrecoverableError "
            "options.ConfigFileError",
            noted={"RecoverableError.recovery_action": "IPU_RESET, LINK_RESET, PARTITION_RESET or FULL_RESET."},
        ),
    ),
    Table(
        title="Parsers and substitutions",
        rows=rows(
            works="ICustomArgParser.yieldTensors ICustomArgParser.reconstruct "
            "_OverwriteContextManager.registerSubsitutionManager"
        ),
    ),
    Table(
        title="Importing and logging",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Lines of the logger `poptorch::python` read `[HH:MM:SS.mmm] [poptorch::python] [warning] text`": "",
                "Levels TRACE, DEBUG, INFO, WARN, ERR, OFF, TRACE_ALL, DEBUG_IR and 0, 1, 2, 3, 4, 6": "",
                "Compile hooks run around each capture, the later ones even if it failed": "",
                "The parser of the exact type is taken first, then that of a base class": "",
            },
            differs={
                "Factory functions without `device=` are forced onto the device with a warning": "they are captured "
                "on the device without it",
                "Importing registers the parsers of `poptorch_geometric`": "importing `poptorch_geometric` or calling "
                "`registerGeometricCustomArgParsers()` registers them, because PyTorch Geometric takes seconds to "
                "import",
            },
            absent={
                "Importing sets RDMAV_FORK_SAFE, enables `faulthandler`, takes SIGTERM, replaces `sys.excepthook` "
                "and changes how "
                "torch prints tensors": "a library should not change the process",
            },
        ),
    ),
)
