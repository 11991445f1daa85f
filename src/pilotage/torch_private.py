"""Every private name of torch that Pilotage uses, checked when torch is first used.

A name of torch is private if a part of its path starts with one underscore (``torch._ops.OpOverload``,
``Tensor._backward_hooks``, ``torch.ops.aten._to_copy``) or is in ``torch.fx.experimental``, which has no
documentation. torch may rename or remove such names in any release, so all other modules take them from here, and a
test looks for those that do not. Names of operators as text, in tables of what a stored program may call, are data:
an entry for an operator that torch does not have has no effect.

Importing this module imports torch and binds the names, so that using them costs nothing more than before. Names whose
import takes seconds (Inductor, Dynamo) are looked up when they are first imported from here; import those inside of the
function that needs them. A missing name raises `TorchVersionError`, which names this torch and the versions that work.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter, methodcaller
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from torch.distributions import Distribution

from pilotage.errors import TorchVersionError
from pilotage.version import TORCH_RANGE

if TYPE_CHECKING:
    import torch._dynamo.config
    import torch._inductor.codecache
    import torch._inductor.config
    import torch._inductor.cpu_vec_isa
    import torch._inductor.ir
    import torch._inductor.virtualized
    from torch._dynamo.backends.common import aot_autograd as aot_autograd
    from torch._dynamo.compiled_autograd import _enable as _enable_compiled_autograd
    from torch._inductor import lowering as lowering
    from torch._inductor.compile_fx import compile_fx as compile_fx
    from torch._inductor.compile_fx import compile_fx_inner as compile_fx_inner
    from torch._inductor.decomposition import decompositions as decompositions
    from torch._inductor.decomposition import select_decomp_table as select_decomp_table
    from torch._inductor.runtime.cache_dir_utils import triton_cache_dir as triton_cache_dir
    from torch.utils._sympy.functions import FloorDiv as FloorDiv

    AsyncCompile: Any
    compiled_autograd = _enable_compiled_autograd
    CppPythonBindingsCodeCache: Any
    dynamo_config = torch._dynamo.config
    cpu_vec_isa = torch._inductor.cpu_vec_isa
    inductor_codecache = torch._inductor.codecache
    inductor_config = torch._inductor.config
    inductor_ir = torch._inductor.ir
    inductor_ops = torch._inductor.virtualized.ops
    InductorV = torch._inductor.virtualized.V
    make_boxed_func: Any
    max_pool_offsets_to_indices: Any
    launch_static_kernel: Any
    load_static_kernel: Any

LAZY = {
    "aot_autograd": "torch._dynamo.backends.common.aot_autograd",
    "AsyncCompile": "torch._inductor.async_compile.AsyncCompile",
    "compile_fx": "torch._inductor.compile_fx.compile_fx",
    "compiled_autograd": "torch._dynamo.compiled_autograd._enable",
    "compile_fx_inner": "torch._inductor.compile_fx.compile_fx_inner",
    "CppPythonBindingsCodeCache": "torch._inductor.codecache.CppPythonBindingsCodeCache",
    "cpu_vec_isa": "torch._inductor.cpu_vec_isa",
    "decompositions": "torch._inductor.decomposition.decompositions",
    "dynamo_config": "torch._dynamo.config",
    "inductor_codecache": "torch._inductor.codecache",
    "inductor_config": "torch._inductor.config",
    "inductor_ir": "torch._inductor.ir",
    "inductor_ops": "torch._inductor.virtualized.ops",
    "InductorV": "torch._inductor.virtualized.V",
    "FloorDiv": "torch.utils._sympy.functions.FloorDiv",
    "lowering": "torch._inductor.lowering",
    "make_boxed_func": "torch._functorch.aot_autograd.make_boxed_func",
    "max_pool_offsets_to_indices": "torch.ops.prims._low_memory_max_pool_offsets_to_indices.default",
    "select_decomp_table": "torch._inductor.decomposition.select_decomp_table",
    "launch_static_kernel": "torch._C._StaticCudaLauncher._launch_kernel",
    "load_static_kernel": "torch._C._StaticCudaLauncher._load_kernel",
    "triton_cache_dir": "torch._inductor.runtime.cache_dir_utils.triton_cache_dir",
}
"""Names that are looked up when they are first used, because they take seconds to import or are not in every build."""

ONLY_WITH_CUDA = frozenset({"launch_static_kernel", "load_static_kernel"})
"""Names that builds of torch without CUDA do not have."""


# Names of attributes that are set, or that some objects do not have.
CUDA_LAZY_INIT = "_lazy_init"
HEADER_DIRECTORIES = ("_HEADER_DIR", "_HEADER_LOCK_DIR")
IS_STATIC_LAUNCHER = "_is_static"
LOADER_ITERATOR = "_iterator"
MODULE_CACHES = frozenset({"_flat_weights", "_is_full_backward_hook"})
OPTIMIZER_WAS_CALLED = "_opt_called"
PARAMETER_MARK = "_is_param"
SAVED_ALPHA = "_saved_alpha"
STEP_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
SCHEMA = "_schema"

HAS_NCCL = hasattr(torch._C, "_nccl_reduce")


@contextmanager
def _checked() -> Iterator[None]:
    try:
        yield
    except (AttributeError, ImportError) as error:
        raise TorchVersionError(
            f"torch {torch.__version__} lacks something that Pilotage uses ({error}). "
            f"Pilotage works with {TORCH_RANGE}: install one of these versions."
        ) from error


def __getattr__(name: str) -> Any:
    """Look up a name that takes long to import."""
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _checked():
        if LAZY[name].startswith("torch.ops.prims."):
            # Importing this module registers Inductor's own operators.
            importlib.import_module("torch._inductor.inductor_prims")
        found = globals()[name] = pkgutil.resolve_name(LAZY[name])
    return found


def check_all() -> None:
    """Look up every name, also those that are slow to import; raises `TorchVersionError` if one is missing."""
    for name in LAZY.keys() - (ONLY_WITH_CUDA if torch.version.cuda is None else frozenset()):
        getattr(sys.modules[__name__], name)


def _require(owner: Any, *names: str) -> None:
    for name in names:
        getattr(owner, name)


with _checked():
    import torch.fx._lazy_graph_module
    import torch.utils._device
    import torch.utils._python_dispatch
    from torch import _TorchCompileInductorWrapper
    from torch._guards import detect_fake_mode as detect_fake_mode
    from torch._library.custom_ops import CustomOpDef
    from torch._ops import OpOverload as OpOverload
    from torch._ops import OpOverloadPacket as OpOverloadPacket
    from torch._subclasses.fake_tensor import DataDependentOutputException as DataDependentOutputException
    from torch._subclasses.fake_tensor import DynamicOutputShapeException as DynamicOutputShapeException
    from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
    from torch._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
    from torch._subclasses.fake_tensor import UnsupportedOperatorException as UnsupportedOperatorException
    from torch.fx.experimental.proxy_tensor import get_proxy_mode as get_proxy_mode
    from torch.fx.experimental.proxy_tensor import get_proxy_slot as get_proxy_slot
    from torch.fx.experimental.proxy_tensor import make_fx as make_fx
    from torch.utils._device import DeviceContext as DeviceContext
    from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode
    from torch.utils._pytree import tree_flatten as tree_flatten
    from torch.utils._pytree import tree_leaves as tree_leaves
    from torch.utils._pytree import tree_map as tree_map
    from torch.utils._pytree import tree_map_only as tree_map_only
    from torch.utils._pytree import tree_unflatten as tree_unflatten
    from torch.utils.data._utils.collate import collate_tensor_fn as collate_tensor_fn
    from torch.utils.data._utils.collate import default_collate_fn_map as default_collate_fn_map
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

    AnyBatchNorm = torch.nn.modules.batchnorm._BatchNorm
    AnyDropout = torch.nn.modules.dropout._DropoutNd
    custom_operators: Mapping[str, CustomOpDef] = torch._library.custom_ops.OPDEFS
    device_constructors = torch.utils._device._device_constructors
    disable_current_modes = torch.utils._python_dispatch._disable_current_modes
    get_default_group = torch.distributed.distributed_c10d._get_default_group
    get_default_store = torch.distributed.distributed_c10d._get_default_store
    InductorWrapper: Any = _TorchCompileInductorWrapper
    register_device_module: Callable[[str, Any], None] = torch._register_device_module
    # Not an attribute of torch.optim, where the name is deleted.
    _optimizers: Any = importlib.import_module("torch.optim.optimizer")
    _require(_optimizers, "_get_foreach_kernels_supported_devices")
    _require(torch.compiler, "_is_compiling_flag")
    scoped_library = torch.library._scoped_library
    META_KERNEL_LOG = torch._subclasses.fake_tensor.log
    use_lazy_graph_module = torch.fx._lazy_graph_module._use_lazy_graph_module

    # Functions of the C++ core.
    DisableTorchFunctionSubclass = torch._C.DisableTorchFunctionSubclass
    assert_size_stride: Any = torch._C._dynamo.guards.assert_size_stride
    current_autograd_node = torch._C._current_autograd_node
    dispatch_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    is_profiler_enabled = torch._C._autograd._profiler_enabled
    next_sequence_number = torch._C._autograd._get_sequence_nr
    sleep_on_card: Callable[[int], None] = torch.cuda._sleep
    storage_use_count = torch._C._storage_Use_Count
    tensor_data_pointer: Any = torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr  # type: ignore[attr-defined]

    # Operations on lists of tensors, and others without a public name.
    flatten_dense_tensors: Callable[[list[torch.Tensor]], torch.Tensor] = torch._C._nn.flatten_dense_tensors
    foreach_add = torch._foreach_add
    foreach_add_ = torch._foreach_add_
    foreach_addcdiv_ = torch._foreach_addcdiv_
    foreach_addcmul = torch._foreach_addcmul
    foreach_addcmul_ = torch._foreach_addcmul_
    foreach_copy_ = torch._foreach_copy_
    foreach_div = torch._foreach_div
    foreach_div_ = torch._foreach_div_
    foreach_lerp_ = torch._foreach_lerp_
    foreach_maximum_ = torch._foreach_maximum_
    foreach_mul = torch._foreach_mul
    foreach_mul_ = torch._foreach_mul_
    foreach_neg = torch._foreach_neg
    foreach_norm = torch._foreach_norm
    foreach_sqrt = torch._foreach_sqrt
    foreach_sqrt_ = torch._foreach_sqrt_
    foreach_zero_ = torch._foreach_zero_
    is_all_true = torch._is_all_true

    # Operators in graphs.
    ASSERT_ASYNC = torch.ops.aten._assert_async.msg
    BATCH_NORM = torch.ops.aten._native_batch_norm_legit.default
    BATCH_NORM_FUNCTIONAL = torch.ops.aten._native_batch_norm_legit_functional.default
    BATCH_NORM_WITHOUT_STATISTICS = torch.ops.aten._native_batch_norm_legit.no_stats
    CDIST_FORWARD = torch.ops.aten._cdist_forward.default
    FOREACH_ADD_LISTS_ = torch.ops.aten._foreach_add_.List
    FOREACH_ADD_NUMBER = torch.ops.aten._foreach_add.Scalar
    FOREACH_ADDCDIV = torch.ops.aten._foreach_addcdiv.Scalar
    FOREACH_ADDCMUL = torch.ops.aten._foreach_addcmul.Scalar
    FOREACH_COPY = torch.ops.aten._foreach_copy.default
    FOREACH_ZERO = torch.ops.aten._foreach_zero.default
    FOREACH_ZERO_ = torch.ops.aten._foreach_zero_.default
    LOCAL_SCALAR = torch.ops.aten._local_scalar_dense.default
    EFFICIENT_ATTENTION = torch.ops.aten._scaled_dot_product_efficient_attention
    FLASH_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention
    MODULE_APPLY = torch.nn.Module._apply
    TO_COPY = torch.ops.aten._to_copy.default
    UNSAFE_VIEW = torch.ops.aten._unsafe_view.default

    # Attributes of torch's objects. A getter in C costs as much as the attribute itself.
    _require(torch.ops.aten.add.Tensor, "_schema", "_op", "_opname", "_overloadname")
    schema_of: Callable[[Any], torch._C.FunctionSchema] = attrgetter("_schema")
    kernel_of: Callable[[OpOverload[..., Any]], Callable[..., Any]] = attrgetter("_op")
    operator_name: Callable[[OpOverload[..., Any]], str] = attrgetter("_opname")
    overload_name: Callable[[OpOverload[..., Any]], str] = attrgetter("_overloadname")
    _require(SimpleNamespace(**dict.fromkeys(CustomOpDef.__init__.__code__.co_names)), "_init_fn")
    definition_of: Callable[[CustomOpDef], Callable[..., Any]] = attrgetter("_init_fn")
    """The Python function that a custom operator was made from."""

    # These are read where they are needed, by the names that torch's own documentation uses.
    _require(torch.Tensor, "_base", "_version")
    _require(torch.nn.Module(), "_buffers", "_modules", "_parameters")

    _require(torch.UntypedStorage, "_cdata")
    storage_address: Callable[[torch.UntypedStorage], int] = attrgetter("_cdata")

    _require(torch.Tensor, "_backward_hooks", "_post_accumulate_grad_hooks")
    backward_hooks: Callable[[torch.Tensor], Any] = attrgetter("_backward_hooks")
    post_accumulate_grad_hooks: Callable[[torch.Tensor], Any] = attrgetter("_post_accumulate_grad_hooks")

    _require(torch.nn.Module(), "_forward_pre_hooks", "_get_name")
    forward_pre_hooks: Callable[[torch.nn.Module], dict[int, Any]] = attrgetter("_forward_pre_hooks")
    class_name: Callable[[torch.nn.Module], str] = methodcaller("_get_name")

    # To make an optimizer takes seconds: it imports Dynamo.
    _require(SimpleNamespace(**torch.optim.Optimizer.__annotations__), *STEP_HOOKS)
    step_pre_hooks: Callable[[torch.optim.Optimizer], dict[int, Any]] = attrgetter(STEP_HOOKS[0])
    step_post_hooks: Callable[[torch.optim.Optimizer], dict[int, Any]] = attrgetter(STEP_HOOKS[1])

    _require(AnyBatchNorm, "_check_input_dim")
    input_check: Callable[[AnyBatchNorm], Callable[[torch.Tensor], None]] = attrgetter("_check_input_dim")

    _require(Distribution, "_validate_args")
    validates_arguments: Callable[[type[Distribution]], bool] = attrgetter("_validate_args")

    _require(torch.distributed.ProcessGroup, "_device_types")
    device_types: Callable[[torch.distributed.ProcessGroup], list[torch.device]] = attrgetter("_device_types")

    _require(torch.autograd.graph.Node, "_input_metadata")
    results_of_node: Callable[[torch.autograd.graph.Node], Any] = attrgetter("_input_metadata")
    """What is known of the results of the operation whose gradient a node computes."""

    sequence_number: Callable[[Any], int] = methodcaller("_sequence_nr")
    """The number of a node of autograd."""

    _require(_MultiProcessingDataLoaderIter, "_shutdown_workers")
    shut_down_workers: Callable[[Any], None] = methodcaller("_shutdown_workers")
    """Ends the worker processes of a loader's iterator."""


def process_lists_on(device: str) -> None:
    """Let optimizers process lists of tensors at once on a device, as they do by default on CUDA."""
    known = _optimizers._get_foreach_kernels_supported_devices()
    _optimizers._get_foreach_kernels_supported_devices = lambda: [*known, device]


@contextmanager
def as_if_compiling() -> Iterator[None]:
    """Make torch's optimizers run as in torch.compile: with tensors instead of numbers."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


def bare_step(kind: type[torch.optim.Optimizer]) -> Callable[..., Any]:
    """The step() of an optimizer's class, without what torch puts around it: hooks, profiling and gradient modes."""
    step: Callable[..., Any] = kind.step
    below: Callable[..., Any] = step
    if step.__module__.startswith("torch.optim"):
        below = inspect.unwrap(step)
    elif getattr(step, "hooked", False):
        below = getattr(step, "__wrapped__", step)
    return below
