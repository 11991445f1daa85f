"""The exception that ends a script once it reaches the program to predict."""

from __future__ import annotations

from pilotage.prediction.prediction import Traced
from pilotage.prediction.subject import Subject

__all__ = ["Reached"]


class Reached(BaseException):
    """The script has come to its first call of a program or its first update; no handler of its own stops this."""

    def __init__(self, found: Subject | Traced) -> None:
        super().__init__("reached what is predicted")
        self.found = found
