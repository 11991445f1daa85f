"""The dotted names that expressions have through imports: ``nn.Linear`` is ``torch.nn.Linear``."""

from __future__ import annotations

import ast

from pilotage.porting.sources.source import Source

__all__ = ["Names"]

_OTHER_NAMES = {
    "torch.utils.data.dataloader.DataLoader": "torch.utils.data.DataLoader",
    "torch.nn.parallel.distributed.DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel": "torch.nn.DataParallel",
    "torch.amp.autocast": "torch.autocast",
    "torch.amp.autocast_mode.autocast": "torch.autocast",
    "torch.amp.grad_scaler.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.cuda.amp.GradScaler",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "torch.nn.utils.clip_grad_norm_",
}


class Names:
    """The imports of one script."""

    def __init__(self, source: Source) -> None:
        self.imported: dict[str, str] = {}
        """Local names with their dotted names; relative imports begin with dots."""
        for node in source.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.name if alias.asname else alias.name.split(".")[0]
                    self.imported[alias.asname or name] = name
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    joint = "" if module.endswith(".") else "."
                    self.imported[alias.asname or alias.name] = f"{module}{joint}{alias.name}"

    def dotted(self, node: ast.AST) -> str | None:
        """The dotted name of an expression; None if it does not begin with an imported name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.imported:
            return None
        name = ".".join([self.imported[node.id], *reversed(parts)])
        return _OTHER_NAMES.get(name, name)

    def calls(self, node: ast.AST) -> str | None:
        """The dotted name of the function that a call calls; None for other nodes."""
        return self.dotted(node.func) if isinstance(node, ast.Call) else None

    def local(self, dotted: str) -> str | None:
        """How a dotted name is written with the present imports; None if it cannot be."""
        best: str | None = None
        for name, meant in self.imported.items():
            if dotted == meant:
                return name
            if dotted.startswith(meant + "."):
                written = name + dotted[len(meant) :]
                best = written if best is None or len(written) < len(best) else best
        return best
