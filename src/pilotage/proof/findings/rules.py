"""All rules together."""

from __future__ import annotations

from pilotage.proof.findings import data, results, training
from pilotage.proof.findings.finding import Finding, Rule, in_order
from pilotage.proof.records import ScriptRecord

__all__ = ["RULES", "findings_of"]

RULES: tuple[Rule, ...] = (
    training.wrapper_lost,
    training.host_fallback,
    training.optimizer_unused,
    training.schedule_not_applied,
    training.eval_mode_in_training,
    training.loss_root_differs,
    training.loss_depends_on_batch_split,
    data.samples_dropped,
    data.samples_repeated,
    results.no_gradient_exchange,
    results.precision_not_as_asked,
    results.weights_not_saved,
)


def findings_of(after: ScriptRecord, before: ScriptRecord | None = None) -> list[Finding]:
    """Everything that the record of a script shows, compared with the original if there is one."""
    return in_order([finding for rule in RULES for finding in rule(after, before)])
