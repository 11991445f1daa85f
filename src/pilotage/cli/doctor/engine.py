"""Which backend would run a program, why, and whether it trains like eager PyTorch."""

from __future__ import annotations

import time
from collections import Counter
from types import ModuleType

from pilotage.cli.doctor.finding import Finding, Verdict
from pilotage.errors import PilotageError

__all__ = ["examine_engine"]

TOLERANCE = 1e-4
"""Far above rounding, even TF32, and far below the effect of a wrong gradient on a step of 0.1."""


def examine_engine(torch: ModuleType | None) -> tuple[Finding, ...]:
    """Choose a backend as a program without options would, and try it."""
    if torch is None:
        return (_problem("backend", "none without torch", "See torch above."),)
    backend = _examine_backend()
    if backend.verdict is Verdict.PROBLEM:
        return (backend,)
    return backend, _examine_compiling(str(backend.facts["device"])), _examine_training()


def _examine_backend() -> Finding:
    # Imported here because it imports torch, which may fail with an unsupported version.
    try:
        from pilotage.devices import registry

        choice = registry.choose()
    except PilotageError as error:
        return _problem("backend", str(error), "Set PILOTAGE_BACKEND and PILOTAGE_TIER to one of these, or unset them.")
    except Exception as error:
        return _problem("backend", _first_line(error), "The engine does not work with this torch; see its range above.")
    facts = {
        "name": choice.capabilities.name,
        "device": str(choice.capabilities.device),
        "tier": choice.tier.value,
        "rises": choice.rises,
        "reason": choice.reason,
    }
    value = f"{choice.capabilities.label}, tier {choice.tier.value}: {choice.reason}"
    return Finding(name="backend", value=value, facts=facts)


def _examine_compiling(device: str) -> Finding:
    """Whether programs can be compiled, and where compiled code is kept."""
    import torch

    from pilotage.cache.inventory import take_inventory
    from pilotage.compiler.cache import NativeCache
    from pilotage.compiler.requirements import missing_compiler
    from pilotage.options import environment

    if (problem := missing_compiler(torch.device(device))) is not None:
        return Finding(name="compiled tier", value=f"no: {problem}", verdict=Verdict.ABSENT, facts={"problem": problem})
    root = environment.executable_cache()
    if root is None:
        return Finding(name="compiled tier", value="no: PILOTAGE_CACHE_DIR is off", verdict=Verdict.ABSENT)
    try:
        cache = NativeCache(root)
    except PilotageError as error:
        remedy = "Programs stay on the graph tier until then."
        return Finding(name="compiled tier", value=str(error), verdict=Verdict.WARNING, remedy=remedy)
    items = take_inventory(cache.store)
    wrong = Counter(item.state.value for item in items if item.state.is_wrong)
    value = f"{len(cache.folders())} programs in {cache.root}"
    facts = {"cache": str(cache.root), "programs": len(cache.folders()), "wrong": dict(wrong)}
    if not wrong:
        return Finding(name="compiled tier", value=value, facts=facts)
    found = ", ".join(f"{count} {state}" for state, count in wrong.items())
    remedy = "They are never executed. `pilotage cache check` names them, `pilotage cache clear` removes them."
    return Finding(name="compiled tier", value=f"{value}; {found}", verdict=Verdict.WARNING, remedy=remedy, facts=facts)


def _examine_training() -> Finding:
    start = time.perf_counter()
    try:
        from pilotage.cli.doctor.trial import largest_difference

        difference = largest_difference()
    except Exception as error:
        remedy = "Check the range of torch and the devices above; include `pilotage doctor --json` in a report."
        return _problem("training", f"a trial step failed: {_first_line(error)}", remedy)
    seconds = time.perf_counter() - start
    facts = {"difference": difference, "seconds": seconds}
    if not difference <= TOLERANCE:
        value = f"a trial step differs from eager PyTorch's by {difference:.1e}"
        return _problem(
            "training", value, "Do not trust results on this machine; include `pilotage doctor --json` in a report."
        )
    equal = f"equals eager PyTorch's within {difference:.0e}" if difference else "equals eager PyTorch's exactly"
    value = f"a trial step {equal}, compiled and run in {seconds:.1f} s"
    return Finding(name="training", value=value, facts=facts)


def _problem(name: str, reason: str, remedy: str) -> Finding:
    return Finding(name=name, value=reason, verdict=Verdict.PROBLEM, remedy=remedy, facts={"name": None})


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
