"""Extrapolates a program with more samples from two captured ones: every size lies on a line through both."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from pilotage.prediction.prediction import Traced
from pilotage.prediction.subject import Subject

__all__ = ["with_more_samples"]


def with_more_samples(subject: Subject, small: Traced, large: Traced) -> Traced | None:
    """The program of a subject with more samples than both others; None if its sizes do not lie on a line.

    Almost all sizes are: a number for each sample, and one for all of them. Where a size grows faster, such as a matrix
    of all pairs of samples, only a capture knows it.
    """
    reach = (subject.samples - large.samples) / (large.samples - small.samples)
    try:
        update = _extended(small.update, large.update, reach, subject.samples / large.samples)
    except _OnNoLineError:
        return None
    inputs = sum(each.bytes for each in subject.micro_batch)
    return replace(large, update=update, samples=subject.samples, input_bytes=inputs, program=None)


class _OnNoLineError(Exception):
    """A size that two captures do not determine."""


def _extended(small: Any, large: Any, reach: float, times: float) -> Any:
    """The value beyond the larger one, on the line through both; anything but a number is that of the larger one."""
    if type(small) is not type(large):
        raise _OnNoLineError
    if is_dataclass(large) and not isinstance(large, type):
        return replace(
            large,
            **{
                each.name: _extended(getattr(small, each.name), getattr(large, each.name), reach, times)
                for each in fields(large)
            },
        )
    if isinstance(large, tuple):
        if len(small) != len(large):
            raise _OnNoLineError
        return tuple(_extended(a, b, reach, times) for a, b in zip(small, large, strict=True))
    if isinstance(large, bool) or not isinstance(large, int | float):
        return large
    found = large + (large - small) * reach
    if large > small and found > large * times:
        # A line would begin below 0.
        raise _OnNoLineError
    return round(found) if isinstance(large, int) else found
