"""Torch's transformers, which look into a mask to find out whether it is the causal one.

They ask only to choose a faster kernel. For the time of a capture they are told to take the mask as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import nn

_HINTS: Mapping[type[nn.Module], tuple[int, str]] = {
    nn.TransformerEncoder: (3, "is_causal"),
    nn.TransformerDecoder: (6, "tgt_is_causal"),
}
"""Where forward takes the answer."""


@contextmanager
def masks_as_given(module: nn.Module) -> Iterator[None]:
    """Let such parts of a module be captured inside of the block."""
    with ExitStack() as handles:
        for part in module.modules():
            if any(type(part).forward is kind.forward for kind in _HINTS):
                handles.enter_context(part.register_forward_pre_hook(_answer, prepend=True, with_kwargs=True))
        yield


def _answer(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    place, name = next(hint for kind, hint in _HINTS.items() if type(part).forward is kind.forward)
    if len(args) > place:
        return (*args[:place], bool(args[place]), *args[place + 1 :]), kwargs
    return args, {**kwargs, name: bool(kwargs.get(name))}
