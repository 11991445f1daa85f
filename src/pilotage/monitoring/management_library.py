"""Cards through their maker's management library, NVML or Habana's HLML, whose functions differ by their prefix alone."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pilotage.monitoring.device import Device

_DIE, _BOARD = 0, 1
_CLOCK = {"nvml": 1, "hlml": 0}
"""The number of the clock that computes: NVML's streaming multiprocessors, HLML's whole chip."""


class LibraryError(Exception):
    """The library is not there, or does not answer."""


@dataclass(frozen=True, slots=True)
class ManagementLibrary:
    """A maker's library, and how its cards are called here."""

    module: str
    prefix: str
    maker: str
    device: str
    """What torch calls its devices."""

    def devices(self) -> list[Device]:
        """All cards; raises a LibraryError where they cannot be asked."""
        with self._opened() as library:
            count = self._call(library, "DeviceGetCount")
            driver = _words(self._known(library, "GetDriverVersion", "SystemGetDriverVersion"))
            return [self._device(library, number, driver) for number in range(count)]

    def _device(self, library: Any, number: int, driver: str | None) -> Device:
        card = self._call(library, "DeviceGetHandleByIndex", number)

        def ask(function: str, *arguments: Any) -> Any:
            return self._known_of(library, function, card, *arguments)

        memory, rates, power = ask("DeviceGetMemoryInfo"), ask("DeviceGetUtilizationRates"), ask("DeviceGetPowerUsage")
        share = getattr(rates, "gpu", getattr(rates, "aip", None))
        return Device(
            id=f"{self.device}:{number}",
            maker=self.maker,
            name=_words(ask("DeviceGetName")) or self.maker,
            identity=_words(ask("DeviceGetUUID")) or "",
            driver=driver,
            memory_used=getattr(memory, "used", None),
            memory_total=getattr(memory, "total", None),
            utilisation=None if share is None else share / 100,
            temperature=ask("DeviceGetTemperature", _DIE),
            # NVML knows the temperature of the die alone.
            board_temperature=ask("DeviceGetTemperature", _BOARD) if self.prefix == "hlml" else None,
            power=None if power is None else power / 1000,
            clock=ask("DeviceGetClockInfo", _CLOCK[self.prefix]),
            pids=frozenset(process.pid for process in ask("DeviceGetComputeRunningProcesses") or ()),
        )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            # Habana's prints what it does not find, and somebody may be reading JSON there.
            with contextlib.redirect_stdout(io.StringIO()):
                library = importlib.import_module(self.module)
                getattr(library, f"{self.prefix}Init")()
        except ImportError:
            raise LibraryError(f"{self.module} is not installed") from None
        except Exception as error:
            raise LibraryError(f"{self.module}: {error}") from None
        try:
            yield library
        finally:
            with contextlib.suppress(Exception):
                getattr(library, f"{self.prefix}Shutdown")()

    def _call(self, library: Any, function: str, *arguments: Any) -> Any:
        # Both libraries raise exceptions of their own, which are known only once they are imported.
        try:
            call: Callable[..., Any] = getattr(library, f"{self.prefix}{function}")
            return call(*arguments)
        except Exception as error:
            raise LibraryError(f"{self.module} did not answer {function}: {error}") from None

    def _known_of(self, library: Any, function: str, *arguments: Any) -> Any:
        """What the library answers; None where a card or a version does not know."""
        with contextlib.suppress(LibraryError):
            return self._call(library, function, *arguments)
        return None

    def _known(self, library: Any, *functions: str) -> Any:
        """The first answer."""
        answers = (self._known_of(library, function) for function in functions)
        return next((answer for answer in answers if answer is not None), None)


def _words(value: Any) -> str | None:
    """Text, which older versions of the libraries give as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
