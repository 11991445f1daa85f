"""Tensors that are anchored with `Options.anchorTensor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pilotage.engine import Batching, Execution, Executor, Program, labels, pipeline_group_here, unknown_name
from poptorch._errors import createPoptorchError, require
from poptorch._executor.types_on_device import NARROWER_OUTPUTS
from poptorch._observation.tensor_names import UPDATED, label_of, names_in
from poptorch.enums import OutputMode
from poptorch.optim.value_names import to_ipu_param
from poptorch.options import Options
from poptorch.poptorch_core import Error

__all__ = ["Anchors", "chosen"]


@dataclass(frozen=True, slots=True)
class _Anchor:
    """One request: which tensor, and which of its values."""

    long_name: str
    mode: OutputMode
    period: int


class Anchors:
    """Takes the anchored tensors from what a program returns.

    If there are any, the program returns every output, and the output mode is applied here.
    """

    def __init__(self, options: Options, execution: Execution) -> None:
        self._batching = batching = execution.batching
        parted = execution.locations.optimizer is not None or pipeline_group_here() is not None
        self._updates_at_once = batching.micro_batches_per_update == 1 and not parted
        self._mode = OutputMode(options.output_mode)
        self._period = options.output_return_period
        self._anchors = {
            short: _Anchor(long, OutputMode(mode), period)
            for short, (long, _, mode, period) in options.anchored_tensors.items()
        }
        self._values: dict[str, Tensor] = {}
        self._watches = options._Popart.settings.floating_point_checks
        self.are_taken = bool(self._anchors) or self._watches
        """Whether `take` has anything to do."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the tensors that the program has to return."""
        computed = [label_of(anchor.long_name) for anchor in self._anchors.values() if self._is_computed(anchor)]
        return (*computed, labels.EXCEPTIONS) if self._watches else tuple(computed)

    def check(self, executor: Executor) -> None:
        """Raise for names that the compiled program does not have."""
        for anchor in self._anchors.values():
            if not self._is_computed(anchor) and _reader(anchor.long_name, executor) is None:
                names = names_in(executor.captured, executor.plan)
                raise createPoptorchError(unknown_name(anchor.long_name, names))

    def take(self, outputs: list[Tensor], executor: Executor) -> list[Tensor]:
        """Keep the anchored tensors of a call, and return its outputs."""
        program = executor.program
        count = len(outputs) - len(program.anchors)
        if program.watched_operations:
            _refuse_exceptions(outputs[-1], program.watched_operations)
        returned = iter(zip(outputs[count:], program.output_ranks[count:], strict=True))
        for short, anchor in self._anchors.items():
            if self._is_computed(anchor):
                value, rank = next(returned)
                value = chosen(value, rank, anchor.mode, anchor.period, self._batching)
            else:
                read = _reader(anchor.long_name, executor)
                assert read is not None
                value = read()
            self._values[short] = value.to(NARROWER_OUTPUTS.get(value.dtype, value.dtype))
        return self._outputs(outputs[:count], program) if program.anchors else outputs

    def value(self, short_name: str) -> Tensor:
        """The value of an anchored tensor in the last call."""
        require(
            short_name in self._anchors,
            f"No tensor is anchored as {short_name!r}. Anchor it with poptorch.Options().anchorTensor.",
        )
        require(short_name in self._values, f"The model has not been run since {short_name!r} was anchored.")
        return self._values[short_name]

    def _outputs(self, outputs: Sequence[Tensor], program: Program) -> list[Tensor]:
        return [
            output
            if position in program.constant_outputs
            else chosen(output, program.output_ranks[position], self._mode, self._period, self._batching)
            for position, output in enumerate(outputs)
        ]

    def _is_computed(self, anchor: _Anchor) -> bool:
        """Whether the captured step computes the tensor; the results of separate updates are read afterwards."""
        if "___specific___" in anchor.long_name or anchor.long_name == "lossScaling_FLOAT":
            return False
        if not anchor.long_name.startswith(UPDATED) or self._updates_at_once:
            return True
        if self._batching.device_iterations > 1 and anchor.mode is not OutputMode.Final:
            raise createPoptorchError(
                f"{anchor.long_name} is anchored with {anchor.mode!r}. If updates are separate from gradients, only "
                "its value after the last device iteration is available: use OutputMode.Final, or one device iteration."
            )
        return False


def _refuse_exceptions(flags: Tensor, operations: Sequence[str]) -> None:
    """Raise if an operation produced NaN or infinity in any micro-batch."""
    failed = flags.view(-1, max(1, len(operations))).any(0).nonzero().flatten().tolist()
    if failed:
        raise Error(
            f"Floating point exception in {operations[failed[0]]}: it produced NaN or infinity from finite numbers, "
            f"or compared with NaN.{_others(len(failed) - 1)} "
            "poptorch.Options().Precision.enableFloatingPointExceptions(True) checks for this. The weights may "
            "already have been updated with it.",
            type="poplar_floating_point_exception",
        )


def _others(count: int) -> str:
    return "" if count == 0 else f" {count} more operations did the same."


def _reader(long_name: str, executor: Executor) -> Callable[[], Tensor] | None:
    """A function that reads a tensor after a call; None for an unknown name."""
    if executor.plan is None:
        return None
    if long_name.startswith(UPDATED):
        name = long_name.removeprefix(UPDATED)
        if name not in executor.captured.layout.trained:
            return None
        return lambda: executor.weights_on_device()[name].detach().to("cpu", copy=True)
    value = to_ipu_param(executor.plan).get(long_name)
    return None if value is None else lambda: value


def chosen(everything: Tensor, rank: int, mode: OutputMode, period: int, batching: Batching) -> Tensor:
    """Apply an output mode to an output of all micro-batches, which has this rank in each of them."""
    rounds, replicas = batching.gradient_accumulation, batching.replicas
    if batching.device_iterations * rounds * replicas == 1:
        return everything
    pieces = everything if rank == 0 else everything.unflatten(0, (-1, everything.shape[0] // _count(batching)))
    by_loop = pieces.unflatten(0, (batching.device_iterations, rounds, replicas))
    kept: Tensor
    match mode:
        case OutputMode.EveryN:
            kept = by_loop[period - 1 :: period].flatten(0, 2)
        case OutputMode.Final:
            kept = by_loop[-1, -1]
        case OutputMode.Sum:
            kept = _sum(by_loop.flatten(0, 1).unbind(0))
        case _:
            return everything
    if rank == 0:
        return kept if len(kept) > 1 else kept[0]
    return kept.flatten(0, 1)


def _count(batching: Batching) -> int:
    return batching.device_iterations * batching.gradient_accumulation * batching.replicas


def _sum(rounds: Sequence[Tensor]) -> Tensor:
    total = rounds[0]
    for part in rounds[1:]:
        total = total | part if total.dtype is torch.bool else total + part
    return total
