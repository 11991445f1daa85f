"""Names a class of one script in another one."""

from __future__ import annotations

import ast

from pilotage.porting.project import Project
from pilotage.porting.sources.source import Source

__all__ = ["base_module", "reference"]


def reference(project: Project, source: Source, owner: Source, name: str) -> tuple[str, ast.stmt | None, str] | None:
    """The text for a class of another script, and an import to add after a statement; None if it is out of reach."""
    if source is owner:
        return name, None, ""
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if project.module(source, module) is owner:
                return name, node, f"from {module} import {name}"
            for alias in node.names:
                joint = "" if module.endswith(".") else "."
                if project.module(source, f"{module}{joint}{alias.name}") is owner:
                    return f"{alias.asname or alias.name}.{name}", None, ""
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if project.module(source, alias.name) is owner:
                    return f"{alias.asname or alias.name}.{name}", None, ""
    return None


def base_module(project: Project, source: Source) -> str:
    """How ``torch.nn.Module`` is written in a script."""
    return project.names[source].local("torch.nn.Module") or "torch.nn.Module"
