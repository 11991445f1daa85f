"""What the device model says about a program of the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.prediction.programs import TrainingProgram
from pilotage.capture.model import modes_of
from pilotage.door import execution
from pilotage.optim.following import FollowedOptimizer
from pilotage.prediction.capturing.program import capturing_in
from pilotage.prediction.devices import DeviceModel
from pilotage.prediction.prediction import Prediction, Traced, predicted, traced
from pilotage.prediction.replacing import replaced
from pilotage.prediction.scripts.valueless import Valueless
from pilotage.prediction.subject import Subject
from pilotage.prediction.timing.cost import Arithmetic
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A prediction beside what the comparison measures."""

    prediction: Prediction
    state_bytes: int
    """Weights, optimizer state and pools, rounded as the allocator does."""


def expected(program: TrainingProgram, model: DeviceModel, machine: dict[str, Any]) -> Expected:
    """Predict a program without its weights."""
    with ExitStack() as stack:
        if machine.get("triton"):
            stack.enter_context(_kernels_of_cosmictagger())
        prediction = predicted(traced_of(program, model), model, Arithmetic())
    live = prediction.needs.fullest.live
    stored = sum(-(-each.bytes // 512) * 512 for each in prediction.traced.update.tensors if each.is_stored)
    assert live.peak_bytes >= stored
    return Expected(prediction=prediction, state_bytes=stored)


def traced_of(program: TrainingProgram, model: DeviceModel) -> Traced:
    """The program as operations and tensors."""
    valueless = Valueless()
    subject = subject_of(program, valueless)
    with capturing_in(valueless.mode), autocast_of(program):
        return traced(subject, model)


def subject_of(program: TrainingProgram, valueless: Valueless) -> Subject:
    """The program as a subject; its weights have no values."""
    with valueless:
        module, micro_batch, optimizer = program.make()
    tensors, structure = flatten((tuple(micro_batch), {}))
    return Subject(
        name=program.name,
        module=module,
        modes=modes_of(module),
        plan=FollowedOptimizer(optimizer, module).first_plan(),
        execution=execution(check="off", **program.options),
        arguments=structure,
        micro_batch=tuple(map(TensorSpec.of, tensors)),
    )


@contextmanager
def autocast_of(program: TrainingProgram) -> Iterator[None]:
    """The autocast that a program is captured under."""
    with torch.autocast("cpu", torch.bfloat16) if program.autocast else nullcontext():
        yield


class _Nothing:
    """Kernels that need no preparation."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@contextmanager
def _kernels_of_cosmictagger() -> Iterator[None]:
    """Let CosmicTagger's operations keep for backward what they keep where its Triton kernels run."""
    from cosmictagger.networks import triton_support

    nothing = _Nothing()
    with (
        replaced(triton_support, "supports", lambda x: x.dim() == 4 and x.shape[1] % 8 == 0),
        replaced(triton_support, "norm_kernels", lambda: nothing),
        replaced(triton_support, "resizing_kernels", lambda: nothing),
    ):
        yield
