"""Compiled autograd: backward is traced at run time and compiled as a whole."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from habana_frameworks.torch.dynamo.compile_backend.backends import hpu_backend
from pilotage.engine import compiled_autograd, dynamo_config

_entered: list[AbstractContextManager[None]] = []


def enable_compiled_autograd(**kwargs: Any) -> None:
    """Compile backward passes with ``hpu_backend`` from now on; the arguments are those of torch.compile."""
    torch.compiler.reset()
    dynamo_config.optimize_ddp = "python_reducer"
    options = {"inference": False, **kwargs.pop("options", {})}
    enabled = compiled_autograd(torch.compile(backend=hpu_backend, options=options, **kwargs))
    enabled.__enter__()
    # Kept: leaving the context would disable it.
    _entered.append(enabled)
