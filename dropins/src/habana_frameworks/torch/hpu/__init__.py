"""The module ``torch.hpu`` of the emulated device: one card, for which another device computes."""

from __future__ import annotations

import sys
import warnings as warnings

import torch as torch

from habana_frameworks._emulation import computing_device
from habana_frameworks._emulation.device import activate
from habana_frameworks.torch.hpu import events as events
from habana_frameworks.torch.hpu import graphs as graphs
from habana_frameworks.torch.hpu import memory as memory
from habana_frameworks.torch.hpu import metrics as metrics
from habana_frameworks.torch.hpu import random as random
from habana_frameworks.torch.hpu import streams as streams
from habana_frameworks.torch.hpu.attention import sdp_kernel as sdp_kernel
from habana_frameworks.torch.hpu.autocast import get_amp_supported_dtype as get_amp_supported_dtype
from habana_frameworks.torch.hpu.autocast import get_autocast_hpu_dtype as get_autocast_hpu_dtype
from habana_frameworks.torch.hpu.autocast import is_autocast_hpu_enabled as is_autocast_hpu_enabled
from habana_frameworks.torch.hpu.autocast import set_autocast_hpu_dtype as set_autocast_hpu_dtype
from habana_frameworks.torch.hpu.autocast import set_autocast_hpu_enabled as set_autocast_hpu_enabled
from habana_frameworks.torch.hpu.device_argument import Device as Device
from habana_frameworks.torch.hpu.device_argument import check_device as check_device
from habana_frameworks.torch.hpu.devices import HABANA_VISIBLE_MODULES_VAR as HABANA_VISIBLE_MODULES_VAR
from habana_frameworks.torch.hpu.devices import HLS_MODULE_ID_VAR as HLS_MODULE_ID_VAR
from habana_frameworks.torch.hpu.devices import can_device_access_peer as can_device_access_peer
from habana_frameworks.torch.hpu.devices import current_device as current_device
from habana_frameworks.torch.hpu.devices import device as device
from habana_frameworks.torch.hpu.devices import device_count as device_count
from habana_frameworks.torch.hpu.devices import device_of as device_of
from habana_frameworks.torch.hpu.devices import get_arch_list as get_arch_list
from habana_frameworks.torch.hpu.devices import get_device_capability as get_device_capability
from habana_frameworks.torch.hpu.devices import get_device_name as get_device_name
from habana_frameworks.torch.hpu.devices import get_device_properties as get_device_properties
from habana_frameworks.torch.hpu.devices import get_gencode_flags as get_gencode_flags
from habana_frameworks.torch.hpu.devices import init as init
from habana_frameworks.torch.hpu.devices import is_available as is_available
from habana_frameworks.torch.hpu.devices import is_bf16_supported as is_bf16_supported
from habana_frameworks.torch.hpu.devices import is_initialized as is_initialized
from habana_frameworks.torch.hpu.devices import set_device as set_device
from habana_frameworks.torch.hpu.devices import synchronize as synchronize
from habana_frameworks.torch.hpu.graphs import CachedParams as CachedParams
from habana_frameworks.torch.hpu.graphs import GraphModel as GraphModel
from habana_frameworks.torch.hpu.graphs import HPUGraph as HPUGraph
from habana_frameworks.torch.hpu.graphs import ModuleCacher as ModuleCacher
from habana_frameworks.torch.hpu.graphs import copy_to as copy_to
from habana_frameworks.torch.hpu.graphs import graph as graph
from habana_frameworks.torch.hpu.graphs import input_hash as input_hash
from habana_frameworks.torch.hpu.graphs import is_current_stream_capturing as is_current_stream_capturing
from habana_frameworks.torch.hpu.graphs import make_graphed_callables as make_graphed_callables
from habana_frameworks.torch.hpu.graphs import wrap_in_hpu_graph as wrap_in_hpu_graph
from habana_frameworks.torch.hpu.graphs import wrap_in_hpu_graph_func as wrap_in_hpu_graph_func
from habana_frameworks.torch.hpu.memory import empty_cache as empty_cache
from habana_frameworks.torch.hpu.memory import max_memory_allocated as max_memory_allocated
from habana_frameworks.torch.hpu.memory import max_memory_cached as max_memory_cached
from habana_frameworks.torch.hpu.memory import max_memory_reserved as max_memory_reserved
from habana_frameworks.torch.hpu.memory import mem_get_info as mem_get_info
from habana_frameworks.torch.hpu.memory import memory_allocated as memory_allocated
from habana_frameworks.torch.hpu.memory import memory_cached as memory_cached
from habana_frameworks.torch.hpu.memory import memory_reserved as memory_reserved
from habana_frameworks.torch.hpu.memory import memory_stats as memory_stats
from habana_frameworks.torch.hpu.memory import memory_summary as memory_summary
from habana_frameworks.torch.hpu.memory import memory_usage as memory_usage
from habana_frameworks.torch.hpu.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from habana_frameworks.torch.hpu.memory import reset_max_memory_allocated as reset_max_memory_allocated
from habana_frameworks.torch.hpu.memory import reset_peak_memory_stats as reset_peak_memory_stats
from habana_frameworks.torch.hpu.memory import utilization as utilization
from habana_frameworks.torch.hpu.metrics import InvalidMetricDumpFileFormat as InvalidMetricDumpFileFormat
from habana_frameworks.torch.hpu.metrics import InvalidMetricDumpTrigger as InvalidMetricDumpTrigger
from habana_frameworks.torch.hpu.metrics import MetricDumpFormat as MetricDumpFormat
from habana_frameworks.torch.hpu.metrics import MetricNotFound as MetricNotFound
from habana_frameworks.torch.hpu.metrics import metric_global as metric_global
from habana_frameworks.torch.hpu.metrics import metric_localcontext as metric_localcontext
from habana_frameworks.torch.hpu.metrics import metrics_dump as metrics_dump
from habana_frameworks.torch.hpu.random import get_rng_state as get_rng_state
from habana_frameworks.torch.hpu.random import get_rng_state_all as get_rng_state_all
from habana_frameworks.torch.hpu.random import initial_seed as initial_seed
from habana_frameworks.torch.hpu.random import manual_seed as manual_seed
from habana_frameworks.torch.hpu.random import manual_seed_all as manual_seed_all
from habana_frameworks.torch.hpu.random import seed as seed
from habana_frameworks.torch.hpu.random import seed_all as seed_all
from habana_frameworks.torch.hpu.random import set_rng_state as set_rng_state
from habana_frameworks.torch.hpu.random import set_rng_state_all as set_rng_state_all
from habana_frameworks.torch.hpu.streams import Event as Event
from habana_frameworks.torch.hpu.streams import Stream as Stream
from habana_frameworks.torch.hpu.streams import StreamContext as StreamContext
from habana_frameworks.torch.hpu.streams import current_stream as current_stream
from habana_frameworks.torch.hpu.streams import default_stream as default_stream
from habana_frameworks.torch.hpu.streams import get_stream_info as get_stream_info
from habana_frameworks.torch.hpu.streams import record_stream as record_stream
from habana_frameworks.torch.hpu.streams import set_stream as set_stream
from habana_frameworks.torch.hpu.streams import stream as stream
from habana_frameworks.torch.hpu.switches import (
    disable_const_section_serialization as disable_const_section_serialization,
)
from habana_frameworks.torch.hpu.switches import disable_dynamic_shape as disable_dynamic_shape
from habana_frameworks.torch.hpu.switches import disable_inference_mode as disable_inference_mode
from habana_frameworks.torch.hpu.switches import disable_matmul3d_2d_reshape as disable_matmul3d_2d_reshape
from habana_frameworks.torch.hpu.switches import disable_optim_output_sif as disable_optim_output_sif
from habana_frameworks.torch.hpu.switches import disable_quantization as disable_quantization
from habana_frameworks.torch.hpu.switches import (
    enable_const_section_serialization as enable_const_section_serialization,
)
from habana_frameworks.torch.hpu.switches import enable_dynamic_shape as enable_dynamic_shape
from habana_frameworks.torch.hpu.switches import enable_inference_mode as enable_inference_mode
from habana_frameworks.torch.hpu.switches import enable_matmul3d_2d_reshape as enable_matmul3d_2d_reshape
from habana_frameworks.torch.hpu.switches import enable_optim_output_sif as enable_optim_output_sif
from habana_frameworks.torch.hpu.switches import enable_quantization as enable_quantization
from habana_frameworks.torch.hpu.switches import enable_recompute_sdp as enable_recompute_sdp
from habana_frameworks.torch.hpu.switches import get_dynamic_shape_status as get_dynamic_shape_status
from habana_frameworks.torch.hpu.switches import get_sync_debug_mode as get_sync_debug_mode
from habana_frameworks.torch.hpu.switches import getDeterministic as getDeterministic
from habana_frameworks.torch.hpu.switches import recompute_sdp_enabled as recompute_sdp_enabled
from habana_frameworks.torch.hpu.switches import set_sync_debug_mode as set_sync_debug_mode
from habana_frameworks.torch.hpu.switches import setDeterministic as setDeterministic
from habana_frameworks.torch.hpu.tensors import BFloat16Tensor as BFloat16Tensor
from habana_frameworks.torch.hpu.tensors import BoolTensor as BoolTensor
from habana_frameworks.torch.hpu.tensors import ByteTensor as ByteTensor
from habana_frameworks.torch.hpu.tensors import CharTensor as CharTensor
from habana_frameworks.torch.hpu.tensors import DoubleTensor as DoubleTensor
from habana_frameworks.torch.hpu.tensors import FloatTensor as FloatTensor
from habana_frameworks.torch.hpu.tensors import HalfTensor as HalfTensor
from habana_frameworks.torch.hpu.tensors import IntTensor as IntTensor
from habana_frameworks.torch.hpu.tensors import LongTensor as LongTensor
from habana_frameworks.torch.hpu.tensors import ShortTensor as ShortTensor


def __getattr__(name: str) -> object:
    # Created late: CUDA's generators exist only after its initialisation.
    if name == "default_generators":
        return (computing_device.generator(),)
    # The vendor's module contains itself and the bridge under these names.
    if name == "hpu":
        return sys.modules[__name__]
    if name == "htorch":
        return sys.modules["habana_frameworks.torch"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _lazy_init() -> None:
    """Torch calls this before it uses a device."""
    init()


def _is_in_bad_fork() -> bool:
    return False


activate(sys.modules[__name__])
metrics.dump_when_asked()
