"""Modules of a watched process: which one is trained, in which mode, and from which of its outputs."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from pilotage.proof.watching.ahead import addresses_of
from pilotage.proof.watching.digests import tensors_in
from pilotage.proof.watching.lines import users_line
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.watch import Watch

__all__ = ["ModeCheck", "ModuleWatch"]

_OF_HOOKS = r"Using `torch.compile\(module\)` when there are global hooks"

_NORMALISING = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DROPPING = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def depends_on_mode(module: nn.Module) -> bool:
    """Whether a module computes something else in evaluation than in training."""
    if isinstance(module, _DROPPING):
        return module.p > 0
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return bool(module.dropout)
    return isinstance(module, _NORMALISING)


class ModeCheck:
    """Tells whether a module is trained in evaluation mode.

    Parts that were put in evaluation mode one by one, to keep their statistics, or whose weights are frozen, are so on
    purpose.
    """

    def __init__(self, module: nn.Module) -> None:
        self._sensitive = [each for each in module.modules() if depends_on_mode(each)]
        parts = set(self._sensitive)
        self._owners = [
            each
            for each in module.modules()
            if each not in parts
            and any(part in parts for part in each.modules())
            and any(parameter.requires_grad for parameter in each.parameters())
        ]

    @property
    def depends_on_mode(self) -> bool:
        """Whether anything in the module depends on the mode."""
        return bool(self._sensitive)

    def is_in_eval_mode(self, modes: Mapping[nn.Module, bool] | None = None) -> bool:
        """Whether nothing that depends on the mode is in training mode, and what holds it is not either."""

        def trains(module: nn.Module) -> bool:
            return module.training if modes is None else modes.get(module, module.training)

        if not self._sensitive or any(map(trains, self._sensitive)):
            return False
        return not all(map(trains, self._owners))


class ModuleWatch:
    """Follows the modules of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._outermost: weakref.ref[nn.Module] | None = None
        self._mode: ModeCheck | None = None
        self._later: list[weakref.ref[nn.Module]] | None = None
        """Modules that were called after it and before backward: one may be what is trained. None while it runs."""
        self.rows: int | None = None
        """How many rows the outermost module was given, in the first updates."""
        self.given: Collection[int] = ()
        """Addresses of the tensors that it was given since the last backward pass, in the first updates."""
        self.inputs: Sequence[Tensor] = ()
        """These tensors."""
        self._returned: list[Tensor] = []
        """The losses that the outermost module has returned."""
        self._hooks: list[Any] = []
        self.is_over = False
        """Whether nothing more can be seen at a backward pass: later ones need not call."""
        self._eval_lines: weakref.WeakKeyDictionary[nn.Module, str | None] = weakref.WeakKeyDictionary()
        self._last_eval_line: str | None = None

    def install(self) -> None:
        """Follow modules from now on."""
        replace_function(nn.Module, "train", self._train)
        self._look_for_outermost()

    # The outermost module of a forward pass

    def _look_for_outermost(self) -> None:
        # torch warns of hooks that are not the script's own.
        warnings.filterwarnings("ignore", _OF_HOOKS)
        self._hooks = [
            register_module_forward_pre_hook(self._forward_begins),
            register_module_forward_hook(self._forward_ends),
        ]

    def _forward_begins(self, module: nn.Module, arguments: Any) -> None:
        # First of all, so that Dynamo traces nothing else of this.
        if torch.compiler.is_compiling():
            return
        if self._watch.is_in_program or not torch.is_grad_enabled():
            return
        is_within = self._outermost is not None and self._later is None
        if is_within or next(module.parameters(), None) is None:
            return
        if self._later is not None:
            self._later.append(weakref.ref(module))
            return
        self._outermost = weakref.ref(module)
        self._mode = ModeCheck(module)
        tensors = tensors_in(arguments)
        first = next((each for each in tensors if each.dim()), None)
        self.rows = None if first is None else first.shape[0]
        self.given, self.inputs = addresses_of(tensors), tensors

    def _forward_ends(self, module: nn.Module, arguments: Any, output: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if module is self.outermost and not self._watch.is_in_program:
            self._later = self._later or []
            found = tensors_in(output)
            self._returned = [each for each in found if each.numel() == 1 and each.grad_fn is not None]

    @property
    def outermost(self) -> nn.Module | None:
        """The module that the present or last forward pass began with."""
        return None if self._outermost is None else self._outermost()

    def at_backward(self, root: Tensor, facts: dict[str, Any]) -> None:
        """Note the mode of the module that was run; the hook on all modules goes once it is known."""
        self.given = self.inputs = ()
        if self._outermost is not None and self._later:
            self._choose([self._outermost, *self._later], root)
        module = self.outermost
        if module is None:
            return
        if self._mode is not None and self._mode.is_in_eval_mode():
            facts["in_eval_mode"] = True
            facts["eval_line"] = self.eval_line(module)
        if not self._hooks:
            return
        self._outermost_facts(module, facts)
        returned, self._returned = self._returned, []
        if returned and not any(_is_behind(each, root) for each in returned):
            facts["misses_returned_loss"] = True
        if self._watch.updates >= 1:
            # Hooks on every module cost too much to stay.
            for hook in self._hooks:
                hook.remove()
            self._hooks = []
            self.is_over = self._mode is not None and not self._mode.depends_on_mode
        else:
            self._outermost = None
        self._later = None

    def _choose(self, called: Sequence[weakref.ref[nn.Module]], root: Tensor) -> None:
        """Take the first module with parameters behind a loss: before it, a script may have called a teacher."""
        trained = _trained_by(root)
        for each in called:
            module = each()
            if module is not None and any(parameter in trained for parameter in module.parameters()):
                if each is not self._outermost:
                    self._outermost, self._mode, self._returned = each, ModeCheck(module), []
                break

    def _outermost_facts(self, module: nn.Module, facts: dict[str, Any]) -> None:
        facts["module"] = type(module).__name__

    # Modes

    def eval_line(self, module: nn.Module) -> str | None:
        """Where a module, or one that holds it, was last put in evaluation mode."""
        if module in self._eval_lines:
            return self._eval_lines[module]
        parts = set(module.modules())
        related = [
            line
            for owner, line in self._eval_lines.items()
            if owner in parts or any(each is module for each in owner.modules())
        ]
        # A program may train a copy of the module.
        return related[-1] if related else self._last_eval_line

    def _train(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def train(module: nn.Module, mode: bool = True) -> Any:
            # Record only the call that changes the mode.
            if not mode and module.training and not self._watch.is_in_program:
                line = users_line()
                if module not in self._eval_lines or line is not None:
                    self._eval_lines[module] = self._last_eval_line = line
            return original(module, mode)

        return train


def _is_behind(loss: Tensor, root: Tensor) -> bool:
    """Whether the root was computed from the loss."""
    return loss is root or any(node is loss.grad_fn for node in _nodes_behind(root))


def _trained_by(root: Tensor) -> set[Tensor]:
    """The tensors that get gradients in a backward pass from the root."""
    return {node.variable for node in _nodes_behind(root) if hasattr(node, "variable")}


def _nodes_behind(root: Tensor) -> Iterator[Node]:
    waiting: list[Node | None] = [root.grad_fn]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting.extend(above for above, _ in node.next_functions)
