"""Make batches of one size from pieces of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from pilotage.errors import InputError


def rebatched(pieces: Iterable[list[Tensor]], size: int, *, drop_last: bool) -> Iterator[list[Tensor]]:
    """Cut and join pieces, each a list of tensors with equally many rows, into batches of ``size`` rows, in order.

    Remaining rows form a smaller last batch, or are dropped.
    """
    waiting: list[list[Tensor]] = []
    rows_waiting = 0
    for piece in pieces:
        rows = rows_of(piece)
        position = 0
        while rows_waiting + rows - position >= size:
            taken = size - rows_waiting
            waiting.append(_rows_between(piece, position, position + taken))
            yield _joined(waiting)
            waiting, rows_waiting, position = [], 0, position + taken
        if position < rows:
            waiting.append(_rows_between(piece, position, rows))
            rows_waiting += rows - position
    if waiting and not drop_last:
        yield _joined(waiting)


def rows_of(piece: list[Tensor]) -> int:
    """The number of rows of all tensors of a piece."""
    rows = {tensor.shape[0] if tensor.ndim else None for tensor in piece}
    if len(rows) != 1 or None in rows:
        shapes = [tuple(tensor.shape) for tensor in piece]
        raise InputError(
            f"Rebatching needs tensors with the same first dimension, one row per sample, but got {shapes}."
        )
    return next(tensor.shape[0] for tensor in piece)


def _rows_between(piece: list[Tensor], start: int, stop: int) -> list[Tensor]:
    if start == 0 and stop == piece[0].shape[0]:
        return piece
    return [tensor[start:stop] for tensor in piece]


def _joined(pieces: list[list[Tensor]]) -> list[Tensor]:
    if len(pieces) == 1:
        return pieces[0]
    return [torch.cat(tensors) for tensors in zip(*pieces, strict=True)]
