"""Functions of torch that read a tensor's value although their result has a known shape.

Each gets another form with the same result that reads no value. Where torch reads a value to validate an argument, the
check is skipped, as with ``validate_args=False``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn import functional

from pilotage.torch_private import ASSERT_ASYNC, LOCAL_SCALAR, TorchDispatchMode, is_all_true, validates_arguments

aten = torch.ops.aten


def _combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Which elements are combined depends only on how many there are."""
    if r <= 0 or input.dim() != 1:
        return torch.combinations(input, r, with_replacement)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    positions = list(choose(range(len(input)), r))
    return input[torch.tensor(positions, dtype=torch.int64, device=input.device).reshape(-1, r)]


def _covariance(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Torch's own formula, without the check for negative weights."""
    rows = input.reshape(1, -1) if input.dim() < 2 else input
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    weighted = rows if weights is None else rows * weights
    total = torch.full((), rows.shape[1], device=rows.device) if weights is None else weights.sum()
    freedom = total - correction
    if weights is not None and aweights is not None and correction != 0:
        freedom = total - correction * (weights * aweights).sum() / total
    apart = rows - (weighted.sum(1) / total).unsqueeze(1)
    product = torch.mm(apart, (apart if weights is None else apart * weights).t().conj())
    return torch.true_divide(product, freedom.clamp(min=0)).squeeze()


def _correlation(input: Tensor) -> Tensor:
    matrix = _covariance(input)
    if matrix.dim() == 0:
        return matrix / matrix
    diagonal = matrix.diag()
    deviation = torch.sqrt(torch.real(diagonal) if diagonal.is_complex() else diagonal)
    matrix = matrix / deviation.view(-1, 1) / deviation.view(1, -1)
    if matrix.is_complex():
        return torch.complex(torch.real(matrix).clip(-1, 1), torch.imag(matrix).clip(-1, 1))
    return matrix.clip(-1, 1)


def _ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """Pass lengths as tensors: torch reads the values of lists."""

    def in_tensor(lengths: Any) -> Tensor:
        return torch.as_tensor(lengths, dtype=torch.int64, device=targets.device)

    return functional.ctc_loss(log_probs, targets, in_tensor(input_lengths), in_tensor(target_lengths), *args, **kwargs)


def _assuming(answers: Mapping[Any, Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with fixed answers to its questions about values."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with _Answers(answers):
            return function(*args, **kwargs)

    return call


def _bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Use exactly ``minlength`` bins; a larger number is a runtime error."""
    if minlength <= 0:
        return torch.bincount(input, weights, minlength)
    if weights is None:
        weights = torch.ones_like(input, dtype=torch.int64)
    elif weights.dtype is not torch.float32:
        weights = weights.to(torch.float64)
    beyond = "torch.bincount found a value that is not below minlength, the number of bins in a captured program"
    ASSERT_ASYNC((input < minlength).all(), beyond)
    return weights.new_zeros(minlength).scatter_add(0, input.to(torch.int64), weights)


def _is_all_true(input: Tensor) -> bool:
    """Only distributions with argument validation call this."""
    return True


_NO_VARIANCE_IS_NEGATIVE = {LOCAL_SCALAR: False}
_NO_WINDOW_IS_ZERO = {aten.equal.default: False}
_QUANTILES_ARE_WITHIN_ONE = {aten.equal.default: True}

STATIC_FORMS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    functional.ctc_loss: _ctc_loss,
    functional.gaussian_nll_loss: _assuming(_NO_VARIANCE_IS_NEGATIVE, functional.gaussian_nll_loss),
    is_all_true: _is_all_true,
    torch.bincount: _bincount,
    Tensor.bincount: _bincount,
    torch.combinations: _combinations,
    torch.corrcoef: _correlation,
    Tensor.corrcoef: _correlation,
    torch.cov: _covariance,
    Tensor.cov: _covariance,
    torch.istft: _assuming(_NO_WINDOW_IS_ZERO, torch.istft),
    Tensor.istft: _assuming(_NO_WINDOW_IS_ZERO, Tensor.istft),
    torch.nanquantile: _assuming(_QUANTILES_ARE_WITHIN_ONE, torch.nanquantile),
    Tensor.nanquantile: _assuming(_QUANTILES_ARE_WITHIN_ONE, Tensor.nanquantile),
    torch.quantile: _assuming(_QUANTILES_ARE_WITHIN_ONE, torch.quantile),
    Tensor.quantile: _assuming(_QUANTILES_ARE_WITHIN_ONE, Tensor.quantile),
}
"""Functions with their capturable forms."""


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Switch off the argument validation of distributions inside the block."""
    before = validates_arguments(Distribution)
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


class _Answers(TorchDispatchMode):
    """While active, answers questions about values from a table."""

    def __init__(self, answers: Mapping[Any, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._answers = answers

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Answer, or run the operation."""
        return self._answers[func] if func in self._answers else func(*args, **(kwargs or {}))
