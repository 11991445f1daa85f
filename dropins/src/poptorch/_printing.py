"""Models as text, with the blocks that they begin."""

from __future__ import annotations

import builtins
from itertools import groupby
from typing import Any

from torch import nn

from pilotage.engine import class_name, forward_pre_hooks

__all__ = ["module_repr", "print"]


def module_repr(module: nn.Module) -> str:
    """A module as text; each part is preceded by its forward pre-hooks, such as blocks."""
    hooks = "".join(f"{hook!r} " for hook in forward_pre_hooks(module).values())
    if type(module).__repr__ not in (nn.Module.__repr__, nn.ModuleList.__repr__):
        return hooks + repr(module)
    extra = module.extra_repr()
    parts = [(name, "None" if part is None else module_repr(part)) for name, part in module._modules.items()]
    if isinstance(module, nn.ModuleList):
        parts = _with_repeats(parts)
    if not parts and "\n" not in extra:
        return f"{hooks}{class_name(module)}({extra})"
    lines = [*(extra.split("\n") if extra else ()), *(_indented(f"({name}): {text}") for name, text in parts)]
    inside = "".join(f"\n  {line}" for line in lines)
    return f"{hooks}{class_name(module)}({inside}\n)"


def print(*args: Any, **kwargs: Any) -> None:
    """Print as Python does; if the first argument is a module, its blocks are shown."""
    if args and isinstance(args[0], nn.Module):
        builtins.print(module_repr(args[0]), **kwargs)
    builtins.print(*args, **kwargs)


def _with_repeats(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Equal neighbours as one entry with a count, as torch shows the elements of a list."""
    grouped = []
    for text, group in groupby(parts, key=lambda part: part[1]):
        names = [name for name, _ in group]
        several = (f"{names[0]}-{names[-1]}", f"{len(names)} x {text}")
        grouped.append(several if len(names) > 1 else (names[0], text))
    return grouped


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
