"""Horovod's collectives on the host, over the instances that poprun, torchrun, mpirun or srun started.

They serve what PopTorch programs use Horovod for: ranks, and reducing losses and accuracies. Gradients of a wrapped
model are exchanged inside its program, so `DistributedOptimizer` raises, and so does everything else that needs
Horovod itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from horovod.reducing import Average, Compression, Max, Min, Product, Reduction, Sum, reduced
from horovod.world import (
    cross_rank,
    cross_size,
    init,
    instances,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    peers,
    rank,
    shutdown,
    size,
    unsupported,
)

__all__ = [
    "Average",
    "Compression",
    "Max",
    "Min",
    "Product",
    "Sum",
    "allgather",
    "allgather_async",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "allreduce_async",
    "allreduce_async_",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "cross_rank",
    "cross_size",
    "gloo_built",
    "gloo_enabled",
    "grouped_allreduce",
    "grouped_allreduce_",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "poll",
    "rank",
    "shutdown",
    "size",
    "synchronize",
]


def allreduce(
    tensor: Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Compression = Compression.none,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Tensor:
    """The average of the tensors of all instances, or their sum, minimum, maximum or product.

    An average and a sum pass gradients.
    """
    chosen = Reduction.of(average, op)
    return reduced(tensor, chosen, compression, prescale_factor, postscale_factor)


def allreduce_(tensor: Tensor, average: bool | None = None, name: str | None = None, **settings: Any) -> Tensor:
    """The same as `allreduce`, written into the tensor."""
    with torch.no_grad():
        return tensor.copy_(allreduce(tensor, average, name, **settings))


def grouped_allreduce(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None, **settings: Any
) -> list[Tensor]:
    """`allreduce` of each tensor."""
    return [allreduce(tensor, average, name, **settings) for tensor in tensors]


def grouped_allreduce_(
    tensors: Sequence[Tensor], average: bool | None = None, name: str | None = None, **settings: Any
) -> list[Tensor]:
    """`allreduce_` of each tensor."""
    return [allreduce_(tensor, average, name, **settings) for tensor in tensors]


def allgather(tensor: Tensor, name: str | None = None) -> Tensor:
    """The tensors of all instances one after the other; only their first dimensions may differ."""
    _refuse_gradients(tensor, "allgather")
    if size() == 1:
        return tensor.clone()
    return torch.cat(peers().gather(tensor.detach().cpu())).to(tensor.device)


def allgather_object(obj: Any, session: object = None, name: str | None = None) -> list[Any]:
    """The values of all instances: numbers, strings, containers, arrays and tensors."""
    return [obj] if size() == 1 else peers().gather(obj)


def broadcast(tensor: Tensor, root_rank: int, name: str | None = None) -> Tensor:
    """The tensor of one instance, in all of them."""
    _refuse_gradients(tensor, "broadcast")
    return broadcast_(tensor.detach().clone(), root_rank, name)


def broadcast_(tensor: Tensor, root_rank: int, name: str | None = None) -> Tensor:
    """Overwrite a tensor with that of one instance."""
    _check_root(root_rank)
    if size() > 1:
        received = tensor.detach().to("cpu", copy=True).contiguous()
        peers().broadcast([received], root_rank)
        with torch.no_grad():
            tensor.copy_(received)
    return tensor


def broadcast_object(obj: Any = None, root_rank: int = 0, name: str | None = None) -> Any:
    """The value of one instance, in all of them; it takes the same types as `allgather_object`."""
    _check_root(root_rank)
    return allgather_object(obj if rank() == root_rank else None)[root_rank]


def broadcast_parameters(params: Mapping[str, Any] | Iterable[tuple[str, Any]], root_rank: int) -> None:
    """Overwrite parameters with those of one instance: a state dictionary, or names and tensors."""
    named = params.items() if isinstance(params, Mapping) else params
    for _, tensor in sorted(named, key=lambda pair: pair[0]):
        if isinstance(tensor, Tensor):
            broadcast_(tensor, root_rank)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, model: object = None) -> None:
    """Give every instance the state of one instance's optimizer."""
    optimizer.load_state_dict(broadcast_object(optimizer.state_dict(), root_rank))


def barrier() -> None:
    """Wait until all instances have called this."""
    allgather_object(None)


def allreduce_async(tensor: Tensor, average: bool | None = None, name: str | None = None, **settings: Any) -> Tensor:
    """`allreduce`; the result is its own handle, because it is ready when this returns."""
    return allreduce(tensor, average, name, **settings)


def allreduce_async_(tensor: Tensor, average: bool | None = None, name: str | None = None, **settings: Any) -> Tensor:
    """`allreduce_`; the result is its own handle."""
    return allreduce_(tensor, average, name, **settings)


def allgather_async(tensor: Tensor, name: str | None = None) -> Tensor:
    """`allgather`; the result is its own handle."""
    return allgather(tensor, name)


def poll(handle: Tensor) -> bool:
    """Whether an asynchronous operation is done: always."""
    return True


def synchronize(handle: Tensor) -> Tensor:
    """The result of an asynchronous operation."""
    return handle


def join(device: int = -1) -> NoReturn:
    """Raise: instances that have run out of data cannot leave the others."""
    unsupported("join()", "every instance must make the same collective calls; poptorch.DataLoader divides data evenly")


def gloo_built() -> bool:
    """Whether gloo can be used: it is what torch.distributed communicates by."""
    return torch.distributed.is_gloo_available()


def gloo_enabled() -> bool:
    """Whether gloo is used."""
    return gloo_built()


def mpi_built(verbose: bool = False) -> bool:
    """False: MPI is not used."""
    return False


def mpi_enabled() -> bool:
    """False: MPI is not used."""
    return False


def mpi_threads_supported() -> bool:
    """False: MPI is not used."""
    return False


def nccl_built(verbose: bool = False) -> int:
    """0: values are reduced on the host."""
    return 0


_MISSING = {
    "Adasum": "use op=hvd.Average",
    "DistributedOptimizer": "a wrapped model exchanges its gradients inside its program; pass the plain optimizer to "
    "poptorch.trainingModel, and set popdist.poptorch.Options",
    "ProcessSet": "use popdist.execute_on_instances for groups of instances",
    "SyncBatchNorm": "each instance keeps its own statistics",
    "add_process_set": "use popdist.execute_on_instances for groups of instances",
    "alltoall": "use hvd.allgather",
    "elastic": "poprun restarts jobs, see its option --max-restarts",
    "reducescatter": "use hvd.allreduce",
    "sparse_allreduce_async": "use hvd.allgather",
}
"""What only Horovod itself can do, and what to use instead."""


def __getattr__(name: str) -> NoReturn:
    if name in _MISSING:
        raise AttributeError(f"hvd.{name} is not available in Pilotage's horovod.torch: {_MISSING[name]}.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse_gradients(tensor: Tensor, operation: str) -> None:
    if tensor.requires_grad and torch.is_grad_enabled():
        unsupported(operation, "it passes no gradients here; give it tensor.detach()")


def _check_root(root_rank: int) -> None:
    if not 0 <= root_rank < instances().world.size:
        raise ValueError(f"root_rank is {root_rank}. It must be between 0 and {instances().world.size - 1}.")
