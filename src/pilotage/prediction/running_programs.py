"""Predicts a program that this process runs, from the capture of its executor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from pilotage.errors import PredictionError
from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.document import Report
from pilotage.prediction.reporting import report_of
from pilotage.prediction.subject import Loading, Subject
from pilotage.program.graphs.rewrites import without_checks
from pilotage.runtime.call import BoundCall
from pilotage.runtime.executor import Executor

__all__ = ["predict_program", "subject_of"]

_SECONDS_FOR_CHANGES = 5.0
"""Seconds for predicting; the user's run waits for it."""


def predict_program(executor: Executor, call: BoundCall, name: str, models: Sequence[DeviceModel]) -> Report:
    """Predict the program of an executor for calls like this one; forward does not run again."""
    captured = executor.captured
    graphs = {action: each.graph for action, each in captured.computations.items() if each.graph is not None}
    if not graphs:
        raise PredictionError("The eager tier captures no program, so there is nothing to predict. Use another tier.")
    # Programs for a processor check the loss in the graph; those for other devices do not.
    computations = {
        action: replace(each, graph=without_checks(graphs[action])) if action in graphs else each
        for action, each in captured.computations.items()
    }
    return report_of(
        subject_of(executor, call, name),
        models,
        program=replace(captured, computations=computations),
        command=sys.argv,
        seconds_for_changes=_SECONDS_FOR_CHANGES,
        notes=[
            "Predicted from the program that ran. `pilotage predict` also prices half precision, recomputation, "
            "accumulation and other micro-batches, which must be captured again."
        ],
    )


def subject_of(executor: Executor, call: BoundCall, name: str, loading: Loading | None = None) -> Subject:
    """The subject that an executor would capture for a call."""
    compilation, micro_batch = executor.compilation_for(call)
    return Subject(
        name=compilation.execution.name or name,
        module=compilation.module,
        modes=compilation.modes,
        plan=compilation.plan,
        execution=compilation.execution,
        arguments=call.arguments,
        micro_batch=micro_batch,
        replica_groups=compilation.replica_groups,
        parsers=compilation.parsers,
        loading=loading or Loading(),
        around_forward=executor.around_forward,
    )
