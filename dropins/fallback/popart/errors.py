"""PopART's exceptions, for programs that catch them.

RuntimeError
├── popart_exception
│   ├── popart_internal_exception
│   └── popart_runtime_error
├── poplar_exception
└── poplibs_exception
"""

from __future__ import annotations

__all__ = [
    "popart_exception",
    "popart_internal_exception",
    "popart_runtime_error",
    "poplar_exception",
    "poplibs_exception",
]


class popart_exception(RuntimeError):
    """An error that PopART reports; nothing here raises it but `popart.graphs`."""


class popart_internal_exception(popart_exception):
    """A fault in PopART."""


class popart_runtime_error(popart_exception):
    """An error while a graph runs."""


class poplar_exception(RuntimeError):
    """An error of Poplar."""


class poplibs_exception(RuntimeError):
    """An error of Poplar's libraries."""
