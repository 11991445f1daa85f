"""Proving a port, or auditing one script: run, compare, explain."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pilotage.errors import ProofError
from pilotage.proof.comparison import Comparison, Verdict, compare, noise_of, relative, unit_of_runs, weight_distances
from pilotage.proof.explanations import Alignment, alignment_of, explanations_of
from pilotage.proof.findings.finding import Finding
from pilotage.proof.findings.rules import findings_of
from pilotage.proof.process_tree import Signals, ended_by_signals
from pilotage.proof.running import WatchedRun, run_watched
from pilotage.proof.steps import steps_of
from pilotage.proof.tolerance import Tolerance
from pilotage.proof.watching.settings import WatchSettings

__all__ = ["Proof", "Request", "prove"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """The scripts to prove, and how."""

    before: tuple[str, ...] | None
    """The command of the original; None audits one script."""

    after: tuple[str, ...]
    steps: int = 50
    seed: int = 0
    timeout: float = 600.0
    align: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What was found."""

    request: Request
    before: WatchedRun | None
    after: WatchedRun
    comparison: Comparison | None
    """None for an audit."""

    findings: Sequence[Finding]
    explanations: Sequence[str]
    alignment: Alignment | None = None
    """How the original was changed to equal the port's options, if it was."""

    @property
    def is_same(self) -> bool:
        """Whether nothing is left to explain."""
        is_found = self.findings or self.failures
        return not is_found and (self.comparison is None or self.comparison.verdict is Verdict.SAME)

    @property
    def failures(self) -> list[str]:
        """How the scripts failed after the last compared step, one line for each that did."""
        return [run.failure for run in (self.before, self.after) if run is not None and run.failure is not None]


def prove(request: Request, tell: Callable[[str], None] = lambda text: None) -> Proof:
    """Run the scripts, and compare what they did; on SIGTERM and SIGHUP, their processes are ended first."""
    with ended_by_signals() as signals:
        folder = Path(tempfile.mkdtemp(prefix="pilotage-proof-"))
        try:
            return _Proving(request, folder, tell, signals).proof()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class _Proving:
    def __init__(self, request: Request, folder: Path, tell: Callable[[str], None], signals: Signals) -> None:
        self._request = request
        self._signals = signals
        self._folder = folder
        self._tell = tell
        self._runs = 0

    def proof(self) -> Proof:
        request = self._request
        if request.before is None:
            after = self._run("AFTER", request.after)
            return Proof(
                request=request,
                before=None,
                after=after,
                comparison=None,
                findings=findings_of(after.record),
                explanations=[],
            )
        before = self._run("BEFORE", request.before)
        after = self._run("AFTER", request.after)
        # Findings compare the scripts as they are; the verdict may compare the original with the port's options.
        findings = findings_of(after.record, before.record)
        alignment = alignment_of(before.record, after.record) if request.align else None
        if alignment is not None:
            before = self._run("BEFORE, aligned", request.before, **alignment.settings)
        comparison = self._compared(before, after)
        return Proof(
            request=request,
            before=before,
            after=after,
            comparison=comparison,
            findings=findings,
            explanations=explanations_of(before.record, after.record, comparison, alignment),
            alignment=alignment,
        )

    def _run(self, name: str, command: Sequence[str], **changes: float | int) -> WatchedRun:
        self._runs += 1
        settings = WatchSettings(
            folder=str(self._folder / str(self._runs)), steps=self._request.steps, seed=self._request.seed
        )
        self._tell(f"running {name}")
        changed = replace(settings, **changes)  # type: ignore[arg-type]
        return run_watched(name, command, changed, timeout=self._request.timeout, signals=self._signals)

    def _compared(self, before: WatchedRun, after: WatchedRun) -> Comparison:
        """Compare; in doubt, run the original again with rounding errors to see their effect."""
        first = compare(before.record, after.record)
        is_rounding = first.verdict is Verdict.DIVERGED and first.quantity in ("loss", "weights")
        is_eager = all(each.is_eager for each in before.record.first.updates)
        if not is_rounding or not is_eager:
            return first
        kind = unit_of_runs(before.record, after.record)
        settings = before.settings
        try:
            shaken = self._run(
                "BEFORE, with rounding errors",
                before.command,
                noise=noise_of(kind),
                batch_factor=settings.batch_factor,
                gradient_factor=settings.gradient_factor,
            )
        except ProofError:
            return first
        if (reason := _unsteadiness(before, shaken)) is not None:
            return replace(first, verdict=Verdict.NOT_COMPARABLE, reason=reason)
        return compare(before.record, after.record, _tolerance(kind, before, shaken))


def _unsteadiness(before: WatchedRun, again: WatchedRun) -> str | None:
    """Why two runs of the original differ before any rounding error was added; None if they agree."""
    left, right = steps_of(before.record)[0], steps_of(again.record)[0]
    if relative(left.mean_loss, right.mean_loss, abs(left.mean_loss)) <= 1e-6:
        return None
    return (
        f"BEFORE itself differs from run to run, with losses of {left.mean_loss:.6g} and {right.mean_loss:.6g} in the "
        "first step: give it fixed seeds"
    )


def _tolerance(kind: str, before: WatchedRun, shaken: WatchedRun) -> Tolerance:
    left, right = steps_of(before.record), steps_of(shaken.record)
    scale = abs(left[0].mean_loss)
    return Tolerance(
        kind,
        [relative(a.mean_loss, b.mean_loss, scale) for a, b in zip(left, right, strict=False)],
        dict(weight_distances(before.record, shaken.record)),
    )
