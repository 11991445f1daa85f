"""Updates that a script makes itself, without a program: forward, backward and the steps of its optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from pilotage.prediction.trace.modules import ModuleNames
from pilotage.profiling.clocks import synchronize
from pilotage.profiling.costs import tensors_in
from pilotage.profiling.eager_look import EagerLook
from pilotage.profiling.subject import Facts, Stage, Subject
from pilotage.proof.watching.patching import replace_function

if TYPE_CHECKING:
    from pilotage.profiling.watch import ScriptWatch

__all__ = ["EagerWatch"]


class EagerWatch:
    """Follows the model that this process trains with plain PyTorch."""

    def __init__(self, watch: ScriptWatch) -> None:
        self._watch = watch
        self._names = ModuleNames()
        self._stack: list[tuple[nn.Module, float]] = []
        self._root: nn.Module | None = None
        self._samples: int | None = None
        self._start: float | None = None
        """When the forward pass of the present update began."""
        self._step = 0.0
        self._look: EagerLook | None = None
        self._tracing: Any = None
        self._handles: list[Any] = []
        self._followed: nn.Module | None = None

    def install(self) -> None:
        """Start following updates."""
        self._follow(None)
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        replace_function(torch.autograd, "backward", self._backward)

    def _follow(self, root: nn.Module | None) -> None:
        """Follow the forward passes of all modules, or only of one: that is quicker while updates are timed."""
        for handle in self._handles:
            handle.remove()
        if root is None:
            self._handles = [
                register_module_forward_pre_hook(self._enter),
                register_module_forward_hook(self._leave, always_call=True),
            ]
        else:
            self._handles = [
                root.register_forward_pre_hook(self._enter),
                root.register_forward_hook(self._leave, always_call=True),
            ]
        self._followed = root

    @property
    def module(self) -> str:
        """The path of the module that runs forward."""
        for module, _ in reversed(self._stack):
            name = self._names.of(module)
            if name is not None:
                return name
        return ""

    def _enter(self, module: nn.Module, arguments: Any) -> None:
        if self._watch.is_in_program or not torch.is_grad_enabled():
            return
        now = time.perf_counter()
        if not self._stack:
            self._start = self._start or now
            if self._names.of(module) is None:
                self._names.learn(module)
            if self._root is None or (module is not self._root and _size(module) > _size(self._root)):
                self._root = module
            if module is self._root and self._samples is None:
                shapes = [each.shape for each in tensors_in(arguments) if each.dim()]
                self._samples = int(shapes[0][0]) if shapes else None
        self._stack.append((module, now))

    def _leave(self, module: nn.Module, arguments: Any, result: Any) -> None:
        if not self._stack or self._stack[-1][0] is not module:
            return
        _, begun = self._stack.pop()
        if not self._stack:
            name = f"forward of {type(module).__name__}"
            self._watch.timeline.note("main thread", name, begun, time.perf_counter())

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if self._watch.is_in_program:
                return original(*args, **kwargs)
            with self._watch.timeline.activity("backward"):
                return original(*args, **kwargs)

        return backward

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._step = time.perf_counter()
        if self._look is not None:
            self._look.is_updating = True

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        watch = self._watch
        if watch.is_in_program:
            return
        known = watch.subject_of(optimizer)
        if known is not None and known.stage is not Stage.WARMING:
            synchronize(known.facts.device)
        end = time.perf_counter()
        watch.timeline.note("main thread", f"{type(optimizer).__name__}.step", self._step, end)
        subject = known or watch.new_subject(optimizer, lambda: self._facts(optimizer))
        self._end_look(subject)
        start, self._start = self._start if self._start is not None else self._step, None
        watch.updated(subject, start, end, 1)
        wanted = self._root if subject.stage is Stage.TIMING else None
        if wanted is not self._followed:
            self._follow(wanted)
        self._begin_look(subject, optimizer)

    def _begin_look(self, subject: Subject, optimizer: torch.optim.Optimizer) -> None:
        """Time the operations of the next update, if that is due."""
        if subject.stage is Stage.LOOKING:
            self._look = self._look or EagerLook(
                subject.facts.device, lambda: self.module, lambda: self._watch.is_loading
            )
            self._look.begin(self._root, optimizer)
        elif subject.stage is Stage.TRACING and self._tracing is None:
            self._tracing = self._watch.tracing(subject)
            self._tracing.__enter__()

    def _end_look(self, subject: Subject) -> None:
        if subject.stage is Stage.LOOKING and self._look is not None:
            self._look.end()
            subject.table = self._look.table
        elif subject.stage is Stage.TRACING and self._tracing is not None:
            self._tracing.__exit__(None, None, None)

    def _facts(self, optimizer: torch.optim.Optimizer) -> Facts:
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        device = next((each.device for each in parameters if isinstance(each, Tensor)), torch.device("cpu"))
        types = sorted({str(each.dtype).removeprefix("torch.") for each in parameters})
        return Facts(
            name="model" if self._root is None else type(self._root).__name__,
            trains=True,
            device=device,
            label=str(device),
            samples=self._samples,
            micro_batch=self._samples,
            parameters=sum(each.numel() for each in parameters),
            precision=" and ".join(types),
            how="As plain PyTorch",
        )


def _size(module: nn.Module) -> int:
    return sum(1 for _ in module.modules())
