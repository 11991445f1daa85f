"""Random operations during capture.

A checkpointed part of a model runs twice, and eager PyTorch makes both runs draw the same numbers by restoring the
generator's state. A captured graph has no generator to restore, so two captured draws would differ and the gradients
would be silently wrong. Here each draw is identified by the generator's state: a draw in a state that was seen before
is the same draw and returns the same numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import Tensor

from pilotage.capture.functions.writes import written
from pilotage.errors import CaptureError
from pilotage.program.graphs.source_lines import called_from
from pilotage.torch_private import TorchDispatchMode, disable_current_modes, schema_of


class RandomDraws(TorchDispatchMode):
    """While active, a draw in a known generator state returns the numbers drawn there before."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._drawn: dict[bytes, _Draw] = {}
        self._reachable = {_generator_state()}

    @property
    def any(self) -> bool:
        """Whether the program draws random numbers."""
        return bool(self._drawn)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation; a random one runs once for each generator state."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        state = _generator_state()
        if state in self._drawn:
            result = self._drawn[state].again(func, args, kwargs)
        else:
            self._refuse_seeding(state)
            result = func(*args, **kwargs)
            self._drawn[state] = _Draw.of(result, written(func, args, kwargs))
        self._reachable.add(_advance())
        return result

    def _refuse_seeding(self, state: bytes) -> None:
        if state not in self._reachable:
            raise CaptureError(
                "forward sets the state of torch's random generator (torch.manual_seed, set_rng_state or fork_rng) and "
                "then draws from it. A captured program would seed only once. "
                f"Seed outside the model, or pass the random tensor as an input.{called_from()}"
            )


class HostDraws:
    """Detects draws from generators other than torch's."""

    def __init__(self) -> None:
        self._before = _host_states()

    def warnings(self) -> tuple[str, ...]:
        """A warning for each generator that was used."""
        now = _host_states()
        return tuple(
            f"forward draws from {name}. forward runs once, at capture: all later steps reuse the same numbers. "
            "Draw with torch.rand or similar, or pass the numbers as an input."
            for name in now
            if now[name] != self._before[name]
        )


def _host_states() -> dict[str, Any]:
    state: Any = numpy.random.get_state(legacy=True)
    _, keys, *rest = state
    return {"Python's random": random.getstate(), "numpy.random": (keys.tobytes(), *rest)}


@contextmanager
def undisturbed_generators() -> Iterator[None]:
    """Restore torch's generators afterwards, so that capture does not change the user's random numbers."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        yield


def _generator_state() -> bytes:
    with disable_current_modes():
        return bytes(torch.default_generator.get_state().numpy())


def _advance() -> bytes:
    with disable_current_modes():
        torch.rand(())
    return _generator_state()


@dataclass(frozen=True)
class _Draw:
    """What a random operation returned and wrote, as copies; dead code elimination removes unused ones."""

    result: Any
    written: tuple[Tensor, ...]

    @classmethod
    def of(cls, result: Any, written: Sequence[Tensor]) -> _Draw:
        return cls(_copy(result), tuple(tensor.clone() for tensor in written))

    def again(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Repeat the draw with the same numbers."""
        targets = written(func, args, kwargs)
        for target, drawn in zip(targets, self.written, strict=True):
            target.copy_(drawn)
        returns_its_target = schema_of(func).returns[0].alias_info is not None
        return targets[0] if returns_its_target else _copy(self.result)


def _copy(result: Any) -> Any:
    if isinstance(result, Tensor):
        return result.clone()
    if isinstance(result, (tuple, list)):
        return type(result)(_copy(item) for item in result)
    return result
