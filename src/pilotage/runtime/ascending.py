"""The way to compiled code for a session that begins: the code is found, made at once, or prepared for."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from pilotage.compiler.cache import Entry
from pilotage.compiler.transport import PackedCode
from pilotage.errors import OptionError
from pilotage.events import CompilationProgress, Event, TierChanged
from pilotage.execution.threads import ThreadTuner
from pilotage.options.choices import NonFiniteLoss, Tier
from pilotage.options.execution import Execution
from pilotage.runtime.ascent import Ascent, Sample, ascent_for
from pilotage.runtime.session import Session


def begin_ascent(
    session: Session,
    execution: Execution,
    module: nn.Module,
    *,
    code: PackedCode | None,
    sample: Sample,
    tell: Callable[[Event], None],
) -> None:
    """Take compiled code that is there, or prepare to compile; where the tier is pinned to it, compile at once."""
    choice, must_compile = session.choice, session.choice.tier is Tier.COMPILED
    # Instances change over at different moments, and would part in the last bits of their weights.
    rises = choice.rises and session.exchange is None
    if not rises and not must_compile:
        return
    if execution.nonfinite_loss is NonFiniteLoss.RAISE and session.program.checks_loss:
        if must_compile:
            raise OptionError(
                "nonfinite_loss is 'raise', and compiled code cannot stop in a step. Use the tier 'graph'."
            )
        return
    ascent = ascent_for(
        session.captured,
        session.schedule,
        choice.capabilities.device,
        # Who names a directory for compiled code wants it filled.
        patience=choice.capabilities.seconds_before_compiling if execution.cache_directory is None else 0.0,
        directory=execution.cache_directory,
        must_compile=must_compile,
        tell=tell,
        about={
            "name": execution.name or type(module).__name__,
            "kind": "training" if session.captured.trains else "inference",
        },
    )
    if ascent is None:
        return
    session.ascent = ascent
    if choice.capabilities.computes_in_threads and rises:
        session.threads = ThreadTuner(torch.get_num_threads(), ascent.cache.store.notes_of(ascent.fingerprint.digest))
    if code is not None:
        ascent.take_in(code)
    entry, origin = ascent.find(), "found in the cache"
    if must_compile and (entry is None or entry.tuning.tier is not Tier.COMPILED):
        tell(CompilationProgress(fraction=0.85, doing="compiling"))
        entry, origin = _compiled_now(ascent, module, sample), "compiled"
    if entry is not None:
        session.go_up(entry)
        tell(TierChanged(tier=session.tier.value, updates=0, reason=f"{origin} ({entry.tuning.gain})"))


def _compiled_now(ascent: Ascent, module: nn.Module, sample: Sample) -> Entry:
    ascent.cache.forget(ascent.fingerprint)
    ascent.start(sample(), [buffer.detach() for buffer in module.buffers()])
    entry = ascent.finish()
    if entry is None or entry.tuning.tier is not Tier.COMPILED:
        reason = "see the warning above" if entry is None else entry.tuning.reason
        raise OptionError(f"The tier is 'compiled', but the program could not be compiled: {reason}. Use 'graph'.")
    return entry
