"""Models as text, with the blocks that they begin."""

from __future__ import annotations

import builtins
from typing import Any

from torch import nn

__all__ = ["module_repr", "print"]


def module_repr(module: nn.Module) -> str:
    """A module as text; in front of each part stands what is hooked before its forward, blocks among it."""
    hooks = "".join(f"{hook!r} " for hook in module._forward_pre_hooks.values())
    if type(module).__repr__ is not nn.Module.__repr__:
        return hooks + repr(module)
    extra = module.extra_repr()
    parts = [_part(name, part) for name, part in module._modules.items()]
    if not parts and "\n" not in extra:
        return f"{hooks}{module._get_name()}({extra})"
    lines = [*(extra.split("\n") if extra else ()), *parts]
    inside = "".join(f"\n  {line}" for line in lines)
    return f"{hooks}{module._get_name()}({inside}\n)"


def print(*args: Any, **kwargs: Any) -> None:
    """Print as Python does; a module that comes first is printed with its blocks before."""
    if args and isinstance(args[0], nn.Module):
        builtins.print(module_repr(args[0]), **kwargs)
    builtins.print(*args, **kwargs)


def _part(name: str, part: nn.Module | None) -> str:
    text = "None" if part is None else module_repr(part)
    return f"({name}): " + text.replace("\n", "\n  ")
