"""What PopTorch does while a model is compiled, and what it checks about the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from torch import nn

from pilotage.engine import enter_stage
from poptorch._capture.attributes_once import attributes_as_captured
from poptorch._capture.block_record import Visit
from poptorch._capture.compile_hooks import around_forward
from poptorch._capture.forward_run import ForwardRun
from poptorch._capture.indexing import Indexing
from poptorch._capture.ipu_device import IpuDevice
from poptorch._capture.mixed_types import MixedTypes, recurrent_inputs_of_any_type
from poptorch._capture.module_scopes import module_scopes
from poptorch._capture.seeding import HostSeed
from poptorch._capture.strided_groups import StridedGroups
from poptorch._capture.substitution import _OverwriteContextManager
from poptorch._checks.buffers import check_broadcast
from poptorch._checks.ipus import check_ipu_count, check_pipeline_depth, pipeline_stages
from poptorch.options import Options

__all__ = ["Capture", "capturing", "current_capture", "current_run"]

_current: ContextVar[Capture | None] = ContextVar("poptorch_capture", default=None)


@contextmanager
def capturing(module: nn.Module, options: Options, *, training: bool) -> Iterator[Capture]:
    """Do what PopTorch does while a module is compiled, and check what its forward shows.

    Keep the result as long as the program: it holds the host functions that the program calls.
    """
    capture = Capture(options, training=training)
    names = module_scopes(module) if options._module_namescope_enabled else nullcontext()
    with around_forward(), _OverwriteContextManager(), names, capture.following(module):
        yield capture


def current_capture() -> Capture | None:
    """The compilation in progress, if any."""
    return _current.get()


def current_run() -> ForwardRun | None:
    """The run of forward in progress during a compilation, if any."""
    capture = _current.get()
    return None if capture is None else capture.run


class Capture:
    """One compilation: its options, and what its forward did."""

    def __init__(self, options: Options, *, training: bool) -> None:
        self.options = options
        self.training = training
        self.run: ForwardRun | None = None
        """The run of forward in progress."""
        self.visits: list[Visit] = []
        """The blocks of the last complete run, in order."""
        self.reserved_ipus = 0
        """How many IPUs PopTorch would reserve for the model."""
        self.host_functions: list[Any] = []
        """Functions that the program calls on the host."""
        self.host_seed = HostSeed()
        """What forward has seeded torch with."""
        self._finished: ForwardRun | None = None
        self._depth = 0
        self._active = ExitStack()
        self._is_copied = False

    def __deepcopy__(self, memo: object) -> Capture:
        """A copy of the module has copies of its hooks. They do nothing: `repeating` registers others."""
        copied = Capture(self.options, training=self.training)
        copied._is_copied = True
        return copied

    @contextmanager
    def following(self, module: nn.Module) -> Iterator[None]:
        """Record each run of this module's forward in the block; the eager tier needs it at every call."""
        handles = [
            module.register_forward_pre_hook(self._begin, prepend=True, with_kwargs=True),
            module.register_forward_hook(self._end, always_call=True),
            # Only a forward that succeeded is checked, so that its own error is the one that is raised.
            module.register_forward_hook(self._check),
        ]
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)
            self._stop()
            for handle in handles:
                handle.remove()

    @contextmanager
    def repeating(self, module: nn.Module) -> Iterator[None]:
        """Do the same around a forward that eager PyTorch repeats; it runs a copy of the module."""
        with _OverwriteContextManager(), attributes_as_captured(module), self.following(module):
            yield

    def _begin(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._is_copied:
            return
        self._depth += 1
        if self._depth == 1:
            placer = self.options._execution_strategy.placer()
            state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
            self._active.enter_context(recurrent_inputs_of_any_type())
            self._active.enter_context(self.host_seed.taken())
            self._active.enter_context(IpuDevice())
            self._active.enter_context(Indexing())
            self._active.enter_context(MixedTypes())
            if self.options._Popart.settings.strided_groups:
                self._active.enter_context(StridedGroups())
            self.run = self._active.enter_context(ForwardRun(placer, [args, kwargs], state))

    def _end(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        if self._is_copied:
            return
        self._depth -= 1
        if self._depth == 0:
            self._finished = self.run
            self._stop()

    def _check(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        finished, self._finished = self._finished, None
        if finished is None:
            return
        finished.check_overlaps(result)
        check_broadcast(self.options, finished.written_state)
        self.visits = finished.blocks.visits
        ipus = finished.blocks.ipus
        self.reserved_ipus = check_ipu_count(self.options, ipus)
        check_pipeline_depth(self.options, pipeline_stages(ipus), training=self.training)

    def _stop(self) -> None:
        """End the run, even after an interruption."""
        self.run = None
        self._depth = 0
        self._active.close()
        enter_stage(None)
