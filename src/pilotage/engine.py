"""What a drop-in may import of Pilotage, besides the public names of `import pilotage`.

Importing it is cheap: each name is imported from its module when a drop-in first uses it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pilotage.arrival.silence import is_silent as is_silent
    from pilotage.cache.directories import OLD_EMULATION_FILES as OLD_EMULATION_FILES
    from pilotage.cache.limits import Limits as Limits
    from pilotage.cache.limits import tidy as tidy
    from pilotage.cache.sealed import SealedFolder as SealedFolder
    from pilotage.cache.sealed import seal as seal
    from pilotage.cache.store import Store as Store
    from pilotage.cache.store import name_of as name_of
    from pilotage.capture.attributes import AttributeWatch as AttributeWatch
    from pilotage.capture.loss.dropped_work import DroppedWork as DroppedWork
    from pilotage.capture.loss.search import mark_loss as mark_loss
    from pilotage.capture.model import findings_of as findings_of
    from pilotage.capture.model import forward_is_running as forward_is_running
    from pilotage.data.loader import Loader as Loader
    from pilotage.data.loader import combined_batch_size as combined_batch_size
    from pilotage.data.partition import Shard as Shard
    from pilotage.data.prefetcher import Prefetcher as Prefetcher
    from pilotage.data.sharing_mode import SharingMode as SharingMode
    from pilotage.distributed.environments import poprun as poprun
    from pilotage.distributed.environments import variables as variables
    from pilotage.distributed.environments import world_here as world_here
    from pilotage.distributed.peers import Peers as Peers
    from pilotage.distributed.peers import leave as leave
    from pilotage.distributed.peers import peers_as as peers_as
    from pilotage.distributed.pipeline_group import pipeline_group_here as pipeline_group_here
    from pilotage.distributed.shutdown import wait_at_exit as wait_at_exit
    from pilotage.distributed.world import World as World
    from pilotage.errors import BatchDimensionError as BatchDimensionError
    from pilotage.errors import DatasetError as DatasetError
    from pilotage.errors import FetchError as FetchError
    from pilotage.errors import FetchStartError as FetchStartError
    from pilotage.errors import OptionError as OptionError
    from pilotage.errors import PilotageError as PilotageError
    from pilotage.errors import ProgramFileError as ProgramFileError
    from pilotage.errors import UnexpectedArgumentError as UnexpectedArgumentError
    from pilotage.events import CompilationProgress as CompilationProgress
    from pilotage.events import Event as Event
    from pilotage.events import Noted as Noted
    from pilotage.events import Warned as Warned
    from pilotage.execution.timing import CallTimes as CallTimes
    from pilotage.interrupts import INTERRUPTS as INTERRUPTS
    from pilotage.logs import log_event as log_event
    from pilotage.logs import logger as logger
    from pilotage.missing_torch import torch_needed_by as torch_needed_by
    from pilotage.optim.adam import AdamRule as AdamRule
    from pilotage.optim.eager import loss_of as loss_of
    from pilotage.optim.eager import update_eagerly as update_eagerly
    from pilotage.optim.families import Refinements as Refinements
    from pilotage.optim.lamb import Lamb as Lamb
    from pilotage.optim.lamb import LambRule as LambRule
    from pilotage.optim.reading import code_around_steps as code_around_steps
    from pilotage.optim.reading import read_group as read_group
    from pilotage.optim.reading import read_optimizer as read_optimizer
    from pilotage.optim.rmsprop import RmspropRule as RmspropRule
    from pilotage.optim.rule import Group as Group
    from pilotage.optim.rule import OptimizerPlan as OptimizerPlan
    from pilotage.optim.settings import Settings as Settings
    from pilotage.optim.settings import rates_of as rates_of
    from pilotage.optim.sgd import SgdRule as SgdRule
    from pilotage.options import environment as environment
    from pilotage.options.batching import Batching as Batching
    from pilotage.options.check import Check as Check
    from pilotage.options.check import OnMismatch as OnMismatch
    from pilotage.options.choices import Accumulation as Accumulation
    from pilotage.options.choices import LossRule as LossRule
    from pilotage.options.choices import NonFiniteLoss as NonFiniteLoss
    from pilotage.options.choices import OutputMode as OutputMode
    from pilotage.options.choices import PipelineOrder as PipelineOrder
    from pilotage.options.choices import Pooling as Pooling
    from pilotage.options.choices import Recomputation as Recomputation
    from pilotage.options.choices import Reduction as Reduction
    from pilotage.options.choices import ReplicaGrouping as ReplicaGrouping
    from pilotage.options.choices import Tier as Tier
    from pilotage.options.execution import Execution as Execution
    from pilotage.options.locations import Locations as Locations
    from pilotage.options.suggestions import did_you_mean as did_you_mean
    from pilotage.passes.anchors import tensor_names as tensor_names
    from pilotage.passes.anchors import unknown_name as unknown_name
    from pilotage.prediction.devices import DeviceModel as DeviceModel
    from pilotage.prediction.devices import device_model as device_model
    from pilotage.prediction.devices import with_tiles as with_tiles
    from pilotage.prediction.document import Report as Report
    from pilotage.prediction.document import write_report as write_report
    from pilotage.prediction.report import page_of as page_of
    from pilotage.prediction.running_programs import predict_program as predict_program
    from pilotage.prediction.screen import lines_of as lines_of
    from pilotage.prediction.screen import show as show
    from pilotage.prediction.trace.modules import naming_modules as naming_modules
    from pilotage.program.graphs import labels as labels
    from pilotage.program.graphs import source_lines as source_lines
    from pilotage.program.graphs.forward_marks import keep_for_backward as keep_for_backward
    from pilotage.program.graphs.origins import enter_stage as enter_stage
    from pilotage.program.graphs.origins import in_scope as in_scope
    from pilotage.program.graphs.origins import scoped_name as scoped_name
    from pilotage.program.graphs.tracebacks import ShortTracebacks as ShortTracebacks
    from pilotage.program.graphs.tracebacks import shorten as shorten
    from pilotage.program.layout import Slot as Slot
    from pilotage.program.program import Program as Program
    from pilotage.program.specification import TensorSpec as TensorSpec
    from pilotage.program.structure import Parsers as Parsers
    from pilotage.program.structure import Structure as Structure
    from pilotage.program.structure import Table as Table
    from pilotage.program.structure import count_tensors as count_tensors
    from pilotage.program.structure import flatten as flatten
    from pilotage.program.structure import split_arguments as split_arguments
    from pilotage.program.structure import unflatten as unflatten
    from pilotage.progress import progress_bar as progress_bar
    from pilotage.runtime import stored as stored
    from pilotage.runtime.call import BoundCall as BoundCall
    from pilotage.runtime.executor import Executor as Executor
    from pilotage.runtime.guards import GuardedModel as GuardedModel
    from pilotage.runtime.host import StaleTensor as StaleTensor
    from pilotage.runtime.host_steps import HostSteps as HostSteps
    from pilotage.runtime.host_steps import is_given_to_a_program as is_given_to_a_program
    from pilotage.runtime.optimizer_state import OptimizerState as OptimizerState
    from pilotage.runtime.stored import StoredModel as StoredModel
    from pilotage.storage import plain_data as plain_data
    from pilotage.storage.archive import write_archive as write_archive
    from pilotage.storage.permission import Permission as Permission
    from pilotage.storage.program_text import program_to_data as program_to_data
    from pilotage.torch_private import CUDA_LAZY_INIT as CUDA_LAZY_INIT
    from pilotage.torch_private import LOCAL_SCALAR as LOCAL_SCALAR
    from pilotage.torch_private import OPTIMIZER_WAS_CALLED as OPTIMIZER_WAS_CALLED
    from pilotage.torch_private import AnyBatchNorm as AnyBatchNorm
    from pilotage.torch_private import DeviceContext as DeviceContext
    from pilotage.torch_private import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
    from pilotage.torch_private import DynamicOutputShapeException as DynamicOutputShapeException
    from pilotage.torch_private import InductorWrapper as InductorWrapper
    from pilotage.torch_private import TorchDispatchMode as TorchDispatchMode
    from pilotage.torch_private import aot_autograd as aot_autograd
    from pilotage.torch_private import class_name as class_name
    from pilotage.torch_private import compiled_autograd as compiled_autograd
    from pilotage.torch_private import detect_fake_mode as detect_fake_mode
    from pilotage.torch_private import device_constructors as device_constructors
    from pilotage.torch_private import disable_current_modes as disable_current_modes
    from pilotage.torch_private import dynamo_config as dynamo_config
    from pilotage.torch_private import forward_pre_hooks as forward_pre_hooks
    from pilotage.torch_private import is_profiler_enabled as is_profiler_enabled
    from pilotage.torch_private import make_boxed_func as make_boxed_func
    from pilotage.torch_private import process_lists_on as process_lists_on
    from pilotage.torch_private import register_device_module as register_device_module
    from pilotage.torch_private import schema_of as schema_of
    from pilotage.torch_private import step_post_hooks as step_post_hooks
    from pilotage.torch_private import step_pre_hooks as step_pre_hooks
    from pilotage.torch_private import storage_address as storage_address
    from pilotage.torch_private import tree_flatten as tree_flatten
    from pilotage.torch_private import tree_leaves as tree_leaves
    from pilotage.torch_private import tree_map_only as tree_map_only
    from pilotage.torch_private import tree_unflatten as tree_unflatten
    from pilotage.torch_private import validates_arguments as validates_arguments
    from pilotage.turns import Turn as Turn

_NAMES = {
    # Running programs
    "pilotage.runtime.call": "BoundCall",
    "pilotage.runtime.executor": "Executor",
    "pilotage.runtime.guards": "GuardedModel",
    "pilotage.runtime.host": "StaleTensor",
    "pilotage.runtime.host_steps": "HostSteps is_given_to_a_program",
    "pilotage.runtime.optimizer_state": "OptimizerState",
    "pilotage.runtime.stored": "StoredModel",
    "pilotage.program.graphs.tracebacks": "ShortTracebacks shorten",
    "pilotage.execution.timing": "CallTimes",
    "pilotage.arrival.silence": "is_silent",
    "pilotage.turns": "Turn",
    "pilotage.interrupts": "INTERRUPTS",
    # Programs
    "pilotage.capture.attributes": "AttributeWatch",
    "pilotage.capture.loss.dropped_work": "DroppedWork",
    "pilotage.capture.loss.search": "mark_loss",
    "pilotage.capture.model": "findings_of forward_is_running",
    "pilotage.passes.anchors": "tensor_names unknown_name",
    "pilotage.program.graphs.forward_marks": "keep_for_backward",
    "pilotage.program.graphs.origins": "enter_stage in_scope scoped_name",
    "pilotage.program.layout": "Slot",
    "pilotage.program.program": "Program",
    "pilotage.program.specification": "TensorSpec",
    "pilotage.program.structure": "Parsers Structure Table count_tensors flatten split_arguments unflatten",
    "pilotage.storage.archive": "write_archive",
    "pilotage.storage.permission": "Permission",
    "pilotage.storage.program_text": "program_to_data",
    # Optimizers
    "pilotage.optim.adam": "AdamRule",
    "pilotage.optim.eager": "loss_of update_eagerly",
    "pilotage.optim.families": "Refinements",
    "pilotage.optim.lamb": "Lamb LambRule",
    "pilotage.optim.reading": "code_around_steps read_group read_optimizer",
    "pilotage.optim.rmsprop": "RmspropRule",
    "pilotage.optim.rule": "Group OptimizerPlan",
    "pilotage.optim.settings": "Settings rates_of",
    "pilotage.optim.sgd": "SgdRule",
    # Options
    "pilotage.options.batching": "Batching",
    "pilotage.options.check": "Check OnMismatch",
    "pilotage.options.choices": "Accumulation LossRule NonFiniteLoss OutputMode PipelineOrder "
    "Pooling Recomputation Reduction ReplicaGrouping Tier",
    "pilotage.options.execution": "Execution",
    "pilotage.options.locations": "Locations",
    "pilotage.options.suggestions": "did_you_mean",
    # Data
    "pilotage.data.loader": "Loader combined_batch_size",
    "pilotage.data.prefetcher": "Prefetcher",
    "pilotage.data.partition": "Shard",
    "pilotage.data.sharing_mode": "SharingMode",
    # Instances
    "pilotage.distributed.environments": "world_here",
    "pilotage.distributed.peers": "Peers leave peers_as",
    "pilotage.distributed.pipeline_group": "pipeline_group_here",
    "pilotage.distributed.shutdown": "wait_at_exit",
    "pilotage.distributed.world": "World",
    # Cache
    "pilotage.cache.limits": "Limits tidy",
    "pilotage.cache.directories": "OLD_EMULATION_FILES",
    "pilotage.cache.sealed": "SealedFolder seal",
    "pilotage.cache.store": "Store name_of",
    # Errors and events
    "pilotage.errors": "BatchDimensionError DatasetError FetchError "
    "FetchStartError OptionError PilotageError ProgramFileError UnexpectedArgumentError",
    "pilotage.events": "CompilationProgress Event Noted Warned",
    "pilotage.logs": "log_event logger",
    "pilotage.missing_torch": "torch_needed_by",
    "pilotage.progress": "progress_bar",
    # Predictions
    "pilotage.prediction.devices": "DeviceModel device_model with_tiles",
    "pilotage.prediction.document": "Report write_report",
    "pilotage.prediction.report": "page_of",
    "pilotage.prediction.running_programs": "predict_program",
    "pilotage.prediction.screen": "lines_of show",
    "pilotage.prediction.trace.modules": "naming_modules",
    # Private names of torch
    "pilotage.torch_private": "AnyBatchNorm CUDA_LAZY_INIT DeviceContext DisableTorchFunctionSubclass "
    "DynamicOutputShapeException InductorWrapper LOCAL_SCALAR OPTIMIZER_WAS_CALLED TorchDispatchMode aot_autograd "
    "class_name compiled_autograd detect_fake_mode device_constructors disable_current_modes dynamo_config "
    "forward_pre_hooks is_profiler_enabled make_boxed_func process_lists_on register_device_module "
    "schema_of step_post_hooks step_pre_hooks storage_address tree_flatten "
    "tree_leaves tree_map_only tree_unflatten validates_arguments",
}
"""The names of each module that a drop-in may import."""

_MODULES = (
    "pilotage.distributed.environments.poprun",
    "pilotage.distributed.environments.variables",
    "pilotage.options.environment",
    "pilotage.program.graphs.labels",
    "pilotage.program.graphs.source_lines",
    "pilotage.runtime.stored",
    "pilotage.storage.plain_data",
)
"""Modules that are offered whole, since their names say too little without them."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

_WHOLE = {module.rpartition(".")[2]: module for module in _MODULES}


if not TYPE_CHECKING:  # A type checker would take any name for one that is offered.

    def __getattr__(name: str) -> Any:
        """Import a name from its module when it is first used."""
        if name in _WHOLE:
            return importlib.import_module(_WHOLE[name])
        if name not in _HOMES:
            raise AttributeError(f"module 'pilotage.engine' has no attribute {name!r}")
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The names that are offered."""
    return sorted({*_HOMES, *_WHOLE})
