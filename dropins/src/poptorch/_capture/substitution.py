"""What to replace in other libraries while a model is compiled.

Pilotage replaces nothing itself: it captures torch as it is. Libraries with their own replacements, such as
``poptorch_geometric``, register them here.
"""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar, Protocol

from torch.distributions import Distribution

from pilotage.engine import validates_arguments

__all__ = ["_OverwriteContextManager"]


class SubstitutionManager(Protocol):
    """Replaces functions of a library, and puts them back."""

    def replace(self) -> None:
        """Put the replacements in place."""
        ...

    def restore(self) -> None:
        """Restore the original functions."""
        ...


class _OverwriteContextManager:
    """Applies every registered substitution while the block runs."""

    _registered: ClassVar[list[type[SubstitutionManager] | SubstitutionManager]] = []

    @classmethod
    def registerSubsitutionManager(cls, manager: type[SubstitutionManager] | SubstitutionManager) -> None:
        """Apply this manager, or a new instance of this class, during every compilation from now on."""
        if manager not in cls._registered:
            cls._registered.append(manager)

    def __init__(self) -> None:
        self._managers = [each() if isinstance(each, type) else each for each in self._registered]
        self._applied: list[SubstitutionManager] = []

    def __enter__(self) -> _OverwriteContextManager:
        # Distributions validate the values of their arguments, which tensors without data do not have.
        self._validates = validates_arguments(Distribution)
        Distribution.set_default_validate_args(False)
        try:
            for manager in self._managers:
                manager.replace()
                self._applied.append(manager)
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _restore(self) -> None:
        Distribution.set_default_validate_args(self._validates)
        while self._applied:
            self._applied.pop().restore()
