"""When the calls of a program are compared with eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from torch import nn

from pilotage.arrival.module_copy import CopyError, Skeleton
from pilotage.arrival.obstacles import obstacle
from pilotage.events import Checked
from pilotage.optim.rule import OptimizerPlan
from pilotage.options.choices import Tier
from pilotage.runtime.arrival_comparison import Comparison
from pilotage.runtime.call import BoundCall
from pilotage.runtime.compilation import Compilation
from pilotage.runtime.session import Session
from pilotage.runtime.weights import WeightKeeper
from pilotage.turns import PROCESS_WIDE

AroundForward = Callable[[nn.Module], AbstractContextManager[object]]


class ArrivalCheck:
    """Compares the first call of a program with eager PyTorch, and later calls if that was asked for."""

    def __init__(self, compilation: Compilation, weights: WeightKeeper, around_forward: AroundForward | None) -> None:
        """Remember the module's Python attributes as the capture will find them.

        ``around_forward`` is what a drop-in does around each forward.
        """
        # Without the inputs of the first call, which would stay in memory.
        self.compilation = replace(compilation, sample=list)
        self.options = compilation.execution.check
        self._weights = weights
        self._around_forward = around_forward
        self._calls = 0
        self._has_run = False
        self._saw_no_gradients = False
        """Whether the last compared update would have been the same with any gradients."""
        self._skeleton: Skeleton | None = None
        self._problem = ""
        try:
            with PROCESS_WIDE:
                self._skeleton = Skeleton(compilation.module, compilation.modes)
        except CopyError as error:
            self._problem = str(error)

    def begin_again(self) -> None:
        """Compare the next call, because the program runs in another form from now on."""
        self._calls = 0

    def comparison(self, session: Session, call: BoundCall, plan: OptimizerPlan | None) -> Comparison | None:
        """What to do instead of running the next call; None if it is not to be compared.

        Collective: all instances and stages must ask.
        """
        period = self.options.period
        sees_no_gradients = plan is not None and _hides_gradients(plan)
        is_due = not self._calls or (period is not None and not self._calls % period)
        if not is_due and (sees_no_gradients or not self._saw_no_gradients):
            self.count_call()
            return None
        self._saw_no_gradients = sees_no_gradients
        reason = self._problem if self._skeleton is None else obstacle(session.program, session.strategy)
        if session.tier is Tier.EAGER and not self.options.is_explicit:
            reason = "the eager tier runs the module's own Python"
        if session.synthetic is not None:
            reason = "the program runs on synthetic inputs"
        if reason or self._skeleton is None:
            self.compilation.tell(Checked(summary=f"Not compared with eager PyTorch: {reason}.", agrees=None))
            self.count_call()
            return None
        # Instances are equal only on their devices; another thread may train what this program only reads; inference in
        # training mode may leave its statistics there.
        has_own_buffers = self._has_run and bool(session.program.written_buffers)
        on_device = None
        if self.compilation.peers is not None or (
            plan is None and (has_own_buffers or self._weights.are_trained_elsewhere)
        ):
            on_device = session.strategy.weights()
        else:
            self._weights.fetch_for_reading()
        return Comparison.begin(self, self._skeleton, session, call, plan, on_device)

    def count_call(self) -> None:
        """Note that a call has ended. An interrupted or refused call stays due for comparison."""
        self._calls += 1
        self._has_run = True

    def around(self, module: nn.Module) -> AbstractContextManager[object]:
        """What to do around each forward of a module."""
        return nullcontext() if self._around_forward is None else self._around_forward(module)

    @property
    def is_over(self) -> bool:
        """Whether no later call of this program will be compared."""
        return self._calls > 0 and self.options.period is None and not self._saw_no_gradients


def _hides_gradients(plan: OptimizerPlan) -> bool:
    """Whether an update shows nothing of the gradients, as that of plain SGD whose warm-up begins at zero."""
    return all(not group.rule.slots and group.values.get("lr") == 0.0 for group in plan.groups)
