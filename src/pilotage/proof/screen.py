"""A proof on one screen, as plain text or with colours."""

from __future__ import annotations

import math
import os
import shlex
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from pilotage.monitoring.plurals import pluralized
from pilotage.proof.comparison import Comparison, Verdict, relative
from pilotage.proof.findings.finding import Finding
from pilotage.proof.proof import Proof
from pilotage.proof.records import ScriptRecord
from pilotage.proof.running import WatchedRun

__all__ = ["lines_of"]

Line = tuple[str, str]
"""A text and its style."""

_ROWS = 6
"""How many updates the table of losses shows."""


def lines_of(proof: Proof, width: int = 100) -> list[Line]:
    """The lines of the screen, each with a style: good, bad, strong, faint or plain."""
    return [
        *_runs(proof, width),
        ("", ""),
        *_verdict(proof, width),
        *_table(proof.comparison),
        *_findings(proof.findings, width),
        *_notes(proof.explanations, width),
    ]


def _runs(proof: Proof, width: int) -> Iterator[Line]:
    for run in (proof.before, proof.after):
        if run is None:
            continue
        name = "BEFORE" if run is proof.before else "AFTER" if proof.before is not None else "script"
        yield f"{name:<7} {_shortened(_command(run), width - 8)}", "strong"
        yield from _wrapped(_described(run), width, " " * 8, "faint")


def _command(run: WatchedRun) -> str:
    words = list(run.command)
    if words and words[0] == sys.executable:
        words[0] = "python"
    return shlex.join(_near(word) for word in words)


def _near(word: str) -> str:
    """A path in the present folder without that folder."""
    here = f"{os.getcwd()}/"
    return word.removeprefix(here)


def _described(run: WatchedRun) -> str:
    record = run.record
    types = [each for each in record.first.types if each is not None]
    optimizers = [each for each in record.first.summary.get("optimizers", ()) if each["updates"]]
    parts = [
        f"{pluralized(record.steps, 'update')} on {_devices(record)}",
        ", ".join(dict.fromkeys(each["kind"] for each in optimizers)),
        " and ".join(dict.fromkeys(types)),
        f"{record.processes} processes" if record.processes > 1 else "",
        f"{run.seconds:.0f} s",
        _ending(run),
    ]
    return ", ".join(part for part in parts if part)


def _ending(run: WatchedRun) -> str:
    if run.failure is not None:
        return "failed after the last compared step"
    return "" if run.is_complete else "not watched to its end"


def _devices(record: ScriptRecord) -> str:
    kinds = dict.fromkeys(f"{each.device} ({each.fields.get('tier', 'eager')})" for each in record.first.updates)
    return ", ".join(kinds)


def _verdict(proof: Proof, width: int) -> Iterator[Line]:
    comparison = proof.comparison
    if comparison is None:
        count = len(proof.findings)
        text, is_good = f"{pluralized(count, 'finding') if count else 'no findings'}.", not count
    else:
        text, is_good = f"{comparison.sentence}{_detail(comparison)}", comparison.verdict is Verdict.SAME
    if proof.failures:
        yield from _wrapped(f"Up to the failure: {text}", width, "", "plain" if is_good else "bad")
    else:
        yield from _wrapped(f"{text[:1].upper()}{text[1:]}", width, "", "good" if is_good else "bad")


def _detail(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.NOT_COMPARABLE:
        return f": {comparison.reason}."
    if comparison.verdict is Verdict.DIVERGED and comparison.values is not None:
        left, right = comparison.values
        both = f"BEFORE {left}, AFTER {right}" if left else right
        return f". The first difference is the {comparison.quantity} of step {comparison.step}: {both}."
    scale = abs(comparison.before_losses[0])
    gaps = [relative(a, b, scale) for a, b in zip(comparison.before_losses, comparison.after_losses, strict=True)]
    weights = max(comparison.weights.values(), default=0.0)
    seen = [] if all(map(math.isnan, comparison.before_losses)) else [f"losses within {max(gaps):.1g}"]
    if comparison.weights:
        seen.append(f"weights within {weights:.1g}" if not seen else f"weights {weights:.1g}")
    exact = "bit by bit" if not any(gaps) and not weights else ", ".join(seen)
    return f" over {pluralized(comparison.steps, 'update')}: {exact}; rounding explains {max(comparison.allowed):.1g}."


def _table(comparison: Comparison | None) -> Iterator[Line]:
    if comparison is None or comparison.steps == 0:
        return
    count = comparison.steps
    chosen = sorted({1, comparison.step or 1, count, *range(10, count, max(10, count // _ROWS // 10 * 10))})
    scale = abs(comparison.before_losses[0])
    yield "", ""
    yield f"{'step':>6} {'BEFORE':>12} {'AFTER':>12} {'difference':>11} {'explained':>11}", "faint"
    for step in chosen:
        left, right = comparison.before_losses[step - 1], comparison.after_losses[step - 1]
        gap, allowed = relative(left, right, scale), comparison.allowed[step - 1]
        style = "plain" if gap <= allowed else "bad"
        yield f"{step:>6} {left:>12.6g} {right:>12.6g} {gap:>11.1e} {allowed:>11.1e}", style


def _findings(findings: Sequence[Finding], width: int) -> Iterator[Line]:
    for each in findings:
        yield "", ""
        yield f"{each.name}  {_place(each)}", "bad"
        yield from _wrapped(each.message, width, "  ", "plain")
        yield from _wrapped(each.remedy, width, "  → ", "faint")


def _place(finding: Finding) -> str:
    if finding.file is None:
        return "(no line of the script)"
    return f"{_near(str(Path(finding.file)))}:{finding.line}"


def _notes(notes: Sequence[str], width: int) -> Iterator[Line]:
    if notes:
        yield "", ""
    for each in notes:
        yield from _wrapped(each, width, "· ", "plain")


def _wrapped(text: str, width: int, start: str, style: str) -> Iterator[Line]:
    wrapped = textwrap.wrap(
        text, max(40, width), initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False
    )
    return ((line, style) for line in wrapped)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(10, width - 1)]}…"
