"""What does not run on Gaudi."""

from __future__ import annotations

import ast

from pilotage.porting.finding import Severity
from pilotage.porting.porting import Porting
from pilotage.porting.rule import Example, Rule
from pilotage.porting.sources.source import Source
from pilotage.porting.target import Target

__all__ = ["RULE"]

_MODULES = {
    "apex": "Use torch's own mixed precision and DistributedDataParallel.",
    "bitsandbytes": "Use torch's optimizers and bfloat16.",
    "cupy": "Use torch's operations.",
    "flash_attn": "Use torch.nn.functional.scaled_dot_product_attention.",
    "nvidia": "Use torch's loaders.",
    "pycuda": "Write the kernel as operations of torch.",
    "pynvml": "Use hl-smi, or pyhlml.",
    "tensorrt": "Leave it out.",
    "triton": "Write the kernel as operations of torch.",
    "xformers": "Use torch.nn.functional.scaled_dot_product_attention.",
}
_CALLS = {
    "torch.jit.script": "Leave it out: Gaudi compiles the operations itself.",
    "torch.jit.trace": "Leave it out: Gaudi compiles the operations itself.",
    "torch.utils.cpp_extension.load": "Write the kernel as operations of torch.",
    "torch.utils.cpp_extension.load_inline": "Write the kernel as operations of torch.",
}


def _apply(porting: Porting) -> None:
    for source in porting.project.sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    _judge_module(porting, source, node, alias.name)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                _judge_module(porting, source, node, node.module)
            elif (name := porting.project.names[source].calls(node)) in _CALLS:
                message = f"{name} does not work on Gaudi."
                porting.find(source, node, RULE.name, Severity.BY_HAND, message, _CALLS[name])


def _judge_module(porting: Porting, source: Source, node: ast.stmt, module: str) -> None:
    first = module.split(".")[0]
    if first in _MODULES and porting.project.module(source, first) is None:
        porting.find(
            source, node, RULE.name, Severity.BY_HAND, f"The package {first} is for CUDA only.", _MODULES[first]
        )


RULE = Rule(
    name="hpu-unsupported",
    targets=frozenset({Target.HPU}),
    what="Packages and functions that need CUDA are reported.",
    why="They fail on Gaudi, and what replaces them depends on the program.",
    example=Example(
        before="""\
import torch
from apex import amp
""",
        finds="The package apex is for CUDA only",
    ),
    apply=_apply,
)
