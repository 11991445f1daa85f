"""Code that switches gradients on or off by a condition."""

from __future__ import annotations

import ast

from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["gradient_switches"]


def gradient_switches(project: Project, source: Source, node: ast.AST) -> list[ast.Call]:
    """The calls of ``torch.set_grad_enabled`` inside of a node; around a training step they switch gradients on."""
    names = project.names[source]
    return [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and names.calls(each) == "torch.set_grad_enabled" and each.args
    ]
