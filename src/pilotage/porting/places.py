"""The kinds of places that a port has to look at, and the kind of a node."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pilotage.porting.analysis.code.names import Names

__all__ = ["KINDS", "TRAINING", "places_of"]

TRAINING = "backward passes"
KINDS = (
    TRAINING,
    "optimizers",
    "optimizer steps",
    "schedules of learning rates",
    "loaders",
    "devices by name",
    ".cuda() and .to(device)",
    "torch.cuda functions",
    "mixed precision",
    "DataParallel and DistributedDataParallel",
    "process groups and backends",
    "clipped gradients",
    "gradient hooks and torch.autograd.grad",
    "values read to the host",
    "saved and loaded weights",
    "torch.compile and torch.jit",
    "packages for CUDA only",
    "commands for NVIDIA's driver",
)
"""All kinds, in the order of tables."""

_DEVICE = re.compile(r"(cuda|mps|xpu)(:\d+)?")
_METHODS = {
    "backward": TRAINING,
    "cuda": ".cuda() and .to(device)",
    "item": "values read to the host",
    "register_hook": "gradient hooks and torch.autograd.grad",
    "register_full_backward_hook": "gradient hooks and torch.autograd.grad",
    "register_backward_hook": "gradient hooks and torch.autograd.grad",
    "load_state_dict": "saved and loaded weights",
}
_CALLS = {
    "torch.utils.data.DataLoader": "loaders",
    "torch.autocast": "mixed precision",
    "torch.cuda.amp.autocast": "mixed precision",
    "torch.cuda.amp.GradScaler": "mixed precision",
    "torch.amp.GradScaler": "mixed precision",
    "torch.nn.DataParallel": "DataParallel and DistributedDataParallel",
    "torch.nn.parallel.DistributedDataParallel": "DataParallel and DistributedDataParallel",
    "torch.distributed.init_process_group": "process groups and backends",
    "torch.nn.utils.clip_grad_norm_": "clipped gradients",
    "torch.nn.utils.clip_grad_value_": "clipped gradients",
    "torch.autograd.grad": "gradient hooks and torch.autograd.grad",
    "torch.save": "saved and loaded weights",
    "torch.load": "saved and loaded weights",
    "torch.compile": "torch.compile and torch.jit",
    "torch.jit.script": "torch.compile and torch.jit",
    "torch.jit.trace": "torch.compile and torch.jit",
}
_CUDA_PACKAGES = {"apex", "bitsandbytes", "cupy", "flash_attn", "pycuda", "pynvml", "tensorrt", "triton", "xformers"}


def places_of(names: Names, node: ast.AST) -> Iterator[str]:
    """The kinds of a node; empty for most nodes."""
    if isinstance(node, ast.Call):
        yield from _call(names, node)
    elif isinstance(node, ast.Attribute):
        dotted = names.dotted(node) or ""
        if dotted.startswith("torch.cuda.") and not dotted.startswith("torch.cuda.amp"):
            yield "torch.cuda functions"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _DEVICE.fullmatch(node.value):
            yield "devices by name"
        elif node.value in ("nccl", "gloo"):
            yield "process groups and backends"
        elif "nvidia-smi" in node.value:
            yield "commands for NVIDIA's driver"
    elif isinstance(node, ast.Import):
        yield from (_package for alias in node.names for _package in _packages(alias.name))
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield from _packages(node.module or "")


def _call(names: Names, call: ast.Call) -> Iterator[str]:
    dotted = names.dotted(call.func)
    if dotted is not None:
        if dotted in _CALLS:
            yield _CALLS[dotted]
        elif dotted.startswith("torch.optim.lr_scheduler."):
            yield "schedules of learning rates"
        elif re.fullmatch(r"torch\.optim\.[A-Z]\w*", dotted):
            yield "optimizers"
        return
    if not isinstance(call.func, ast.Attribute):
        return
    method, owner = call.func.attr, ast.unparse(call.func.value)
    if method in _METHODS:
        yield _METHODS[method]
    elif method == "to" and any("dev" in ast.unparse(each).lower() for each in [*call.args, *call.keywords]):
        yield ".cuda() and .to(device)"
    elif method == "step" and "opt" in owner.lower():
        yield "optimizer steps"


def _packages(module: str) -> Iterator[str]:
    if module.split(".")[0] in _CUDA_PACKAGES:
        yield "packages for CUDA only"
