"""Traces a step function into a graph.

The function runs once, on tensors without data, and every operation of forward, backward and update is recorded. What
cannot be static (a branch on a value, a shape that depends on data) raises an error that names the user's line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import GraphModule

from pilotage.capture.attributes import AttributeWatch, Change, frozen_value, lost_state, once_each
from pilotage.capture.functions.function_mode import StaticCalls, compiled_functions_inlined
from pilotage.capture.functions.randomness import HostDraws, RandomDraws, undisturbed_generators
from pilotage.capture.functions.refusals import shape_refusal, value_refusal
from pilotage.capture.functions.static_forms import unchecked_distributions
from pilotage.capture.functions.tensor_indices import IndexCopies
from pilotage.capture.functions.writes import HostWrites, WriteGuard
from pilotage.errors import CaptureError
from pilotage.program.graphs.fake_kernels import known_shapes, silent_meta_kernels
from pilotage.program.graphs.origins import OriginRecorder
from pilotage.program.graphs.rewrites import clean_up, hidden_writes
from pilotage.program.graphs.source_lines import raised_at
from pilotage.program.layout import Section, Slot
from pilotage.program.specification import TensorSpec
from pilotage.program.step_function import StepFunction
from pilotage.torch_private import (
    TO_COPY,
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
    make_fx,
    storage_address,
    use_lazy_graph_module,
)

_HOST = torch.device("cpu")
_CONVERSIONS = frozenset(
    {
        TO_COPY,
        torch.ops.aten.clone.default,
        torch.ops.aten.detach.default,
        torch.ops.aten.lift_fresh_copy.default,
    }
)
"""Operations that give the same result if they are repeated on it."""

_WRITTEN_ONCE = (
    "forward writes into a tensor that is neither an input nor a parameter or buffer. forward runs once, at capture: "
    "later "
    "steps do not write to it, and use what it held then. Make it a buffer of the module if it has to change."
)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A traced step."""

    graph: GraphModule
    written: frozenset[int]
    """The arguments that the step changes."""

    draws_random_numbers: bool
    warnings: tuple[str, ...]
    """Warnings about the module's forward."""


def trace(
    step: StepFunction, arguments: Sequence[TensorSpec], device: torch.device, watch: AttributeWatch | None
) -> Trace:
    """Run a step once without data and record its operations."""
    on_host = _slots_on_host(step)
    fake_mode = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True, shape_env=None)
    with fake_mode:
        fakes = [specification.empty(_HOST if i in on_host else device) for i, specification in enumerate(arguments)]
    versions = [fake._version for fake in fakes]
    recording, host_draws = _Recording(step, watch), HostDraws()
    with (
        undisturbed_generators(),
        _explained(),
        silent_meta_kernels(),
        known_shapes(),
        unchecked_distributions(),
        compiled_functions_inlined(),
        fake_mode,
        torch.autograd.set_multithreading_enabled(False),
        # Programs run from the graph itself; the Python code that torch generates for it may never be needed.
        use_lazy_graph_module(True),
        device,
    ):
        traced = make_fx(recording, tracing_mode="real", _allow_non_fake_inputs=True)(*fakes)
    warnings = recording.check_attributes(traced)
    graph = clean_up(traced)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    hidden = {written for node in graph.graph.nodes for written in hidden_writes(node)}
    changed = [fake._version != version for fake, version in zip(fakes, versions, strict=True)]
    return Trace(
        graph=graph,
        written=frozenset(i for i, node in enumerate(placeholders) if changed[i] or node in hidden),
        draws_random_numbers=recording.draws.any,
        warnings=(*warnings, *host_draws.warnings()),
    )


def _slots_on_host(step: StepFunction) -> frozenset[int]:
    """The arguments of a step that are optimizer slots on the host."""
    layout = step.layout
    state = [
        each
        for section in step.sections
        for each in (layout.slots if section is Section.SLOTS else layout.section(section))
    ]
    return frozenset(i for i, each in enumerate(state) if isinstance(each, Slot) and layout.is_on_host(each))


