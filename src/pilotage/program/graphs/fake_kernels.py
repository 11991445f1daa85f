"""Fake kernels for operations whose shapes torch considers data-dependent, although a program can know them.

They are registered only during a capture or a check.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from pilotage.options import environment
from pilotage.torch_private import META_KERNEL_LOG, DynamicOutputShapeException, dispatch_has_kernel, scoped_library


@contextmanager
def known_shapes() -> Iterator[None]:
    """Register these kernels inside the block."""
    with _registered(_KERNELS):
        yield


@contextmanager
def every_shape() -> Iterator[None]:
    """Also register kernels for shapes that torch otherwise finds by running the real kernel on made-up data."""
    with _registered({**_KERNELS, **_WITHOUT_KERNELS}):
        yield


@contextmanager
def silent_meta_kernels() -> Iterator[None]:
    """Keep torch from logging the traceback of a meta kernel that fails inside the block: the error itself says it."""
    if environment.shows_full_tracebacks():
        yield
        return
    META_KERNEL_LOG.addFilter(_is_no_failure)
    try:
        yield
    finally:
        META_KERNEL_LOG.removeFilter(_is_no_failure)


def _is_no_failure(record: logging.LogRecord) -> bool:
    return "failed while attempting to run meta" not in record.msg


@contextmanager
def _registered(kernels: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    with scoped_library("aten", "FRAGMENT") as library:
        for name, kernel in kernels.items():
            # Some versions of torch have some of these kernels.
            if not dispatch_has_kernel(f"aten::{name}", "Meta"):
                torch.library.register_fake(f"aten::{name}", kernel, lib=library)
        yield


def _ctc_loss(
    log_probabilities: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    samples = 1 if log_probabilities.dim() == 2 else log_probabilities.shape[1]
    # The second result is as long as the longest target. Only backward reads it, so an upper bound is enough.
    states = 2 * targets.shape[-1] + 1
    return (
        log_probabilities.new_empty(samples),
        log_probabilities.new_empty(samples, log_probabilities.shape[0], states),
    )


def _least_squares(
    matrix: Tensor, right: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, columns = matrix.shape[-2:]
    driver = driver or ("gelsy" if matrix.device.type == "cpu" else "gels")
    if driver in ("gelsd", "gelss") and rows > columns:
        # Matrices without full rank have no residuals.
        raise DynamicOutputShapeException(torch.ops.aten.linalg_lstsq.default)
    is_vector = right.dim() == 1 or (right.dim() == matrix.dim() - 1 and right.shape == matrix.shape[:-1])
    batch = torch.broadcast_shapes(matrix.shape[:-2], right.shape[:-1] if is_vector else right.shape[:-2])
    sides = () if is_vector else right.shape[-1:]
    has_rank, has_singular_values = driver != "gels", driver in ("gelsd", "gelss")
    real = matrix.dtype.to_real()
    return (
        matrix.new_empty((*batch, columns, *sides)),
        matrix.new_empty((*batch, *(sides or (1,))) if driver == "gels" and rows > columns else (0,), dtype=real),
        matrix.new_empty(matrix.shape[:-2] if has_rank else (0,), dtype=torch.int64),
        matrix.new_empty((*matrix.shape[:-2], min(rows, columns)) if has_singular_values else (0,), dtype=real),
    )


_KERNELS: Mapping[str, Callable[..., Any]] = {
    "_ctc_loss": _ctc_loss,
    "_ctc_loss.Tensor": _ctc_loss,
    "linalg_lstsq": _least_squares,
}


def _like_second(gradient: Tensor, given: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(given)


def _orthogonal_factors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(matrix), matrix.new_empty((*matrix.shape[:-2], min(matrix.shape[-2:])))


def _histogram(values: Tensor, bins: int = 100, **_: Any) -> tuple[Tensor, Tensor]:
    return values.new_empty(bins), values.new_empty(bins + 1)


def _bin_edges(values: Tensor, bins: list[int], **_: Any) -> list[Tensor]:
    return [values.new_empty(count + 1) for count in bins]


def _counts(values: Tensor, bins: list[int], **_: Any) -> Tensor:
    return values.new_empty(bins)


def _counts_between(values: Tensor, bins: list[Tensor], **_: Any) -> Tensor:
    return values.new_empty([edges.numel() - 1 for edges in bins])


_WITHOUT_KERNELS: Mapping[str, Callable[..., Any]] = {
    "multi_margin_loss_backward": _like_second,
    "multilabel_margin_loss_backward": _like_second,
    "fractional_max_pool3d_backward": _like_second,
    "_ctc_loss_backward": _like_second,
    "_ctc_loss_backward.Tensor": _like_second,
    "geqrf": _orthogonal_factors,
    "histogram.bin_ct": _histogram,
    "_histogramdd_bin_edges": _bin_edges,
    "_histogramdd_from_bin_cts": _counts,
    "_histogramdd_from_bin_tensors": _counts_between,
}
