"""What to install where torch is missing.

Torch is an extra and never a requirement, so Pilotage can be installed without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilotage.version import TORCH_RANGE

__all__ = ["torch_needed_by"]


@contextmanager
def torch_needed_by(user: str, *, distribution: str) -> Iterator[None]:
    """Replace the error of a missing torch by one that names what needs it and what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(_advice(user, distribution), name="torch") from None


def _advice(user: str, distribution: str) -> str:
    return (
        f"{user} needs PyTorch, which is not installed in this environment. Install it with: "
        f'pip install "{distribution}[torch]" (it takes {TORCH_RANGE}). For a build without CUDA, follow '
        "https://pytorch.org/get-started/locally/ first. `pilotage doctor` shows what is here."
    )