class _Recording:
    """The traced function: runs the step, and watches random draws and the module's attributes."""

    def __init__(self, step: StepFunction, watch: AttributeWatch | None) -> None:
        self._step = step
        self._watch = watch
        self._host = HostWrites() if watch is not None and watch.once else None
        self._changes: list[Change] = []
        self.draws: RandomDraws

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        self.draws, copies = RandomDraws(), IndexCopies()
        try:
            with self.draws, self._guard(), copies, OriginRecorder(), StaticCalls(copies):
                outputs = self._step(*tensors)
                copies.refuse_lost_writes()
        except BaseException:
            # Another attempt must find the module unchanged.
            self._put_back(everything=True)
            if self._host is not None:
                self._host.undo()
            raise
        self._put_back()
        return [*outputs, *(change.after for change in self._new_tensors())]

    def _put_back(self, *, everything: bool = False) -> None:
        self._changes = self._watch.changes() if self._watch else []
        for change in self._changes:
            if everything or change.holds_tensors:
                change.put_back()

    def _guard(self) -> AbstractContextManager[object]:
        return nullcontext() if self._watch is None else WriteGuard(self._watch.lost_write, self._host)

    def _new_tensors(self) -> list[Change]:
        return [change for change in self._changes if isinstance(change.after, Tensor)]

    def check_attributes(self, traced: GraphModule) -> tuple[str, ...]:
        """Raise for attribute tensors that are lost state, and remove new ones from the graph's results."""
        in_place = [] if self._watch is None else self._watch.tensors_changed_in_place()
        for change in in_place:
            if self._host is None or not self._host.has_written(change.before):
                raise lost_state(change)
        may_lose = self._watch is not None and self._watch.once
        output = next(node for node in traced.graph.nodes if node.op == "output")
        attributes = self._new_tensors()
        results = list(output.args[0])
        kept = len(results) - len(attributes)
        same = []
        for change, node in zip(attributes, results[kept:], strict=True):
            if change.replaces_a_tensor and _is_converted(node, change.before):
                same.append(change)
            elif not (may_lose or change.is_note) and _depends_on_the_run(
                node, or_on_constants=change.replaces_a_tensor
            ):
                raise lost_state(change)
        output.args = (results[:kept],)
        changes = [change for change in (*self._changes, *in_place) if not any(change is each for each in same)]
        outside = (_WRITTEN_ONCE,) if self._host is not None and self._host.any and not in_place else ()
        return (*dict.fromkeys(map(frozen_value, once_each(changes))), *outside)


def _is_converted(node: object, before: Tensor) -> bool:
    """Whether a value is only an old tensor in another type: converting it again, at the next step, changes nothing."""
    while isinstance(node, torch.fx.Node) and node.op == "call_function" and node.target in _CONVERSIONS:
        node = node.args[0]
    if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
        return False
    constant = getattr(node.graph.owning_module, str(node.target), None)
    return isinstance(constant, Tensor) and storage_address(constant.untyped_storage()) == storage_address(
        before.untyped_storage()
    )


def _depends_on_the_run(node: object, *, or_on_constants: bool) -> bool:
    """Whether a value depends on arguments, on random numbers or, if asked, on constants."""
    sources = ("placeholder", "get_attr") if or_on_constants else ("placeholder",)
    if not isinstance(node, torch.fx.Node):
        return False
    waiting, seen = [node], set()
    while waiting:
        current = waiting.pop()
        if current.op in sources or torch.Tag.nondeterministic_seeded in getattr(current.target, "tags", ()):
            return True
        if current not in seen:
            seen.add(current)
            waiting.extend(current.all_input_nodes)
    return False


@contextmanager
def _explained() -> Iterator[None]:
    """Turn torch's errors about untraceable code into errors that say what to do."""
    try:
        yield
    except DataDependentOutputException as error:
        raise value_refusal(str(error.func), where=raised_at(error.__traceback__)) from error
    except DynamicOutputShapeException as error:
        raise shape_refusal(str(error.func), where=raised_at(error.__traceback__)) from error
    except UnsupportedOperatorException as error:
        raise CaptureError(
            f"The operation {error.func} cannot be captured: it does not declare the shape of its result. "
            f"Register a fake implementation with torch.library.register_fake.{raised_at(error.__traceback__)}"
        ) from error
    except NotImplementedError as error:
        if "HigherOrderOperator" in str(error):
            raise CaptureError(
                "torch's own control flow (torch.cond, while_loop, scan) cannot be captured. Compute both sides and "
                "choose with torch.where(condition, one, other), and write loops in Python, with a plain number of "
                f"rounds.{raised_at(error.__traceback__)}"
            ) from error
        if "argument of type" not in str(error):
            raise
        raise CaptureError(
            f"forward passes something to a torch operation that torch {torch.__version__} cannot write into a graph "
            f"({error}), for example a generator. Pass a tensor instead, or use torch's default generator."
            f"{raised_at(error.__traceback__)}"
        ) from error
    except RuntimeError as error:
        if "no fake impl registered" in str(error):
            raise CaptureError(
                f"A custom operation cannot be captured: it does not declare the shape of its result. {error}"
                f"{raised_at(error.__traceback__)}"
            ) from error
        raise
