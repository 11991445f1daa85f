"""Errors for what a static program cannot do: they name the function that the user called and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import resolve_name

from pilotage.errors import CaptureError, DataDependentError
from pilotage.torch_private import DataDependentOutputException, DynamicOutputShapeException

_MASK = "Keep the full shape: torch.where(mask, x, 0) blanks out the rest, and mask.sum() says how many elements count."
_POSITIONS = "torch.nonzero_static(x, size=n) returns the first n positions, padded with -1."
_NUMBER = (
    "Keep it as a tensor: x * total does what x * total.item() does, and values.unbind() gives the elements of "
    "values.tolist(). A size or a number of rounds must be a plain Python number."
)
_CHOICE = "Compute both sides and choose: torch.where(condition, one, other)."
_SIZE = (
    "A size must be a plain Python number: take the largest that can occur, and blank out the rest with "
    "torch.where(torch.arange(n) < length, x, 0)."
)
_CUT = (
    "Cut at plain Python numbers, or keep it whole and blank out the rest with "
    "torch.where(torch.arange(n) < length, x, 0)."
)
_NUMPY = "Use torch operations, or compute it before the call and pass it as an input."

ADVICE: Mapping[str, str] = {
    "__array__": _NUMPY,
    "__bool__": _CHOICE,
    "__complex__": _NUMBER,
    "__contains__": "(x == value).any() gives the answer as a tensor.",
    "__float__": _NUMBER,
    "__format__": "Return the value, and print it after the call.",
    "__getitem__": _MASK,
    "__index__": _NUMBER,
    "__int__": _NUMBER,
    "_pack_padded_sequence": (
        "Run the layer on the padded batch; output[torch.arange(len(lengths)), lengths - 1] is the last output of each "
        "sequence."
    ),
    "allclose": "torch.isclose(a, b).all() gives the answer as a tensor.",
    "arange": _SIZE,
    "argwhere": _POSITIONS,
    "bincount": "Give the number of bins: torch.bincount(x, minlength=n). A number from n on is then an error.",
    "empty": _SIZE,
    "equal": "(a == b).all() gives the answer as a tensor.",
    "full": _SIZE,
    "is_nonzero": _CHOICE,
    "item": _NUMBER,
    "linalg_lstsq": "torch.linalg.lstsq(a, b, driver='gels') returns results of known shape, and so does 'gelsy'.",
    "masked_select": _MASK,
    "nonzero": _POSITIONS,
    "numpy": _NUMPY,
    "one_hot": "Give the number of classes: torch.nn.functional.one_hot(x, num_classes=n).",
    "ones": _SIZE,
    "repeat_interleave": "Give the length of the result: torch.repeat_interleave(x, repeats, output_size=n).",
    "split": _CUT,
    "tensor": "torch.stack([a, b]) makes one tensor of several.",
    "tensor_split": _CUT,
    "unique": (
        "Sort, and mark each value that differs from the one before: values = x.flatten().sort().values, and "
        "torch.cat([torch.ones(1, dtype=torch.bool), values[1:] != values[:-1]]) says which are new."
    ),
    "unique_consecutive": (
        "Mark each value that differs from the one before: "
        "torch.cat([torch.ones(1, dtype=torch.bool), x[1:] != x[:-1]])."
    ),
    "where": _POSITIONS,
    "zeros": _SIZE,
}
"""What to write instead, by function name."""

_ASKS = "data is not allocated yet"
_NO_ARRAY = "not supported for tensor subclasses"
_NO_GROUPS = "Expected inputs of BF16 type"
_NO_FORMAT = "unsupported format string"


def refusal(error: Exception, function: Callable[..., Any], arguments: tuple[Any, ...], where: str) -> Exception | None:
    """The error to raise instead of one inside a torch function; None if the original is clear enough."""
    own_name = getattr(function, "__name__", "")
    name = str(resolve_name(function) or own_name or function).replace("torch.functional.", "torch.")
    if own_name in ("grad", "backward") and hasattr(error, "func"):
        name = f"{error.func} in the backward pass"
    if isinstance(error, DynamicOutputShapeException):
        return shape_refusal(name, ADVICE.get(own_name, _MASK), where)
    if isinstance(error, DataDependentOutputException) or _ASKS in str(error):
        advice = _CUT if own_name == "__getitem__" and _has_slices(arguments) else ADVICE.get(own_name, _NUMBER)
        return value_refusal(name, advice, where)
    if _NO_ARRAY in str(error):
        return DataDependentError(
            f"forward turns a tensor into a NumPy array ({name}), which a static program cannot do. {_NUMPY}{where}"
        )
    if own_name in ("grouped_mm", "_grouped_mm") and _NO_GROUPS in str(error):
        return CaptureError(
            f"torch {torch.__version__} knows the shape of {name} for bfloat16 only, so no other type can be captured. "
            "Convert the model with .to(torch.bfloat16), or multiply the groups otherwise; a mixture of experts "
            f"of Hugging Face takes model.set_experts_implementation('batched_mm').{where}"
        )
    if own_name == "__format__" and _NO_FORMAT in str(error):
        return value_refusal(name, ADVICE[own_name], where)
    return None


def value_refusal(name: str, advice: str = f"{_CHOICE} {_NUMBER}", where: str = "") -> DataDependentError:
    """The error for code that needs the value of a tensor."""
    return DataDependentError(
        f"forward asks for the value of a tensor ({name}), which a static program cannot know. {advice}{where}"
    )


def shape_refusal(name: str, advice: str = _MASK, where: str = "") -> DataDependentError:
    """The error for a result whose shape depends on data."""
    return DataDependentError(
        f"The shape of a result depends on the values of a tensor ({name}), but a static program must know it. "
        f"{advice}{where}"
    )


def _has_slices(arguments: tuple[Any, ...]) -> bool:
    index = arguments[1] if len(arguments) > 1 else None
    return any(isinstance(item, slice) for item in (index if isinstance(index, tuple) else (index,)))
