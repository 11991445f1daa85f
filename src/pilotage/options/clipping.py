"""The limits on gradients."""

from __future__ import annotations

import math

from pilotage.errors import OptionError

NO_LIMIT = float("inf")


def clipping(norm: float | None, value: float | None) -> tuple[float, float]:
    """The limits on the norm of all gradients and on each element; None means no limit."""
    for name, given in (("clip_grad_norm", norm), ("clip_grad_value", value)):
        if given is not None and not (_is_number(given) and given > 0):
            raise OptionError(
                f"{name} is {given!r}. It must be a number above 0, or None to leave gradients as they are."
            )
    if norm is not None and value is not None:
        raise OptionError(
            f"clip_grad_norm is {norm!r} and clip_grad_value is {value!r}. Choose one of them: the result would "
            "depend on which one comes first."
        )
    return (NO_LIMIT if norm is None else float(norm)), (NO_LIMIT if value is None else float(value))


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and not math.isnan(given)
