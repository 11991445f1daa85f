"""Cards as reported by NVML or Habana's HLML, whose functions differ only in their prefix."""

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
"""The number of the compute clock: NVML's streaming multiprocessors, HLML's whole chip."""


class LibraryError(Exception):
    """The library is not installed, or does not answer."""


@dataclass(frozen=True, slots=True)
class ManagementLibrary:
    """A vendor's library, and our names for its cards."""

    module: str
    prefix: str
    maker: str
    device: str
    """torch's name for its devices."""

    def devices(self) -> list[Device]:
        """All cards; raises a LibraryError if the library fails."""
        with self._opened() as library:
            count = self._call(library, "DeviceGetCount")
            driver = _text(self._known(library, "GetDriverVersion", "SystemGetDriverVersion"))
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
            name=_text(ask("DeviceGetName")) or self.maker,
            identity=_text(ask("DeviceGetUUID")) or "",
            driver=driver,
            memory_used=getattr(memory, "used", None),
            memory_total=getattr(memory, "total", None),
            utilisation=None if share is None else share / 100,
            temperature=ask("DeviceGetTemperature", _DIE),
            # NVML only knows the temperature of the die.
            board_temperature=ask("DeviceGetTemperature", _BOARD) if self.prefix == "hlml" else None,
            power=None if power is None else power / 1000,
            clock=ask("DeviceGetClockInfo", _CLOCK[self.prefix]),
            pids=frozenset(process.pid for process in ask("DeviceGetComputeRunningProcesses") or ()),
        )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            # Habana's library prints what it does not find, which would end up in our JSON output.
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
        # Both libraries raise their own exceptions, whose classes are known only after the import.
        try:
            call: Callable[..., Any] = getattr(library, f"{self.prefix}{function}")
            return call(*arguments)
        except Exception as error:
            raise LibraryError(f"{self.module} did not answer {function}: {error}") from None

    def _known_of(self, library: Any, function: str, *arguments: Any) -> Any:
        """The library's answer; None if the card or the version does not support the question."""
        with contextlib.suppress(LibraryError):
            return self._call(library, function, *arguments)
        return None

    def _known(self, library: Any, *functions: str) -> Any:
        """The first answer to any of these."""
        answers = (self._known_of(library, function) for function in functions)
        return next((answer for answer in answers if answer is not None), None)


def _text(value: Any) -> str | None:
    """A string, which older versions of the libraries return as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
