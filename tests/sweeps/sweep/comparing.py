"""Runs cases through PopTorch's wrappers, and compares them with eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

import poptorch
from sweep.cases import Case, Inference, Training

TOGETHER = 32
"""How many cases are compiled as one model; compiling them separately takes three times as long."""

DEMOTED = {torch.int64: torch.int32, torch.float64: torch.float32, torch.bfloat16: torch.float32}
"""PopTorch's treatment of outputs, which also moves them to the host."""

TOLERANCE = {"rtol": 1e-5, "atol": 1e-6}
Run: TypeAlias = Callable[[Sequence[Case]], Iterator[Any]]

ROUGHER = {"rtol": 1e-2, "atol": 1e-3}
"""For half precision."""


class Outcome(Enum):
    """How a case ended."""

    EQUAL = "equal"
    CLOSE = "close"
    REFUSED = "refused"
    """With one of PopTorch's errors."""
    STOPPED = "stopped"
    """With an error in the run."""
    WRONG = "wrong"
    """A result that differs from eager, or an unexpected error."""
    NOT_IN_EAGER = "fails in eager"
    NOTHING = "nothing to compare"
    """No differentiable output."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case."""

    case: Case
    outcome: Outcome
    text: str = ""

    def __str__(self) -> str:
        return f"{self.case}: {self.outcome.value} {self.text}".rstrip()


def compare(cases: Sequence[Case], *, gradients: bool = False, together: int = TOGETHER) -> Iterator[Verdict]:
    """Run cases in groups; a group that fails is halved until the case is found."""
    for start in range(0, len(cases), together):
        yield from _halving(cases[start : start + together], _train if gradients else _infer)


def _halving(cases: Sequence[Case], run: Run) -> list[Verdict]:
    try:
        return list(run(cases))
    except Exception as error:
        if len(cases) == 1:
            return [_failed(cases[0], error)]
    middle = len(cases) // 2
    return [*_halving(cases[:middle], run), *_halving(cases[middle:], run)]


def _failed(case: Case, error: Exception) -> Verdict:
    match error:
        case _EagerFailure():
            return Verdict(case, Outcome.NOT_IN_EAGER, _short(error.__cause__))
        case _Nothing():
            return Verdict(case, Outcome.NOTHING)
        case _RunFailure():
            return Verdict(case, Outcome.STOPPED, _short(error.__cause__))
        case poptorch.Error():
            return Verdict(case, Outcome.REFUSED, _short(error))
        case _:
            return Verdict(case, Outcome.WRONG, _short(error))


class _EagerFailure(Exception):
    """Plain PyTorch cannot do it either."""


class _RunFailure(Exception):
    """The program was captured, and raised at run time."""


class _Nothing(Exception):
    """There is no gradient."""


def _options(cases: Sequence[Case]) -> poptorch.Options:
    options = poptorch.Options().showCompilationProgressBar(False).runOn("cpu", tier="graph", nonfinite_loss="ignore")
    # A forward that returns uninitialised memory is not repeatable, which the arrival check refuses.
    return options if all(case.defined for case in cases) else options.check("off")


def _infer(cases: Sequence[Case]) -> Iterator[Verdict]:
    model, twin = Inference(cases), Inference(cases)
    expected = _in_eager(lambda: twin(*twin.inputs()))
    wrapped = poptorch.inferenceModel(model, _options(cases))
    results = _in_program(wrapped, *model.inputs())
    wrapped.copyWeightsToHost()
    same_state = _difference(dict(model.state_dict()), dict(twin.state_dict()), TOLERANCE)
    if same_state not in ("", "close"):
        raise AssertionError(f"buffers: {same_state}")
    for case, result, wanted in zip(cases, results, expected, strict=True):
        yield _verdict(case, result, _demoted(wanted))


def _train(cases: Sequence[Case]) -> Iterator[Verdict]:
    model, twin = Training(cases), Training(cases)
    loss = _in_eager(twin)
    if loss is None:
        raise _Nothing
    optimizer = torch.optim.SGD(twin.parameters(), lr=1.0)
    _in_eager(loss.backward)
    _in_eager(optimizer.step)
    wrapped = poptorch.trainingModel(model, _options(cases), poptorch.optim.SGD(model.parameters(), lr=1.0))
    _in_program(wrapped)
    mine, theirs = model.of_each_case(), twin.of_each_case()
    for case, result, wanted in zip(cases, mine, theirs, strict=True):
        yield _verdict(case, result, wanted)
    wrapped.destroy()


def _in_eager(run: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    try:
        return run()
    except Exception as error:
        raise _EagerFailure from error


def _in_program(wrapped: poptorch.PoplarExecutor, *inputs: Tensor) -> Any:
    wrapped.compile(*inputs)
    torch.manual_seed(0)
    try:
        return wrapped(*inputs)
    except Exception as error:
        raise _RunFailure from error


def _demoted(results: Any) -> Any:
    leaves, structure = tree_flatten(results)
    return structure.unflatten(
        [leaf.to("cpu", DEMOTED.get(leaf.dtype, leaf.dtype)) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    )


def _verdict(case: Case, result: Any, wanted: Any) -> Verdict:
    difference = _difference(result, wanted, ROUGHER if case.is_half else TOLERANCE, values=case.defined)
    outcome = {"": Outcome.EQUAL, "close": Outcome.CLOSE}.get(difference, Outcome.WRONG)
    return Verdict(case, outcome, difference if outcome is Outcome.WRONG else "")


def _difference(result: Any, wanted: Any, tolerance: dict[str, float], *, values: bool = True) -> str:
    """Empty if two values are bitwise equal, otherwise ``close`` or how they differ."""
    mine, my_structure = tree_flatten(result)
    theirs, their_structure = tree_flatten(wanted)
    if str(my_structure).replace("Size", "tuple") != str(their_structure).replace("Size", "tuple"):
        return f"nested {my_structure} instead of {their_structure}"
    found = ""
    for one, other in zip(mine, theirs, strict=True):
        difference = _leaf_difference(one, other, tolerance, values=values)
        if difference not in ("", "close"):
            return difference
        found = found or difference
    return found


def _leaf_difference(one: Any, other: Any, tolerance: dict[str, float], *, values: bool) -> str:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return "" if one == other or (one != one and other != other) else f"{one!r} instead of {other!r}"
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return f"{one.dtype}{list(one.shape)} instead of {other.dtype}{list(other.shape)}"
    one, other = _comparable(one.detach()), _comparable(other.detach())
    if not values or bool(((one == other) | ((one != one) & (other != other))).all()):
        return ""
    try:
        torch.testing.assert_close(one, other, equal_nan=True, **tolerance)
    except AssertionError as error:
        return " ".join(str(error).split())
    return "close"


def _comparable(tensor: Tensor) -> Tensor:
    if tensor.dtype is torch.complex32:
        return torch.view_as_real(tensor.resolve_conj())
    return tensor.to(torch.float32) if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1 else tensor


def _short(error: BaseException | None) -> str:
    text = " ".join(str(error).split("\n  at ")[0].split())
    return f"{type(error).__name__}: {text}"[:300]
