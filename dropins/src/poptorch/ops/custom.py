"""Custom operations of the user.

On an IPU they are compiled C++. Here their implementation is a function registered with `implementCustomOp`, or an
operation of torch's dispatcher: ``torch.ops.<domain>.<name>``, with dots in the domain written as underscores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from poptorch._errors import createPoptorchError

Implementation = Callable[..., Tensor | Sequence[Tensor]]

_LARGEST_FLOAT = torch.finfo(torch.float32).max

_implementations: dict[tuple[str, str], Implementation] = {}


def implementCustomOp(name: str, domain: str) -> Callable[[Implementation], Implementation]:
    """Decorator that registers a function of the inputs and, as keywords, the attributes as a custom op.

    This is not in PopTorch, which loads compiled code instead.
    """

    def register(implementation: Implementation) -> Implementation:
        _implementations[domain, name] = implementation
        return implementation

    return register


def custom_op(
    inputs: Sequence[Tensor],
    name: str,
    domain: str,
    domain_version: int,
    example_outputs: Sequence[Tensor],
    attributes: Mapping[str, Any] | None = None,
) -> list[Tensor]:
    """Run a custom op, whose results must have the shapes and types of the example outputs."""
    checked = _checked({} if attributes is None else attributes)
    implementation = _implementations.get((domain, name)) or _operation(name, domain)
    if implementation is None:
        raise createPoptorchError(
            f"The custom op {name!r} of domain {domain!r} (version {domain_version}) is not implemented here. "
            f"Register an implementation with @poptorch.implementCustomOp({name!r}, {domain!r}), or with torch.library "
            f"as {_namespace(domain)}::{name}. Code that was compiled for IPUs cannot run here."
        )
    results = implementation(*inputs, **checked)
    listed = [results] if isinstance(results, Tensor) else list(results)
    _require_as_announced(name, listed, example_outputs)
    return listed


def _namespace(domain: str) -> str:
    return domain.replace(".", "_")


def _operation(name: str, domain: str) -> Implementation | None:
    operation: Implementation | None = getattr(getattr(torch.ops, _namespace(domain)), name, None)
    return operation


def _require_as_announced(name: str, results: Sequence[Tensor], examples: Sequence[Tensor]) -> None:
    found = [(list(result.shape), result.dtype) for result in results]
    announced = [(list(example.shape), example.dtype) for example in examples]
    if found != announced:
        raise createPoptorchError(
            f"The custom op {name!r} returned {found}, but its example outputs are {announced}. Shapes and types have "
            "to be the same."
        )


def _checked(attributes: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(attributes, Mapping):
        raise ValueError(f"The attributes of a custom op must be a dictionary of names and values, not {attributes!r}.")
    for key, value in attributes.items():
        if not isinstance(key, str):
            raise ValueError(f"The name of an attribute of a custom op must be a string, not {key!r}.")
        _require_ascii(key)
        _require_allowed(key, value)
    return dict(attributes)


def _require_allowed(key: str, value: Any) -> None:
    values = value if isinstance(value, list | tuple) else (value,)
    if not values:
        raise ValueError(f"The attribute {key} of a custom op is an empty list. It needs at least one value.")
    kind = type(values[0])
    if kind not in (float, int, str) or any(type(each) is not kind for each in values):
        raise ValueError(
            f"The attribute {key} of a custom op is {value!r}. It must be a float, an int or a string, or a list or "
            "tuple of one kind of them."
        )
    for each in values:
        if isinstance(each, str):
            _require_ascii(each)
        if isinstance(each, float) and math.isfinite(each) and abs(each) > _LARGEST_FLOAT:
            raise createPoptorchError(
                f"{each} is too {'low' if each < 0 else 'high'} for a Popart float attribute. (attribute {key})"
            )


def _require_ascii(text: str) -> None:
    if not text.isascii():
        raise ValueError(f"{text!r} contains non-ASCII characters.")
