"""What PopTorch does not allow for the buffers of a model."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from pilotage.engine import AnyBatchNorm, Program, StaleTensor, findings_of
from poptorch._errors import createPoptorchError
from poptorch.options import Options

__all__ = ["check_broadcast", "check_buffer_names", "check_buffer_types", "check_program"]


def check_program(module: nn.Module, program: Program) -> None:
    """Refuse a forward that assigns other tensors to its buffers; in the eager tier, once it has run."""
    found_in_runs = (name for findings in findings_of(program) for name in findings.reassigned_buffers)
    for name in {*program.reassigned_buffers, *found_in_runs}:
        owner, _, own_name = name.rpartition(".")
        if not isinstance(module.get_submodule(owner), AnyBatchNorm):
            raise createPoptorchError(
                f"Buffer {name} is reassigned within the model when calling the forward method. This is not supported. "
                f"Consider using self.{own_name}.copy_(src) to copy data from a source tensor, where src is the name "
                "of the "
                "source tensor."
            )


def check_broadcast(options: Options, written: Sequence[str]) -> None:
    """Refuse a forward that writes to state if replicas of this process that read different data share it.

    Other instances do not count: PopTorch lets each keep its own buffers.
    """
    if written and options.broadcast_buffers and options.input_group_size < options.replication_factor:
        raise createPoptorchError(
            "PopTorch does not support broadcasting buffers. If your model is able to tolerate buffers becoming out of "
            "sync between replicas, you can disable buffer broadcasting using "
            f"poptorch.Options.broadcastBuffers(False). forward writes to {', '.join(written)}."
        )


def check_buffer_types(module: nn.Module) -> None:
    """Refuse buffers that are instances of a tensor subclass, which a device cannot keep."""
    for name, buffer in module.named_buffers():
        if type(buffer) not in (Tensor, StaleTensor):
            raise createPoptorchError(
                f"All buffers must be an instance of torch.Tensor: {name} is a {type(buffer).__name__}. Register a "
                "plain "
                "tensor, or a parameter."
            )


def check_buffer_names(module: nn.Module, names: Sequence[str]) -> None:
    """Refuse names of updatable buffers that the module does not have."""
    known = {name for name, _ in module.named_buffers()}
    for name in names:
        if name not in known:
            raise createPoptorchError(
                f"updatableNamedBuffers names the buffer {name!r}, which the model does not have. "
                f"Its buffers are: {', '.join(sorted(known)) or 'none'}."
            )
