"""Functions to call right after a module was imported, whenever that happens."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

__all__ = ["AfterImport"]

Callback = Callable[[ModuleType], None]


class AfterImport(importlib.abc.MetaPathFinder):
    """Finds modules as Python would, and calls a function once a module with a certain name was imported."""

    def __init__(
        self, callbacks: Mapping[str, Callback], failed: Callable[[str, Exception], None] = lambda name, error: None
    ) -> None:
        """``failed`` is called if the import of one of them raises."""
        self._callbacks = dict(callbacks)
        self._failed = failed

    def install(self) -> None:
        """Look at all imports from now on; modules that are imported already are taken at once."""
        for name in [name for name in self._callbacks if name in sys.modules]:
            self._callbacks.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module that the other finders find, with a loader that reports the end of its import."""
        if fullname not in self._callbacks:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Reporting(spec.loader, self._callbacks.pop(fullname), self._failed)
                return spec
        return None


class _Reporting(importlib.abc.Loader):
    def __init__(
        self, loader: importlib.abc.Loader, callback: Callback, failed: Callable[[str, Exception], None]
    ) -> None:
        self._loader = loader
        self._callback = callback
        self._failed = failed

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Create the module as the other loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code, then report it."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        try:
            self._loader.exec_module(module)
        except Exception as error:
            self._failed(module.__name__, error)
            raise
        self._callback(module)
