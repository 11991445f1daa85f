"""Time each operation that PyTorch runs in one update of a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.profiling.clocks import clock_for
from pilotage.profiling.costs import bytes_of, described, flops_of, is_free, operation_name, tensors_in
from pilotage.profiling.device_memory import LiveTensors, allocated_bytes
from pilotage.profiling.observation import Observed, PeakSeen, Sighting, Table
from pilotage.proof.watching.lines import users_line
from pilotage.torch_private import TorchDispatchMode, current_autograd_node, next_sequence_number, sequence_number

__all__ = ["EagerLook"]


class EagerLook:
    """Fills a table with the operations of some updates; all of them should run the same operations.

    Large because what it knows about the present update is reset when the next one begins.
    """

    def __init__(
        self, device: torch.device, module: Callable[[], str], is_elsewhere: Callable[[], bool] = lambda: False
    ) -> None:
        """``module`` tells which module runs; ``is_elsewhere`` whether something else than the model does."""
        self.table = Table()
        self.is_updating = False
        """Whether the optimizer is running its step."""
        self._device = device
        self._module = module
        self._is_elsewhere = is_elsewhere
        self._live = LiveTensors()
        self._clock = clock_for(device)
        self._mode: _Recorder | None = None
        self._timed: list[int] = []
        self._place = 0
        self._is_lost = False
        """Whether this update runs different operations than the first one."""
        self._is_first = True
        self._origins: dict[int, tuple[str, str | None]] = {}
        """Module and line of each differentiable operation, by its number in autograd."""
        self._hooks: list[Any] = []

    def begin(self, root: nn.Module | None, optimizer: torch.optim.Optimizer) -> None:
        """Start recording."""
        self.is_updating, self._place, self._is_lost, self._timed = False, 0, False, []
        self._origins.clear()
        named = {} if root is None else dict(root.named_parameters())
        for name, parameter in named.items():
            self._live.add(parameter, name, "weights", name.rpartition(".")[0])
            if parameter.grad is not None:
                self._live.add(parameter.grad, f"gradient of {name}", "gradients", name.rpartition(".")[0])
            if parameter.requires_grad and parameter.is_leaf:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(self._is_gradient(name)))
        for state in optimizer.state.values():
            for key, value in state.items():
                if isinstance(value, Tensor) and value.device == self._device:
                    self._live.add(value, f"{key} of the optimizer", "optimizer")
        self._mode = _Recorder(self)
        self._mode.__enter__()  # type: ignore[no-untyped-call]

    def _is_gradient(self, name: str) -> Callable[[Tensor], None]:
        def note(parameter: Tensor) -> None:
            if parameter.grad is not None:
                self._live.rename(parameter.grad, f"gradient of {name}", "gradients")

        return note

    def end(self) -> None:
        """The update is over."""
        if self._mode is None:
            return
        self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._mode = None
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        for place, seconds in zip(self._timed, self._clock.seconds(), strict=True):
            if place >= 0:
                self.table.sightings[place].seconds.append(seconds)
        self._is_first = False

    def run(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run one operation."""
        if self._is_elsewhere():
            return func(*args, **kwargs)
        module, line, phase = self._origin()
        if is_free(func):
            return func(*args, **kwargs)
        self._clock.start()
        result = func(*args, **kwargs)
        self._clock.stop()
        place = self._sight(operation_name(func))
        self._timed.append(place)
        if place < 0:
            return result
        sighting = self.table.sightings[place]
        if self._is_first:
            sighting.what = Observed(
                name=sighting.what.name,
                phase=phase,
                module=module,
                line=line,
                output=described(result),
                flops=flops_of(func, args, kwargs, result),
                bytes=bytes_of(args, kwargs, result),
            )
        self._note_memory(place, args, result, sighting.what)
        return result

    def _origin(self) -> tuple[str, str | None, str]:
        if self.is_updating:
            return "", users_line(), "update"
        differentiated: Any = current_autograd_node()
        if differentiated is not None:
            return (*self._origins.get(sequence_number(differentiated), ("", None)), "backward")
        origin = (self._module(), users_line())
        self._origins.setdefault(next_sequence_number() - 1, origin)
        return (*origin, "forward")

    def _sight(self, name: str) -> int:
        """The place of the next operation in the table; -1 once an update differs from the first one."""
        sightings, place = self.table.sightings, self._place
        if self._is_first:
            sightings.append(Sighting(Observed(name=name, phase="forward"), runs=1))
        elif self._is_lost or place >= len(sightings) or sightings[place].what.name != name:
            self._is_lost = True
            return -1
        self._place += 1
        return place

    def _note_memory(self, place: int, args: Sequence[Any], result: Any, what: Observed) -> None:
        for tensor in tensors_in(list(args)):
            if tensor.device == self._device:
                self._live.add(tensor, "input", "inputs")
        category = "activations" if what.phase == "forward" else "temporaries"
        for tensor in tensors_in(result):
            if tensor.device == self._device:
                self._live.add(tensor, what.name, category, what.module, what.line)
        total = allocated_bytes(self._device) or self._live.total
        self.table.note_memory(place, total, dict(self._live.sums))
        if self.table.peak is None or self._live.total > self.table.peak.bytes:
            self.table.peak = PeakSeen(place, self._live.total, dict(self._live.sums), self._live.holdings())


class _Recorder(TorchDispatchMode):
    """Passes every operation to an `EagerLook`."""

    def __init__(self, look: EagerLook) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._look = look

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation with a clock around it."""
        return self._look.run(func, args, kwargs or {})
