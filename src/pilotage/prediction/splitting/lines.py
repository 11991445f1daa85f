"""A split as lines of a script."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["begin_block_lines", "enter_stage_lines", "expression_of"]


def begin_block_lines(modules: Sequence[str], model: str = "model", first: str = "") -> list[str]:
    """The lines that begin a block at each of these modules, on the second and later devices.

    ``first`` is the module that begins the first stage, if there is one: PopTorch counts the stages that begin.
    """
    found = []
    for place, module in enumerate((first, *modules)):
        if module:
            path = expression_of(module, model)
            found.append(f'{path} = poptorch.BeginBlock({path}, "stage {place}", ipu_id={place})')
    return found


def enter_stage_lines(modules: Sequence[str], model: str = "model") -> list[str]:
    """The lines that enter a stage before each of these modules runs, for `pilotage.training`."""
    paths = [model, *(expression_of(module, model) for module in modules)]
    return [
        f"{path}.register_forward_pre_hook(lambda *_: pilotage.enter_stage({place}))"
        for place, path in enumerate(paths)
    ]


def expression_of(module: str, model: str) -> str:
    """A path of modules as an expression: ``layers.3.norm`` is ``model.layers[3].norm``."""
    text = model
    for part in module.split("."):
        if part.isdigit():
            text += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_]\w*", part):
            text += f".{part}"
        else:
            text += f".get_submodule({part!r})"
    return text
