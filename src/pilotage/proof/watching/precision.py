"""Types that a script asks for: casts of modules, casts of tensors whose result is thrown away, and autocast."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.proof.watching.lines import direct_line, is_users, users_line
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.watch import Watch

__all__ = ["PrecisionWatch"]

_NARROW = (torch.float16, torch.bfloat16)
_MOVES = {"cuda": "cuda"}
"""Methods of a module that move it, and where to."""

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
                self._watch.note("asked", what="type", type=_name(dtype), how=name, line=line)
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
                    self._watch.note("asked", what="discarded", type=_name(_CASTS[name]), how=name, line=line)
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
                type=_name(context.fast_dtype),
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


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
