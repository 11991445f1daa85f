"""Printing tensors at run time, and their gradients."""

from __future__ import annotations

import sys
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.engine import is_silent
from poptorch.ops.branches import branch_taken
from poptorch.ops.checks import require_tensor
from poptorch.ops.tensor_text import TensorFormat, tensor_text

_FLOAT_FORMATS = {name: name for name in ("auto", "fixed", "scientific", "none")}
_DEFAULT_MARKS = (", ", "(", ")")


def ipu_print_tensor(
    tensor: Tensor,
    title: str = "",
    print_gradient: bool = True,
    summarise_threshold: int = 1000,
    edge_items: int = 3,
    max_line_width: int = 80,
    digits: int = 4,
    float_format: str = "auto",
    separator: str = ", ",
    open_bracket: str = "(",
    close_bracket: str = ")",
) -> Tensor:
    """The tensor, printed on standard error whenever the program reaches it; so is its gradient.

    With the default separator and brackets the output is Poplar's: ``title: {1.0000 2.0000}``.
    """
    require_tensor("ipu_print_tensor", "tensor", tensor)
    marks = (separator, open_bracket, close_bracket)
    if marks == _DEFAULT_MARKS:
        marks = (" ", "{", "}")
    form = TensorFormat(
        summarise_threshold=summarise_threshold,
        edge_items=edge_items,
        max_line_width=max_line_width,
        digits=digits,
        float_format=_FLOAT_FORMATS[float_format],
        separator=marks[0],
        open_bracket=marks[1],
        close_bracket=marks[2],
    )
    _print_tensor(tensor.detach(), title, *astuple(form), branch_taken())
    # A copy: the hook would be skipped if the result were a view that is then changed in place.
    printed = tensor.clone()
    if print_gradient and printed.requires_grad:
        printed.register_hook(_GradientPrinter(f"{title}_gradient", form))
    return printed


@dataclass(frozen=True, slots=True)
class _GradientPrinter:
    """Prints a gradient on its way back."""

    title: str
    form: TensorFormat

    def __call__(self, gradient: Tensor) -> None:
        _print_tensor(gradient.detach(), self.title, *astuple(self.form), None)


@torch.library.custom_op(
    "poptorch::print_tensor",
    mutates_args=(),
    tags=[torch.Tag.cudagraph_unsafe],
    schema="(Tensor tensor, str title, int summarise_threshold, int edge_items, int max_line_width, int digits, "
    "str float_format, str separator, str open_bracket, str close_bracket, Tensor? taken) -> ()",
)
def _print_tensor(
    tensor: Tensor,
    title: str,
    summarise_threshold: int,
    edge_items: int,
    max_line_width: int,
    digits: int,
    float_format: str,
    separator: str,
    open_bracket: str,
    close_bracket: str,
    taken: Tensor | None,
) -> None:
    if is_silent() or (taken is not None and not bool(taken)):
        return
    form = TensorFormat(
        summarise_threshold=summarise_threshold,
        edge_items=edge_items,
        max_line_width=max_line_width,
        digits=digits,
        float_format=float_format,
        separator=separator,
        open_bracket=open_bracket,
        close_bracket=close_bracket,
    )
    name = f"{title}: " if title else ""
    print(name + tensor_text(tensor, form), file=sys.stderr, flush=True)


@_print_tensor.register_fake
def _(tensor: Tensor, title: str, *format_and_branch: Any) -> None:
    """Prints nothing: tensors have no values during a capture."""


# Nothing depends on a print, but it has to stay in the program.
torch.fx.node.has_side_effect(torch.ops.poptorch.print_tensor.default)
