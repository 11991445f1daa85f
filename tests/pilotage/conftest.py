"""Plain PyTorch versions of what calls of a program do, and other fixtures of the engine's tests."""

from __future__ import annotations

import copy
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from pilotage.monitoring.announcement import Activity, Announcement

ENGINE = {
    "capture",
    "compiler",
    "devices",
    "equals_eager",
    "execution",
    "optim",
    "passes",
    "program",
    "runtime",
    "storage",
    "strategies",
}


@pytest.fixture(autouse=True)
def on_the_cpu(request, monkeypatch):
    """Use the CPU: the engine's tests compare bitwise with eager PyTorch there; tests of cards name their device."""
    if request.path.relative_to(Path(__file__).parent).parts[0] in ENGINE:
        monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


class EagerReference:
    """The loops of one call in plain PyTorch, for modules whose forward returns a tuple that ends with the loss."""

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        device_iterations: int = 1,
        gradient_accumulation: int = 1,
        replicas: int = 1,
        replicas_per_input: int = 1,
        outputs: str = "final",
        output_period: int = 1,
        reduction: str = "mean",
    ) -> None:
        self.module = module
        self.optimizer = optimizer
        self.iterations, self.accumulation, self.replicas = device_iterations, gradient_accumulation, replicas
        self.replicas_per_input = replicas_per_input
        self.mode, self.period, self.reduction = outputs, output_period, reduction
        self.buffers = [[b.clone() for b in module.buffers()] for _ in range(replicas)]

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        feeds = self.replicas // self.replicas_per_input
        parts = self.iterations * self.accumulation * feeds
        batches = list(zip(*(tensor.chunk(parts) for tensor in inputs), strict=True))
        results = {}
        for iteration in range(self.iterations):
            if self.optimizer is not None:
                self.optimizer.zero_grad()
            for accumulation in range(self.accumulation):
                for replica in range(self.replicas):
                    place = (iteration * self.accumulation + accumulation) * feeds + replica // self.replicas_per_input
                    results[iteration, accumulation, replica] = self._micro_batch(replica, batches[place])
            self._update()
        self._show_buffers(0)
        return self._chosen(results)

    def _micro_batch(self, replica: int, batch: Sequence[Tensor]) -> tuple[Tensor, ...]:
        self._show_buffers(replica)
        outputs = self.module(*batch)
        if self.optimizer is not None:
            outputs[-1].backward()
        self.buffers[replica] = [buffer.clone() for buffer in self.module.buffers()]
        return tuple(output.detach().clone() for output in outputs)

    def _show_buffers(self, replica: int) -> None:
        with torch.no_grad():
            for buffer, value in zip(self.module.buffers(), self.buffers[replica], strict=True):
                buffer.copy_(value)

    def _update(self) -> None:
        if self.optimizer is None:
            return
        pooled = self.accumulation * self.replicas
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and self.reduction == "mean" and pooled > 1:
                    parameter.grad /= pooled
        self.optimizer.step()

    def _chosen(self, results: dict[tuple[int, int, int], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        if self.mode == "sum":
            kept = [
                tuple(map(sum, zip(*(value for key, value in results.items() if key[2] == replica), strict=True)))
                for replica in range(self.replicas)
            ]
        else:
            wanted = {
                "all": lambda i, a: True,
                "every_n": lambda i, a: (i + 1) % self.period == 0,
                "final": lambda i, a: (i, a) == (self.iterations - 1, self.accumulation - 1),
            }[self.mode]
            kept = [value for (i, a, _), value in results.items() if wanted(i, a)]
        if len(kept) == 1:
            return kept[0]
        return tuple(
            torch.stack(pieces) if pieces[0].dim() == 0 else torch.cat(pieces) for pieces in zip(*kept, strict=True)
        )


@pytest.fixture(scope="session")
def eager() -> type[EagerReference]:
    return EagerReference


@pytest.fixture(scope="session")
def twins() -> Callable[[Callable[[], nn.Module]], tuple[nn.Module, nn.Module]]:
    """Two identical modules."""

    def make(build: Callable[[], nn.Module], seed: int = 0) -> tuple[nn.Module, nn.Module]:
        torch.manual_seed(seed)
        module = build()
        return module, copy.deepcopy(module)

    return make


@pytest.fixture(scope="session")
def assert_equal() -> Callable[..., None]:
    """Tensors, or nested values of them, are the same to the last bit, or within an absolute tolerance."""

    def check(actual: Any, expected: Any, tolerance: float = 0.0) -> None:
        torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance, equal_nan=True)

    return check


@pytest.fixture(scope="session")
def assert_same_state(assert_equal) -> Callable[..., None]:
    """Two modules have the same parameters and buffers."""

    def check(module: nn.Module, other: nn.Module, tolerance: float = 0.0) -> None:
        assert_equal(dict(module.state_dict()), dict(other.state_dict()), tolerance)

    return check


@pytest.fixture(scope="session")
def fake_tensors() -> Callable[[Any], list[str]]:
    """Paths of all fake tensors inside an object."""
    return _fake_tensors


def _fake_tensors(root: Any) -> list[str]:
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", root)]
    seen: set[int] = set()
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FakeTensor):
            found.append(path)
        elif isinstance(value, dict):
            waiting.extend((f"{path}[{key!r}]", item) for key, item in value.items())
        elif isinstance(value, (list, tuple, set)):
            waiting.extend((f"{path}[]", item) for item in value)
        elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type):
            waiting.append((f"{path}.", value.__dict__))
    return found


