"""Types that a script asks for (casts of modules, casts of tensors whose result is thrown away, autocast), and types
that it computes in.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from pilotage.proof.watching.lines import direct_line, is_users, users_line
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.splitting.forward_record import product_types
from pilotage.proof.watching.watch import Watch
from pilotage.torch_private import results_of_node

if TYPE_CHECKING:
    from pilotage.program.program import Program

__all__ = ["PrecisionWatch", "last_product_type", "program_types", "type_name", "weight_types"]

_NARROW = (torch.float16, torch.bfloat16)
_MOVES = {"cuda": "cuda"}
"""Methods of a module that move it, and where to."""

_PRODUCT_NODES = (
    *("Addmm", "Addmv", "Baddbmm", "Bmm", "Mm", "Mv", "Linear", "MkldnnLinear"),
    *("Convolution", "MkldnnConvolution", "CudnnConvolution", "MkldnnRnn", "CudnnRnn", "MiopenRnn"),
    "ScaledDotProduct",
)
"""How the names of those nodes of autograd begin that compute the gradient of a product."""

_PRODUCT, _COMPILED, _OTHER = "product", "compiled", "other"
_KINDS: dict[type[Node], str] = {}
"""What is known of the classes of nodes; each operation has one."""

_MOST_NODES = 50
"""How many nodes are looked at from a loss to the product before it."""

_CASTS = {"half": torch.float16, "bfloat16": torch.bfloat16}


class PrecisionWatch:
    """Records which types are asked for, and where; and the devices that modules are moved to."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._moved: set[str] = set()
        self._autocasts: set[str] = set()

    def install(self) -> None:
        """Follow casts from now on."""
        for name in ("half", "bfloat16", "to", "cuda"):
            replace_function(nn.Module, name, partial(self._asked, name))
        for name in _CASTS:
            # Tensor inherits them from a class that cannot be changed.
            setattr(Tensor, name, self._discarded(name, getattr(Tensor, name)))
        replace_function(torch.autocast, "__init__", self._autocast)
        replace_function(torch.cuda, "is_available", self._is_available)

    def _asked(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def asked(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            line = users_line()
            given = [*args, *kwargs.values()] + ([_CASTS[name]] if name in _CASTS else [])
            dtype = next((each for each in given if isinstance(each, torch.dtype)), None)
            device = _MOVES.get(name) or _device_in(given)
            if dtype in _NARROW:
                self._watch.note("asked", what="type", type=type_name(dtype), how=name, line=line)
            try:
                result = original(module, *args, **kwargs)
            except Exception as error:
                if device is not None:
                    self._watch.note("asked", what="device", device=device, error=str(error)[:200], line=line)
                raise
            if device is not None and device not in self._moved:
                self._moved.add(device)
                self._watch.note("asked", what="device", device=device, error=None, line=line)
            return result

        return asked

    def _discarded(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def cast(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if _is_discarded(frame.f_code, frame.f_lasti) and is_users(frame.f_code.co_filename):
                line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                if line not in self._autocasts:
                    self._autocasts.add(line)
                    self._watch.note("asked", what="discarded", type=type_name(_CASTS[name]), how=name, line=line)
            return original(tensor, *args, **kwargs)

        return cast

    def _autocast(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def init(context: Any, *args: Any, **kwargs: Any) -> None:
            original(context, *args, **kwargs)
            line = users_line()
            if line is None or line in self._autocasts or self._watch.is_in_program:
                return
            self._autocasts.add(line)
            self._watch.note(
                "asked",
                what="autocast",
                type=type_name(context.fast_dtype),
                device=context.device,
                enabled=bool(kwargs.get("enabled", args[2] if len(args) > 2 else True)),
                trains=torch.is_grad_enabled(),
                line=line,
            )

        return init

    def _is_available(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def is_available() -> bool:
            found = bool(original())
            line = direct_line()
            if line is not None and "available" not in self._moved:
                self._moved.add("available")
                self._watch.note("asked", what="availability", device="cuda", found=found, line=line)
            return found

        return is_available


@lru_cache(maxsize=1024)
def _is_discarded(code: CodeType, place: int) -> bool:
    """Whether the result of the call at this place of some code is thrown away."""
    following = [each.opname for each in dis.get_instructions(code) if each.offset > place]
    return bool(following) and following[0] == "POP_TOP"


def _device_in(values: list[Any]) -> str | None:
    for value in values:
        if isinstance(value, torch.device):
            return value.type
        if isinstance(value, str):
            return value.split(":")[0]
    return None


def last_product_type(loss: Tensor) -> torch.dtype | None:
    """The type of the last product before a loss, read from its graph of autograd; None if none is found.

    This is done in every step, so it looks at a few nodes only: the others are recorded once, with all operations.
    """
    node: Node | None = loss.grad_fn
    for _ in range(_MOST_NODES):
        if node is None:
            break
        kind = _KINDS.get(type(node)) or _kind_of(type(node))
        if kind == _PRODUCT:
            results = results_of_node(node)
            return results[0].dtype if results else None
        if kind == _COMPILED:
            break
        for above, _ in node.next_functions:
            if above is not None:
                break
        else:
            break
        node = above
    return None


def _kind_of(node: type[Node]) -> str:
    name = node.__name__
    # What torch.compile has compiled is one node, whatever it computes.
    is_compiled = name == "CompiledFunctionBackward"
    kind = _KINDS[node] = _COMPILED if is_compiled else _PRODUCT if name.startswith(_PRODUCT_NODES) else _OTHER
    return kind


def weight_types(optimizer: torch.optim.Optimizer) -> dict[torch.dtype, None]:
    """The types of the weights of an optimizer, each once, in their order."""
    return {each.dtype: None for group in optimizer.param_groups for each in group["params"]}


def program_types(program: Program) -> dict[str, Any]:
    """In which types the products of a program are computed, and how many of them; and the types of its weights."""
    graphs = [each.graph.graph for each in program.computations.values() if each.graph is not None]
    calls = [node for graph in graphs for node in graph.nodes if node.op == "call_function"]
    named = ((str(getattr(node.target, "__name__", node.target)), node.meta.get("val")) for node in calls)
    weights = (program.layout.parameters[name].dtype for name in program.layout.trained)
    return {"computed_in": product_types(named), "weights": list(dict.fromkeys(map(type_name, weights)))}


def type_name(dtype: Any) -> str:
    """The name of a type, without ``torch.``."""
    return str(dtype).removeprefix("torch.")
