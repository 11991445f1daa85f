"""Graph boundaries of lazy mode, and the settings for inference."""

from __future__ import annotations

from habana_frameworks._emulation import lazy
from habana_frameworks.torch import hpu as hpu
from habana_frameworks.torch.core import quantization as quantization
from habana_frameworks.torch.core import step_closure as step_closure
from habana_frameworks.torch.core.quantization import hpu_inference_initialize as hpu_inference_initialize
from habana_frameworks.torch.core.quantization import hpu_initialize as hpu_initialize
from habana_frameworks.torch.core.quantization import hpu_reset_env as hpu_reset_env
from habana_frameworks.torch.core.quantization import hpu_set_env as hpu_set_env
from habana_frameworks.torch.core.quantization import hpu_set_inference_env as hpu_set_inference_env
from habana_frameworks.torch.core.quantization import hpu_teardown_inference_env as hpu_teardown_inference_env
from habana_frameworks.torch.core.step_closure import add_step_closure as add_step_closure
from habana_frameworks.torch.utils import debug, experimental
from habana_frameworks.torch.utils.internal import is_lazy as is_lazy

htdebug, htexp = debug, experimental
"""Short names of two modules."""


def mark_step(device_str: str = "", sync: bool = False) -> None:
    """End the current graph of lazy mode, then call the step closures; eager mode does nothing."""
    # In eager mode too: it notices that the mode was changed after the import.
    lazy.mark()
    if is_lazy():
        hpu.check_device(device_str or "hpu")
        step_closure.run_waiting()
        if sync:
            hpu.synchronize()


def iter_mark_step(device_str: str = "") -> None:
    """End an iteration of lazy mode; here the same as mark_step."""
    del device_str
    mark_step()
