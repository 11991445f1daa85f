"""Functions that run on the host in the middle of a program."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from pilotage.engine import Structure, TensorSpec, disable_current_modes, flatten, unflatten
from poptorch._capture.capturing import current_capture
from poptorch.ops.branches import branch_taken
from poptorch.ops.checks import is_traced, refuse_training
from poptorch.poptorch_core import Error


class CPU:
    """A function that the program calls on the host, with real data; inference only."""

    def __init__(self, layer_to_call: Callable[..., Any], ID: str) -> None:
        self._layer_to_call = layer_to_call
        self._ID = ID
        self._called_by_programs: list[_HostFunction] = []
        if isinstance(layer_to_call, nn.Module):
            layer_to_call.requires_grad_(False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function now or, in a program, whenever the program runs."""
        refuse_training(f"poptorch.CPU ({self._ID})")
        tensors, arguments = flatten((args, kwargs))
        if is_traced(*tensors):
            return self._call_later(tensors, arguments)
        devices = [tensor.device for tensor in tensors if tensor.device.type != "cpu"]
        if not devices or isinstance(self._layer_to_call, nn.Module):
            # In the eager tier a module's weights are on the device of its inputs.
            return self._layer_to_call(*args, **kwargs)
        positional, named = unflatten(arguments, [tensor.cpu() for tensor in tensors])
        results, structure = flatten(self._layer_to_call(*positional, **named))
        return unflatten(structure, [result.to(devices[0]) for result in results])

    def _call_later(self, tensors: Sequence[Tensor], arguments: Structure) -> Any:
        function = _HostFunction.tried(self._layer_to_call, self._ID, tensors, arguments)
        _known[function.key] = function
        capture = current_capture()
        keeper = self._called_by_programs if capture is None else capture.host_functions
        keeper.append(function)
        results = torch.ops.poptorch.call_on_host(tensors, function.key, branch_taken())
        return unflatten(function.results, results)


@dataclass(frozen=True, kw_only=True, eq=False)
class _HostFunction:
    """A host function as a program sees it: by the shapes of its inputs and outputs."""

    key: str
    function: Callable[..., Any]
    arguments: Structure
    results: Structure
    specifications: tuple[TensorSpec, ...]
    device: torch.device
    """The device of the results."""

    @classmethod
    def tried(
        cls, function: Callable[..., Any], name: str, tensors: Sequence[Tensor], arguments: Structure
    ) -> _HostFunction:
        """Call a function once on zeros, to find out what it returns."""
        device = tensors[0].device if tensors else torch.empty(0).device
        with disable_current_modes(), torch.device("cpu"):
            results, structure = flatten(_tried(function, tensors, arguments))
            specifications = tuple(TensorSpec.of(result.contiguous()) for result in results)
        return cls(
            key=f"{name}/{uuid.uuid4().hex}",
            function=function,
            arguments=arguments,
            results=structure,
            specifications=specifications,
            device=device,
        )

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        # The function gets copies and its results are copied, so it may keep or change them.
        positional, named = unflatten(self.arguments, [tensor.to("cpu", copy=True) for tensor in tensors])
        with torch.device("cpu"):
            results, _ = flatten(self.function(*positional, **named))
        if is_traced(*results):
            raise Error(
                f"The host function {self.key.partition('/')[0]!r} uses tensors that forward created while the model "
                "was compiled. They contain no data. Create tensors and modules in __init__."
            )
        found = tuple(TensorSpec.of(result.contiguous()) for result in results)
        if found != self.specifications:
            raise Error(
                f"The host function {self.key.partition('/')[0]!r} returned {found}, but {self.specifications} when "
                "the model was compiled. It must return the same shapes and types each time."
            )
        return [result.detach().contiguous().to(self.device, copy=True) for result in results]

    def placeholders(self) -> list[Tensor]:
        """Empty tensors like the results."""
        return [specification.empty(self.device) for specification in self.specifications]


def _tried(function: Callable[..., Any], tensors: Sequence[Tensor], arguments: Structure) -> Any:
    zeros = [torch.zeros(tensor.shape, dtype=tensor.dtype) for tensor in tensors]
    positional, named = unflatten(arguments, zeros)
    try:
        return function(*positional, **named)
    except RuntimeError as error:
        # During capture the model's weights are tensors without data, maybe of another device. A function that uses
        # them can be tried on such tensors too.
        positional, named = unflatten(arguments, tensors)
        try:
            return function(*positional, **named)
        except Exception:
            raise error from None


_known: WeakValueDictionary[str, _HostFunction] = WeakValueDictionary()
"""By their key in the program; the compiled model keeps them alive."""


def _function(key: str) -> _HostFunction:
    if (found := _known.get(key)) is None:
        raise Error(
            f"The program calls the host function {key.partition('/')[0]!r}, which is not available: a file contains "
            "no Python code. Compile the model again in this process."
        )
    return found


@torch.library.custom_op(
    "poptorch::call_on_host",
    mutates_args=(),
    tags=[torch.Tag.cudagraph_unsafe],
    schema="(Tensor[] tensors, str function, Tensor? taken) -> Tensor[]",
)
def _call_on_host(tensors: list[Tensor], function: str, taken: Tensor | None) -> list[Tensor]:
    host_function = _function(function)
    if taken is not None and not bool(taken):
        return [placeholder.zero_() for placeholder in host_function.placeholders()]
    return host_function(tensors)


@_call_on_host.register_fake
def _(tensors: list[Tensor], function: str, taken: Tensor | None) -> list[Tensor]:
    return _function(function).placeholders()


# A host function may have side effects, so it runs even if its result is not used.
torch.fx.node.has_side_effect(torch.ops.poptorch.call_on_host.default)
