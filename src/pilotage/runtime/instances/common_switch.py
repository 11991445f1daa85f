"""Instances switch to compiled code after the same update, with the same code.

One that switched earlier would round differently, and its weights would no longer equal those of the others in every
bit. So after the first call, and then about once per second, all instances say how far their compilers are. They switch
at the end of the call after which all of them are ready; if one of them cannot, none does. Machine code is sent from
instance to instance on one host only, where the processes of a job have proved who they are.

Stages in separate processes switch together too, although each runs code of its own: the first call on compiled code
is compared with eager PyTorch, and all stages take part in that.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from pilotage.compiler.packed_code import PackedCode
from pilotage.distributed.called_off import CalledOff
from pilotage.distributed.peers import Peers
from pilotage.distributed.same_exchange import BEFORE_COMPILING, GatheringGroup, gather_at
from pilotage.errors import CaptureError, OptionError
from pilotage.events import Event, Noted
from pilotage.runtime.tiers.ascent import CompilingCalledOffError
from pilotage.runtime.tiers.stages import Compiled, Rising

_SECONDS_BETWEEN_MEETINGS = 1.0
_MOST_CALLS = 10_000
"""Instances meet after this many calls at the latest."""

# torch's process groups do not authenticate other hosts, so anyone who can reach them could send code to run.
_ON_SEVERAL_HOSTS = (
    "they have compiled different code, and code is exchanged only between instances of one host; set "
    "PILOTAGE_CACHE_DIR to a directory that all hosts share, so that it is compiled once"
)


@dataclass(frozen=True, slots=True)
class SwitchReport:
    """What one instance reports to the others."""

    seconds: float
    """The duration of its last call."""

    program: str
    """The digest of its program and machine; empty if it cannot switch."""

    code: str = ""
    """The digest of its compiled code; empty while it has none."""

    obstacle: str = ""
    """Why it cannot switch."""

    rank: int = 0
    stage: int | None = None
    """The stage that the process runs; None if instances are single processes."""

    @property
    def process(self) -> str:
        """What messages call the process."""
        return f"instance {self.rank}" if self.stage is None else f"stage {self.stage} of instance {self.rank}"


class CommonSwitch:
    """Finds the call after which all instances of a job switch to compiled code. Collective, like all of `Peers`."""

    def __init__(
        self,
        peers: Peers,
        tell: Callable[[Event], None],
        *,
        groups: Sequence[GatheringGroup] = (),
        gather: Callable[[tuple[Any, ...]], list[tuple[Any, ...]]] | None = None,
    ) -> None:
        """With stages in separate processes, ``groups`` are those of the first exchange, in its order.

        ``gather`` collects a value of all processes that have to switch together; by default, of all instances.
        """
        self._groups = groups or (peers,)
        self._gather = gather or peers.gather
        self._peers = peers
        self._tell = tell
        self._calls_left = 1
        self._is_over = False
        self._called_off: CalledOff | None = None

    def is_time(self) -> bool:
        """Count a call; returns whether all instances meet at its end."""
        if self._is_over:
            return False
        self._calls_left -= 1
        return self._calls_left == 0

    def meet(self, ascent: Rising | None, why_not: str, seconds: float) -> Compiled | None:
        """Report this instance's progress to the others; returns the code that all of them use from now on, if any.

        ``why_not`` says why an instance without an ascent cannot switch.
        """
        return self._decided(self._reports(_report(ascent, why_not, seconds)), ascent)

    def _decided(self, reports: list[SwitchReport], ascent: Rising | None) -> Compiled | None:
        obstacle = _obstacle(reports)
        if obstacle is None and all(report.code for report in reports) and _different_code(reports) is not None:
            if self._peers.world.one_host:
                self._take_code_of_first(ascent)
                reports = self._reports(_report(ascent, "", reports[0].seconds))
                obstacle = _obstacle(reports) or _different_code(reports)
            else:
                obstacle = _ON_SEVERAL_HOSTS
        if obstacle is not None:
            self._give_up(ascent, obstacle)
            return None
        assert ascent is not None
        if all(report.code for report in reports):
            self._is_over = True
            return ascent.ready
        # The same number in all instances: it depends only on reports that all of them have received.
        slowest = max(report.seconds for report in reports)
        self._calls_left = max(1, min(_MOST_CALLS, int(_SECONDS_BETWEEN_MEETINGS / max(slowest, 1e-9))))
        return None

    def begin_to_compile(self) -> None:
        """Raise unless all instances compile before their first call; the others would exchange their weights now."""
        name = secrets.token_hex(8)
        for group in self._groups:
            name = gather_at(BEFORE_COMPILING, group, name)[0]
        self._called_off = CalledOff(name)

    def is_called_off(self) -> bool:
        """Whether a process has failed to compile before the first call."""
        return self._called_off is not None and self._called_off.is_announced

    def failure(self, error: Exception) -> OptionError:
        """Tell all processes that this one cannot compile before its first call; the error that all of them raise."""
        if isinstance(error, CompilingCalledOffError):
            obstacle = ""
        else:
            is_ours = isinstance(error, (OptionError, CaptureError))
            obstacle = str(error) if is_ours else f"{type(error).__name__}: {error}"
            if self._called_off is not None:
                self._called_off.announce()
        self._peers.wait_for_all()
        reports = self._reports(SwitchReport(0.0, "", obstacle=obstacle))
        return _failed(reports) or OptionError(str(error))

    def agree(self, ascent: Rising) -> Compiled:
        """The code that all instances start with if each of them has compiled before its first call."""
        # Instances with their own caches may compile for much longer than this one.
        self._peers.wait_for_all()
        reports = self._reports(_report(ascent, "", 0.0))
        if (failed := _failed(reports)) is not None:
            self._is_over = True
            raise failed
        agreed = self._decided(reports, ascent)
        if agreed is None:
            raise OptionError(
                "The tier is 'compiled', but the instances have no code in common, as a message above explains. Use "
                "'graph'."
            )
        return agreed

    def _reports(self, report: SwitchReport) -> list[SwitchReport]:
        world = self._peers.world
        own = replace(report, rank=world.rank, stage=world.stage)
        return [SwitchReport(*each) for each in self._gather(astuple(own))]

    def _take_code_of_first(self, ascent: Rising | None) -> None:
        """Use the code of instance 0 everywhere: instances with their own caches compile and time separately."""
        assert ascent is not None
        assert ascent.ready is not None
        is_first = self._peers.world.rank == 0
        files = self._peers.value_of_first(ascent.ready.files() if is_first else {})
        if not is_first:
            ascent.take(PackedCode(files))

    def _give_up(self, ascent: Rising | None, obstacle: str) -> None:
        self._is_over = True
        if ascent is not None:
            ascent.stop()
            everyone = "instances" if self._peers.world.stage is None else "stages"
            self._tell(Noted(message=f"All {everyone} stay on the graph tier: {obstacle}.", can_be_changed=True))


def _report(ascent: Rising | None, why_not: str, seconds: float) -> SwitchReport:
    if ascent is None:
        return SwitchReport(seconds, "", obstacle=why_not)
    code = "" if ascent.ready is None else ascent.ready.digest
    return SwitchReport(seconds, ascent.fingerprint.digest, code, ascent.obstacle)


def _failed(reports: Sequence[SwitchReport]) -> OptionError | None:
    """The error of the first process that could not compile before its first call, if any."""
    for report in reports:
        if report.obstacle:
            return OptionError(f"All processes stop: {report.process} has no compiled code. {report.obstacle}")
    return None


def _obstacle(reports: Sequence[SwitchReport]) -> str | None:
    """Why the instances cannot switch together; None if nothing prevents it so far."""
    for report in reports:
        if report.obstacle:
            return f"{report.process} cannot switch to compiled code ({report.obstacle})"
    for report, first in _with_firsts(reports):
        if report.program != first.program:
            return f"{report.process} has another program, machine or version than {first.process}"
    return None


def _different_code(reports: Sequence[SwitchReport]) -> str | None:
    for report, first in _with_firsts(reports):
        if report.code != first.code:
            return f"{report.process} cannot use the compiled code of {first.process}"
    return None


def _with_firsts(reports: Sequence[SwitchReport]) -> Iterator[tuple[SwitchReport, SwitchReport]]:
    """Each report, with that of the first instance for the same stage."""
    firsts: dict[int | None, SwitchReport] = {}
    for report in reports:
        yield report, firsts.setdefault(report.stage, report)
