"""Pinned buffers between the host and a card."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor

_WORTH_THREADS = 32 << 20
"""Below this number of bytes one thread copies: waking others takes longer, and they compete with the data loader."""


class InputStaging:
    """Copies the inputs of a call part by part, so that the card works on one part while the next is copied.

    Pageable memory is first copied into one of two alternating pinned buffers, from which the card copies on a separate
    stream. Pinned tensors are copied directly.
    """

    def __init__(self, targets: Sequence[Tensor], parts: int) -> None:
        self._targets = [_split(target, parts) for target in targets]
        self._parts = parts
        self._stream = torch.cuda.Stream()
        self._fetched = [torch.cuda.Event() for _ in range(min(2, parts))]
        self._pinned: list[list[Tensor | None]] = [[None] * len(targets) for _ in self._fetched]

    def begin(self, inputs: Sequence[Tensor]) -> list[Sequence[Tensor]]:
        """Split the inputs of a call; waits until the card has used those of the last one."""
        self.wait()
        return [_split(tensor, self._parts) for tensor in inputs]

    def wait(self) -> None:
        """Delay the next copy until the card has finished its current work."""
        self._stream.wait_stream(torch.cuda.current_stream())

    def bring(self, inputs: Sequence[Sequence[Tensor]], part: int) -> None:
        """Start to copy one part; the current stream waits for it, the host does not."""
        turn = part % len(self._fetched)
        # The buffer is free once the card has copied its previous content.
        self._fetched[turn].synchronize()
        with torch.cuda.stream(self._stream):
            for position, (pieces, targets) in enumerate(zip(inputs, self._targets, strict=True)):
                targets[part].copy_(self._fetchable(pieces[part], turn, position), non_blocking=True)
            self._fetched[turn].record()
        torch.cuda.current_stream().wait_event(self._fetched[turn])

    def _fetchable(self, piece: Tensor, turn: int, position: int) -> Tensor:
        if piece.is_cuda or piece.is_pinned():
            return piece
        pinned = self._pinned[turn][position]
        if pinned is None or pinned.shape != piece.shape:
            pinned = torch.empty(piece.shape, dtype=piece.dtype, pin_memory=True)
            self._pinned[turn][position] = pinned
        return copied(pinned, piece)


class OutputStaging:
    """Copies the outputs of a call to the host with one wait."""

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        self._pinned = [torch.empty_like(output, device="cpu", pin_memory=True) for output in outputs]

    def fetch(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        """Copies of the outputs on the host."""
        for pinned, output in zip(self._pinned, outputs, strict=True):
            pinned.copy_(output, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return [pinned.clone() for pinned in self._pinned]


def copied(target: Tensor, source: Tensor) -> Tensor:
    """Copy a tensor of the host into another of its shape and type; returns the latter."""
    plain = source.is_contiguous() and target.is_contiguous() and not (source.is_conj() or source.is_neg())
    if plain and source.nbytes <= _WORTH_THREADS:
        ctypes.memmove(target.data_ptr(), source.data_ptr(), source.nbytes)
        return target
    return target.copy_(source)


def _split(tensor: Tensor, parts: int) -> Sequence[Tensor]:
    return (tensor,) if parts == 1 else tensor.tensor_split(parts)
