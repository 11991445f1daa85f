"""One comparison of a program with eager PyTorch.

A call that makes one update is compared itself. Of a call with several device iterations, the first is run beforehand:
by the same code, on the same state, which is put back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from pilotage.arrival.comparison import quantities, tolerance
from pilotage.arrival.first_difference import ModuleOutputs, first_difference, labelled, outputs_in_program
from pilotage.arrival.foreign_random import ForeignRandomNumbers
from pilotage.arrival.limits import CheckLimits, TooExpensive
from pilotage.arrival.module_copy import CopyError, Skeleton
from pilotage.arrival.obstacles import left_out
from pilotage.arrival.reference import Outcome, Reference, Start
from pilotage.arrival.rounding import InFloat64, OtherRounding
from pilotage.arrival.silence import silence
from pilotage.arrival.snapshot import Snapshot, copied, outcome_of
from pilotage.arrival.update import UnknownRule
from pilotage.arrival.verdict import Verdict, judge
from pilotage.errors import MismatchError
from pilotage.events import Checked, Warned
from pilotage.execution.walk import micro_batches_of
from pilotage.interrupts import INTERRUPTS
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.check import OnMismatch
from pilotage.options.choices import OutputMode, Tier
from pilotage.program.program import Action
from pilotage.program.schedule import Schedule, make_schedule
from pilotage.program.structure import tensor_paths
from pilotage.runtime.call import BoundCall
from pilotage.runtime.session import Session
from pilotage.turns import PROCESS_WIDE

if TYPE_CHECKING:
    from pilotage.runtime.arrival_check import ArrivalCheck

_ATTEMPTS = 3
"""How often eager PyTorch runs again with other rounding, beside float64."""

_CONTINUE = "To continue anyway, set on_mismatch='warn', or check='off' (PILOTAGE_CHECK=off)."
_REMEDY = (
    "The weights are those from before the call. Try tier='graph' (PILOTAGE_TIER=graph) to leave out compiled code, "
    "and tier='eager' to leave out the capture; look for time, Python state or random numbers in forward that change "
    f"from run to run. {_CONTINUE}"
)


@dataclass(kw_only=True)
class Comparison:
    """A call that is about to be compared.

    Large because it holds where the call begins, to run it twice.
    """

    check: ArrivalCheck
    session: Session
    skeleton: Skeleton
    call: BoundCall
    plan: OptimizerPlan | None
    """The optimizer with its present values."""

    snapshot: Snapshot
    start: Start
    schedule: Schedule
    """The steps that are compared: all of the call, or those of its first device iteration."""

    inputs: Sequence[Tensor]
    """The micro-batches that these steps read."""

    foreign: ForeignRandomNumbers = field(default_factory=ForeignRandomNumbers)
    """The states of Python's and numpy's generators when the call began."""

    @classmethod
    def begin(
        cls,
        check: ArrivalCheck,
        skeleton: Skeleton,
        session: Session,
        call: BoundCall,
        plan: OptimizerPlan | None,
        on_device: Mapping[str, Tensor] | None,
    ) -> Comparison:
        """Save the state before the call; call this before the host's weights are marked as outdated."""
        schedule, inputs = session.schedule, call.inputs
        if schedule.iterations > 1:
            per_iteration = schedule.micro_batches // schedule.iterations
            schedule = make_schedule(
                replace(check.compilation.execution.batching, device_iterations=1),
                trains=session.program.trains,
                mode=OutputMode.ALL,
                pools=Action.UPDATE in session.program.computations,
            )
            whole = session.schedule.micro_batches
            inputs = [each[: each.shape[0] // whole * per_iteration] for each in inputs]
        # Forward may write to its inputs.
        inputs = copies_of(inputs)
        if check.compilation.pipeline_group is not None:
            check.compilation.pipeline_group.broadcast(inputs)
        snapshot = Snapshot(session.attached, session.streams)
        return cls(
            check=check,
            session=session,
            skeleton=skeleton,
            call=call,
            plan=plan,
            snapshot=snapshot,
            start=snapshot.start(check.compilation.module, trains=session.program.trains, on_device=on_device),
            schedule=schedule,
            inputs=inputs,
        )

    def run(self) -> list[Tensor]:
        """Run the call and return its outputs, if they agree with eager PyTorch."""
        shares_generator = self.session.program.draws_random_numbers and self.session.streams.shared
        # Torch's generator belongs to all threads: none of ours may draw between the two runs. Interrupts wait, since
        # a comparison puts back what it changes, in inference too.
        with PROCESS_WIDE if shares_generator else INTERRUPTS:
            # If it is interrupted before the program runs, no update of this call is done.
            self.session.attached.updates_of_call = 0
            self.foreign = left = ForeignRandomNumbers()
            try:
                outputs, left = self._run()
            finally:
                left.restore()
            self.check.count_call()
        return outputs

    def _run(self) -> tuple[list[Tensor], ForeignRandomNumbers]:
        """The outputs of the call, and the states of Python's and numpy's generators after it without a comparison."""
        expected = self._expected()
        if expected is None:
            return self._run_program()
        trains = self.session.program.trains
        self.snapshot.restore_random_numbers()
        if self.schedule is self.session.schedule:
            outputs, left = self._run_program()
            self._judge(outcome_of(self.session.attached, outputs, trains=trains), expected)
            return outputs, left
        try:
            rehearsal = self.session.strategy.with_schedule(self.schedule)
            with silence():
                first = self.session.run(copies_of(self.inputs), rehearsal)
            found = copied(outcome_of(self.session.attached, first, trains=trains))
        finally:
            self.snapshot.restore()
        self._judge(found, expected)
        return self._run_program()

    def _run_program(self) -> tuple[list[Tensor], ForeignRandomNumbers]:
        """Run the call as if nothing had drawn from Python's and numpy's generators before: the eager tier draws."""
        present = ForeignRandomNumbers()
        self.foreign.restore()
        try:
            return self.session.run(self.call.inputs), ForeignRandomNumbers()
        finally:
            present.restore()

    # The reference

    def _expected(self) -> Outcome | None:
        """What eager PyTorch computes; None if the comparison is skipped. All processes skip it together."""
        outcome, reason, hint = None, "", ""
        try:
            limits = None if self.check.options.is_explicit else self._limits()
            outcome = self._reference(limits)
        except TooExpensive as error:
            reason, hint = str(error), ' Set check="first" to compare anyway.'
        except (CopyError, UnknownRule) as error:
            reason = str(error)
        except torch.OutOfMemoryError:
            reason = "eager PyTorch does not fit into the device's memory"
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            reason = f"eager PyTorch raises {type(error).__name__}: {first}"
        if not self._anyone(bool(reason)):
            return outcome
        summary = f"Not compared with eager PyTorch: {reason or 'another process could not compare its part'}.{hint}"
        self.check.compilation.tell(Checked(summary=summary, agrees=None))
        return None

    def _limits(self) -> CheckLimits:
        own = sum(each.numel() * each.element_size() for each in self.start.parameters.values())
        slots = sum(each.numel() * each.element_size() for each in self.start.slots.values())
        return CheckLimits(device=self._device, state_bytes=3 * own + slots)

    def _reference(
        self,
        limits: CheckLimits | None = None,
        precision: torch.dtype | None = None,
        around: Callable[[nn.Module], AbstractContextManager[object]] | None = None,
        *,
        forward_only: bool = False,
    ) -> Outcome:
        program, execution = self.session.program, self.check.compilation.execution
        reference = Reference(
            skeleton=self.skeleton,
            arguments=self.call.arguments,
            parsers=self.check.compilation.parsers,
            plan=None if forward_only else self.plan,
            loss_rule=execution.loss_rule,
            reduction=execution.reduction,
            batching=execution.batching,
            output_mode=self._output_mode,
            autocast=program.autocast if precision is None else None,
            device=self._device,
            streams=self.session.streams,
            constant_outputs=self.session.program.constants,
            share_gradients=None if self.check.compilation.peers is None else self._share,
            around_forward=around or self.check.around,
        )
        batches = micro_batches_of(self.inputs, self.schedule.micro_batches)
        with PROCESS_WIDE, silence():
            return reference.run(self.start, batches, limits, precision)

    def _again(self) -> Iterator[Callable[[], Outcome | None]]:
        """Repeat eager PyTorch unchanged; several times if a random choice could come out the same by chance."""
        yield from [partial(self._repeated, None)] * (_ATTEMPTS if self.foreign.were_drawn else 1)

    def _repetitions(self) -> Iterator[Callable[[], Outcome | None]]:
        """Eager PyTorch with other rounding."""
        yield self._in_float64
        for seed in range(_ATTEMPTS):
            yield partial(self._rounded_differently, seed)

    def _in_float64(self) -> Outcome | None:
        """Run eager PyTorch in another type; None if the model accepts only its own."""
        with InFloat64():  # type: ignore[no-untyped-call]
            return self._repeated(torch.float64)

    def _rounded_differently(self, seed: int) -> Outcome | None:
        with OtherRounding(seed):
            return self._repeated(None)

    def _repeated(self, precision: torch.dtype | None) -> Outcome | None:
        try:
            outcome = self._reference(precision=precision)
        except Exception:
            # The user's kernels may accept only some types, and report that by any exception.
            outcome = None
        return None if self._anyone(outcome is None) else outcome

    def _share(self, gradients: dict[str, Tensor]) -> None:
        """Sum gradients over all instances, one by one and on the host: not as programs do it."""
        assert self.check.compilation.peers is not None
        everyone = self.check.compilation.peers.gather({name: each.cpu() for name, each in gradients.items()})
        for name in gradients:
            total = torch.stack([theirs[name].double() for theirs in everyone]).sum(0)
            gradients[name] = total.to(gradients[name])

    # The verdict

    def _judge(self, found: Outcome, expected: Outcome) -> None:
        program = self.session.program
        skipped = left_out(program)
        if skipped:
            found.parameters = {}
        names = list(tensor_paths(self.session.outputs, "output"))
        compared = list(quantities(found, expected, self.start, names))
        verdict = judge(
            compared,
            tolerance(self._dtypes()),
            self._repetitions(),
            self._anyone,
            self._again(),
            is_suspect=self.foreign.were_drawn,
            pools=self._tolerance_of_pools(),
        )
        is_chance = verdict.unrepeatable is not None and self.foreign.were_drawn
        if self._anyone(is_chance):
            # Capturing has warned of it.
            summary = "Not compared with eager PyTorch: forward depends on random numbers of Python or numpy."
            self.check.compilation.tell(Checked(summary=summary, agrees=None))
            return
        disagrees = self._anyone(not verdict.agrees)
        if not disagrees:
            rounding = " Eager PyTorch with different rounding differs by as much." if verdict.was_repeated else ""
            left = f" Skipped: {', '.join(skipped)}." if skipped else ""
            self.check.compilation.tell(
                Checked(summary=f"Agrees with eager PyTorch: {verdict}.{rounding}{left}", agrees=True)
            )
            return
        message = self._explained(verdict)
        self.check.compilation.tell(Checked(summary=f"Differs from eager PyTorch: {verdict}.", agrees=False))
        if self.check.options.on_mismatch is OnMismatch.WARN:
            self.check.compilation.tell(Warned(message=message))
            return
        self.snapshot.restore()
        raise MismatchError(message)

    def _explained(self, verdict: Verdict) -> str:
        if verdict.unrepeatable is not None:
            return (
                f"forward is not repeatable: from the same inputs, weights and random numbers of torch, eager PyTorch "
                f"computed a different {verdict.unrepeatable} the second time. A program repeats what forward did at "
                f"capture. Draw random numbers with torch, not with random or numpy, and pass everything else that "
                f"changes (times, counters) to forward. {_CONTINUE}"
            )
        if verdict.agrees:
            return f"Another process found that its program differs from eager PyTorch. {_REMEDY}"
        first, *others = verdict.mismatches
        more = f" So do {len(others)} more of {len(verdict.quantities)} results." if others else ""
        return f"The program and eager PyTorch differ by more than rounding: {first}.{more} {self._place()} {_REMEDY}"

    def _place(self) -> str:
        """Describe where the difference begins. Not collective: other processes may have found no difference."""
        if self.check.compilation.pipeline_group is not None and self.start.updates:
            # Capturing again would read weights that other stages have to send.
            return "In a pipeline, the module is looked for at the first call only."
        try:
            with PROCESS_WIDE:
                place = self._first_difference()
        except Exception as error:
            return f"(The module could not be found: {type(error).__name__}.)"
        if place is not None:
            return f"The first module whose output differs is {place}."
        if self.session.tier is Tier.COMPILED:
            return "The captured graph agrees in every module: the machine code differs."
        return "The outputs of all modules agree, so the difference begins in the loss, in backward or in the update."

    def _first_difference(self) -> str | None:
        expected, other_rounding = ModuleOutputs(), ModuleOutputs()
        self._reference(around=partial(self._noting, expected), forward_only=True)
        with OtherRounding(_ATTEMPTS):
            self._reference(around=partial(self._noting, other_rounding), forward_only=True)
        compilation, captured = self.check.compilation, self.session.captured
        with labelled(compilation.module):
            program = compilation.captured_again(self.session.choice, self.call.arguments, captured.inputs)
        inputs = micro_batches_of(self.inputs, self.schedule.micro_batches)[0]
        streams = self.session.streams
        before = streams.states
        try:
            self.snapshot.restore_random_numbers()
            with streams.of_replica(0):
                found = outputs_in_program(program, self.start, inputs, self._device)
        finally:
            streams.states = before
        return first_difference(expected, other_rounding, found, tolerance(self._dtypes()))

    @contextmanager
    def _noting(self, outputs: ModuleOutputs, module: nn.Module) -> Iterator[None]:
        with self.check.around(module), outputs.noted(module):
            yield

    def _tolerance_of_pools(self) -> float:
        """The distance that needs no explanation in gradients of several micro-batches; 0 if none are pooled."""
        is_pooled = self.check.compilation.execution.batching.micro_batches_per_update > 1
        return tolerance([self.session.program.layout.accumulation_type]) if is_pooled else 0.0

    def _dtypes(self) -> list[torch.dtype]:
        tensors = [*self.start.parameters.values(), *self.inputs]
        floating = {each.dtype for each in tensors if each.is_floating_point()}
        autocast = self.session.program.autocast
        return [*floating, *([] if autocast is None else [autocast])]

    def _anyone(self, flag: bool) -> bool:
        """Whether the flag is set in any process of the job."""
        if self.check.compilation.pipeline_group is not None:
            flag = self.check.compilation.pipeline_group.any(flag)
        if self.check.compilation.peers is not None:
            flag = any(self.check.compilation.peers.gather(flag))
        return flag

    @property
    def _output_mode(self) -> OutputMode:
        """How the outputs of the compared steps are combined."""
        if self.schedule is not self.session.schedule:
            return OutputMode.ALL
        default = OutputMode.FINAL if self.session.program.trains else OutputMode.ALL
        return self.check.compilation.execution.outputs or default

    @property
    def _device(self) -> torch.device:
        return self.session.choice.capabilities.device


def copies_of(inputs: Sequence[Tensor]) -> list[Tensor]:
    """Copies of a call's inputs; a tensor that is passed twice stays one."""
    made = {id(each): each.clone() for each in inputs}
    return [made[id(each)] for each in inputs]
