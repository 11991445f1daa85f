"""Tensors as text, in Poplar's format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_ELLIPSIS = "..."
_SIGNIFICANT = 8
"""A number of 32 bits has no more digits than these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorFormat:
    """How a tensor is written."""

    summarise_threshold: int = 1000
    """Tensors with more elements are summarised; 0 writes every tensor in full."""
    edge_items: int = 3
    """How many elements to write at each edge of a summarised tensor."""
    max_line_width: int = 80
    """The column at which lines are broken; 0 never breaks them."""
    digits: int = 4
    """Digits after the decimal point; 0 writes each number as short as possible."""
    float_format: str = "auto"
    """One of auto, fixed, scientific and none."""
    separator: str = " "
    open_bracket: str = "{"
    close_bracket: str = "}"


def tensor_text(tensor: Tensor, form: TensorFormat) -> str:
    """A tensor as text."""
    values = tensor.detach().cpu()
    if values.dtype in (torch.bfloat16, torch.float16):
        values = values.float()
    shortened = 0 < form.summarise_threshold < values.numel()
    shown = _edges(values, form.edge_items) if shortened else values
    write = _writer(shown, form)
    return _nested(values.tolist(), form, write, form.edge_items if shortened else None, depth=0)


def _edges(values: Tensor, edge: int) -> Tensor:
    """The part of a tensor that is written when it is shortened."""
    for dimension, size in enumerate(values.shape):
        if size > 2 * edge:
            ends = [values.narrow(dimension, 0, edge), values.narrow(dimension, size - edge, edge)]
            values = torch.cat(ends, dimension)
    return values


def _nested(value: Any, form: TensorFormat, write: Callable[[Any], str], edge: int | None, depth: int) -> str:
    if not isinstance(value, list):
        return write(value)
    items = list(_shortened(value, edge))
    if not items or not isinstance(value[0], list):
        texts = [_ELLIPSIS if item is _ELLIPSIS else write(item) for item in items]
        return form.open_bracket + _wrapped(texts, form, depth + len(form.open_bracket) + 1) + form.close_bracket
    indent = "\n" + " " * (depth + 1)
    rows = (_ELLIPSIS if item is _ELLIPSIS else _nested(item, form, write, edge, depth + 1) for item in items)
    inside = "".join(f"{indent}{row}" for row in rows)
    return f"{form.open_bracket}{inside}\n{' ' * depth}{form.close_bracket}"


def _shortened(values: list[Any], edge: int | None) -> Iterator[Any]:
    if edge is None or len(values) <= 2 * edge:
        yield from values
        return
    yield from values[:edge]
    yield _ELLIPSIS
    yield from values[len(values) - edge :]


def _wrapped(texts: Iterable[str], form: TensorFormat, indent: int) -> str:
    """Numbers in lines of limited width."""
    lines: list[str] = []
    line = ""
    for text in texts:
        longer = f"{line}{form.separator}{text}" if line else text
        if line and 0 < form.max_line_width < indent + len(longer):
            lines.append(line + form.separator.rstrip())
            line = text
        else:
            line = longer
    lines.append(line)
    return ("\n" + " " * indent).join(lines)


def _writer(shown: Tensor, form: TensorFormat) -> Callable[[Any], str]:
    """How to write each number of a tensor, aligned in columns."""
    write = _number_writer(shown, form)
    if form.digits == 0 or form.float_format == "none":
        return write
    width = max((len(write(value)) for value in shown.flatten().tolist()), default=0)
    return lambda value: write(value).rjust(width)


def _number_writer(shown: Tensor, form: TensorFormat) -> Callable[[Any], str]:
    if not (shown.is_floating_point() or shown.is_complex()):
        return lambda value: str(int(value))
    if form.digits == 0 or form.float_format == "none" or shown.is_complex():
        return lambda value: f"{value:g}"
    style = form.float_format if form.float_format != "auto" else _fitting_style(shown, form.digits)
    if style == "scientific":
        digits = min(form.digits, _SIGNIFICANT - 1)
        return lambda value: f"{value:.{digits}e}"
    sizes = [abs(value) for value in shown.flatten().tolist() if math.isfinite(value)]
    before_point = len(str(int(max(sizes, default=0.0))))
    digits = max(min(form.digits, _SIGNIFICANT - before_point), 0)
    return lambda value: f"{value:.{digits}f}"


def _fitting_style(shown: Tensor, digits: int) -> str:
    sizes = [abs(value) for value in shown.flatten().tolist() if value and math.isfinite(value)]
    if not sizes or (min(sizes) >= 10.0**-digits and max(sizes) < 10.0 ** (digits + 1)):
        return "fixed"
    return "scientific"
