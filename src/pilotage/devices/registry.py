"""The list of backends, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pilotage.devices.base import Backend, Capabilities
from pilotage.devices.cpu import CpuBackend
from pilotage.devices.cuda import CudaBackend
from pilotage.devices.hpu import HpuBackend
from pilotage.errors import OptionError
from pilotage.options import environment
from pilotage.options.choices import Tier
from pilotage.options.suggestions import did_you_mean


@dataclass(frozen=True)
class Choice:
    """The chosen backend and tier, and the reason for the choice."""

    backend: Backend
    tier: Tier
    reason: str
    rises: bool = False
    """Whether the program may switch to a faster tier; not if the user has chosen one."""

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the backend can do."""
        return self.backend.capabilities

    def __str__(self) -> str:
        return f"Running on {self.capabilities.label}, tier {self.tier.value}: {self.reason}."


def backends() -> dict[str, Backend]:
    """All backends by name, in order of preference."""
    return {"cuda": CudaBackend(), "hpu": HpuBackend(), "cpu": CpuBackend()}


def choose(backend: str | None = None, tier: Tier | None = None) -> Choice:
    """The backend requested by option or PILOTAGE_BACKEND, otherwise the best one available."""
    chosen, reason = _choose_backend(backend)
    wanted, can_do = tier or _tier_of_environment(), chosen.capabilities
    if wanted is not None and wanted not in can_do.tiers:
        raise OptionError(
            f"The {can_do.name} backend has no tier {wanted.value!r}. "
            f"Choose one of: {', '.join(tier.value for tier in can_do.tiers)}."
        )
    rises = wanted is None and Tier.COMPILED in can_do.tiers
    return Choice(chosen, wanted or can_do.tiers[0], reason, rises)


def _choose_backend(name: str | None) -> tuple[Backend, str]:
    if name is not None:
        return _named(name, "the backend option"), "the backend option asks for it"
    if (from_environment := environment.backend()) is not None:
        return _named(from_environment, "PILOTAGE_BACKEND"), "PILOTAGE_BACKEND asks for it"
    absent: list[str] = []
    for each, backend in backends().items():
        problem = backend.problem(asked=False)
        if problem is None:
            return backend, f"the best device present ({'; '.join(absent)})" if absent else "the best device present"
        absent.append(f"no {each}: {problem}")
    raise OptionError(f"No backend can run here. {'; '.join(absent)}.")


def _named(name: str, asked_by: str) -> Backend:
    known = backends()
    backend = known.get(name.lower())
    if backend is None:
        hint = did_you_mean(name, known)
        raise OptionError(f"No backend named {name!r} ({asked_by}).{hint} Choose one of: {', '.join(known)}.")
    if (problem := backend.problem()) is not None:
        raise OptionError(f"{asked_by} is {name!r}, but {problem}. Choose one of: {', '.join(_usable())}.")
    return backend


def _usable() -> list[str]:
    return [name for name, backend in backends().items() if backend.problem(asked=False) is None]


def _tier_of_environment() -> Tier | None:
    name = environment.tier()
    if name is None:
        return None
    try:
        return Tier(name.lower())
    except ValueError:
        known = [tier.value for tier in Tier]
        hint = did_you_mean(name, known)
        raise OptionError(f"PILOTAGE_TIER is {name!r}.{hint} Choose one of: {', '.join(known)}.") from None
