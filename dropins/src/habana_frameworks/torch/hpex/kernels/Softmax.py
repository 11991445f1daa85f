"""Softmax over parts of the last dimension."""

from __future__ import annotations

import torch
from torch import Tensor


class CustomSoftmax:
    """Softmax over the last dimension. The flavour chooses a kernel of the card, and changes no results here."""

    @staticmethod
    def apply(inp: Tensor, flavor: int, /) -> Tensor:
        """Compute softmax."""
        return torch.softmax(inp, dim=-1)


class RaggedSoftmax:
    """Softmax over the first elements of each row; the others are zero."""

    @staticmethod
    def apply(inp: Tensor, dim: int, half_to_float: bool, valid_count: Tensor, /) -> Tensor:
        """Compute softmax along a dimension over as many elements as ``valid_count`` says for each row."""
        data = inp.float() if half_to_float else inp
        counts = valid_count.to(inp.device).reshape(-1, *[1] * (inp.dim() - 1))
        shape = [1] * inp.dim()
        shape[dim] = inp.shape[dim]
        position = torch.arange(inp.shape[dim], device=inp.device).reshape(shape)
        softmax = torch.softmax(data.masked_fill(position >= counts, float("-inf")), dim)
        return torch.where(position < counts, softmax, torch.zeros_like(softmax))


def triu_masked_softmax(input: Tensor) -> Tensor:
    """Softmax over the last dimension without the elements above the diagonal."""
    rows, columns = input.shape[-2:]
    above = torch.ones(rows, columns, dtype=torch.bool, device=input.device).triu(1)
    return torch.softmax(input.masked_fill(above, float("-inf")), dim=-1)