@pytest.fixture
def warned() -> Callable[[Any], None]:
    """A listener that collects the engine's warnings in ``messages``."""
    messages: list[str] = []

    def listen(event: Any) -> None:
        if hasattr(event, "message"):
            messages.append(event.message)

    listen.messages = messages
    return listen


@pytest.fixture
def line_of(request) -> Callable[[str], str]:
    """The ``file:line`` of the one line of the test's own file that ends with a comment."""

    def find(comment: str) -> str:
        lines = request.path.read_text().splitlines()
        (number,) = (number for number, line in enumerate(lines, 1) if line.endswith(f"  # {comment}"))
        return f"{request.path}:{number}"

    return find


@pytest.fixture(scope="session")
def announcement():
    """Make an announcement with default values, except for those given."""

    def make(**changes: Any) -> Announcement:
        plain: dict[str, Any] = {
            "program": None,
            "trains": True,
            "devices": ("cpu",),
            "hardware": ("",),
            "tier": "graph",
            "activity": Activity.RUNNING,
            "since": 90.0,
            "moment": 100.0,
            "calls": 5,
            "steps": 50,
            "updates": 50,
            "rate": 125.0,
            "period": 0.1,
            "replicas": 1,
            "instance": 0,
            "instances": 1,
            "stage": None,
            "job": None,
        }
        return Announcement(**{**plain, **changes})

    return make


class KeyPress:
    """Sends SIGINT before one instruction of Pilotage's code, counted from the start of the block.

    It is a real signal, so that code can delay it. Python itself handles signals only at calls and jumps.
    """

    PLACES = ("/pilotage/", "/poptorch/", "<pilotage graph")

    def __init__(self, instruction: int, places: Sequence[str] = PLACES) -> None:
        self.instruction = instruction
        self._places = places
        self.passed = 0
        """How many instructions there were, until the signal was sent."""
        self.was_sent = self.was_felt = False

    def __enter__(self) -> KeyPress:
        # Python 3.12 and 3.13 report instructions only if a traced frame asks for them before tracing begins.
        frame = sys._getframe()
        frame.f_trace, frame.f_trace_opcodes = self._ignore, True
        sys.settrace(self._enter)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, traceback: Any) -> bool:
        sys.settrace(None)
        self.was_felt = kind is KeyboardInterrupt
        return self.was_felt

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if "/tests/" in name or not any(place in name for place in self._places):
            return None
        frame.f_trace, frame.f_trace_opcodes = self._follow, True
        return self._follow

    @staticmethod
    def _ignore(frame: FrameType, event: str, argument: Any) -> None:
        """Follow nothing."""

    def _follow(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and not self.was_sent:
            self.passed += 1
            if self.passed == self.instruction:
                self.was_sent = True
                signal.raise_signal(signal.SIGINT)
        return self._follow


@pytest.fixture(scope="session")
def key_press() -> type[KeyPress]:
    return KeyPress
