"""Records the first update of a plain PyTorch script: its operations, and the lifetimes of its tensors."""

from __future__ import annotations

import sys
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from pilotage.options.batching import Batching
from pilotage.prediction.memory.update import ALWAYS, UpdateTrace
from pilotage.prediction.prediction import Traced
from pilotage.prediction.replacing import replaced
from pilotage.prediction.scripts.reached import Reached
from pilotage.prediction.trace.classification import name_of, work_of
from pilotage.prediction.trace.operations import Category, Phase, TracedOperation, TracedTensor
from pilotage.prediction.trace.tensor_values import described, tensors_in
from pilotage.prediction.trace.work import WorkKind
from pilotage.program.graphs.source_lines import is_users

__all__ = ["UpdateWatch"]


class _Memory:
    """A tensor's memory while the update runs."""

    __slots__ = ("category", "first", "last", "line", "module", "name", "reference", "size")

    def __init__(
        self, reference: StorageWeakRef, name: str, size: int, category: Category, module: str, line: str | None
    ) -> None:
        self.reference = reference
        self.name, self.size, self.category, self.module, self.line = name, size, category, module, line
        self.first, self.last = -1, ALWAYS


class UpdateWatch:
    """Records operations from the first forward in training to the end of the optimizer's first step."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._root: nn.Module | None = None
        self._names: dict[nn.Module, str] = {}
        self._entered: list[nn.Module] = []
        self._phase = Phase.FORWARD
        self._operations: list[TracedOperation] = []
        self._memories: dict[int, _Memory] = {}
        self._done: list[_Memory] = []
        self._samples, self._input_bytes = 1, 0
        self._is_users: dict[str, bool] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch modules, backward passes and optimizers."""
        hooks = (
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
            register_optimizer_step_pre_hook(self._begin_step),
            register_optimizer_step_post_hook(self._end_step),
        )
        backward = torch.autograd.backward
        try:
            with replaced(torch.autograd, "backward", self._in_backward(backward)):
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def observe(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
        """Note one operation."""
        if self._root is None:
            return
        self._note_ends()
        work = work_of(func, args, kwargs, result)
        line = self._line() if self._phase is Phase.FORWARD else None
        module = self._names.get(self._entered[-1], "") if self._entered else ""
        index = max(0, len(self._operations) - 1)
        if work.kind is not WorkKind.FREE:
            index = len(self._operations)
            self._operations.append(
                TracedOperation(
                    name=name_of(func),
                    phase=self._phase,
                    work=work,
                    module=module,
                    line=line,
                    output=described(result),
                )
            )
        for tensor in tensors_in(result):
            self._note(tensor, name_of(func), Category.TEMPORARIES, index, module, line)

    # Hooks

    def _enter(self, module: nn.Module, arguments: Any) -> None:
        if (
            self._root is None
            and torch.is_grad_enabled()
            and module.training
            and any(True for _ in module.parameters())
        ):
            self._begin(module, arguments)
        self._entered.append(module)

    def _leave(self, module: nn.Module, arguments: Any, result: Any) -> None:
        if self._entered and self._entered[-1] is module:
            self._entered.pop()

    def _begin(self, root: nn.Module, arguments: Any) -> None:
        self._root = root
        self._names = {module: name for name, module in root.named_modules()}
        for name, tensor in (*root.named_parameters(), *root.named_buffers()):
            self._note(tensor, name, Category.WEIGHTS, -1, name.rpartition(".")[0], None)
        inputs = tensors_in(arguments)
        for place, tensor in enumerate(inputs):
            self._note(tensor, f"input {place}", Category.INPUTS, -1, "", None)
        self._input_bytes = sum(each.numel() * each.element_size() for each in inputs)
        self._samples = inputs[0].shape[0] if inputs and inputs[0].dim() else 1

    def _in_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            before, self._phase = self._phase, Phase.BACKWARD
            try:
                return original(*args, **kwargs)
            finally:
                self._phase = before

        return backward

    def _begin_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._phase = Phase.UPDATE

    def _end_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if self._root is not None and any(each.phase is Phase.BACKWARD for each in self._operations):
            raise Reached(self._traced(optimizer))
        self._phase = Phase.FORWARD

    # Memory

    def _note(self, tensor: Tensor, name: str, category: Category, first: int, module: str, line: str | None) -> None:
        storage = tensor.untyped_storage()
        reference = StorageWeakRef(storage)
        if reference.cdata in self._memories:
            return
        memory = _Memory(reference, name, storage.nbytes(), category, module, line)
        memory.first = first
        self._memories[reference.cdata] = memory

    def _note_ends(self) -> None:
        """Find out which memory is no longer in use."""
        ended = [key for key, each in self._memories.items() if each.reference.expired()]
        for key in ended:
            memory = self._memories.pop(key)
            memory.last = max(memory.first, len(self._operations) - 1)
            self._done.append(memory)

    def _traced(self, optimizer: torch.optim.Optimizer) -> Traced:
        self._sort(optimizer)
        backward = [i for i, each in enumerate(self._operations) if each.phase is Phase.BACKWARD]
        tensors = tuple(
            TracedTensor(
                name=each.name,
                bytes=each.size,
                category=Category.ACTIVATIONS if self._is_kept(each, backward) else each.category,
                first=each.first,
                last=each.last,
                module=each.module,
                line=each.line,
                is_stored=each.first < 0 and each.category is not Category.INPUTS,
            )
            for each in (*self._done, *self._memories.values())
            if each.size
        )
        update = UpdateTrace(operations=tuple(self._operations), times=(1,) * len(self._operations), tensors=tensors)
        parameters = [] if self._root is None else list(self._root.parameters())
        return Traced(
            name=self._name,
            update=update,
            batching=Batching(),
            samples=self._samples,
            trains=True,
            input_bytes=self._input_bytes,
            eager=True,
            parameters=sum(each.numel() for each in parameters),
            types=tuple(sorted({str(each.dtype).removeprefix("torch.") for each in parameters})),
        )

    def _is_kept(self, memory: _Memory, backward: Sequence[int]) -> bool:
        """Whether forward created the tensor and backward used it."""
        if memory.category is not Category.TEMPORARIES or memory.first < 0 or memory.last >= ALWAYS:
            return False
        place = bisect(backward, memory.first)
        is_of_forward = self._operations[memory.first].phase is Phase.FORWARD
        return is_of_forward and place < len(backward) and backward[place] <= memory.last

    def _sort(self, optimizer: torch.optim.Optimizer) -> None:
        """Find out which of the tensors are gradients and optimizer state."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._recategorize(parameter.grad, Category.GRADIENTS)
        for state in optimizer.state.values():
            for value in state.values():
                if isinstance(value, Tensor):
                    self._recategorize(value, Category.OPTIMIZER)

    def _recategorize(self, tensor: Tensor, category: Category) -> None:
        memory = self._memories.get(StorageWeakRef(tensor.untyped_storage()).cdata)
        if memory is not None:
            memory.category = category
            if category is Category.OPTIMIZER:
                # From the second update on, optimizer state exists from the start.
                memory.first = -1

    def _line(self) -> str | None:
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            name = frame.f_code.co_filename
            known = self._is_users.get(name)
            if known is None:
                known = self._is_users[name] = is_users(name) and not name.startswith("<")
            if known:
                return f"{name}:{frame.f_lineno}"
            frame = frame.f_back
        return None
