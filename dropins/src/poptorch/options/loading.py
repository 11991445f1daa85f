"""Options from JSON and from files."""

from __future__ import annotations

import os
from typing import Self

from poptorch._options_impl import OptionsDict
from poptorch.options.calls import calls_of_file, calls_of_json


class LoadingOptions(OptionsDict):
    """The part of the options that reads other options."""

    def from_json(self, string: str) -> Self:
        """Call options from JSON, ``{"Precision.enableStochasticRounding": true}``; a list is several arguments."""
        for call in calls_of_json(string):
            call.apply(self)
        return self

    def loadFromFile(self, filepath: str | os.PathLike[str]) -> Self:
        """Call options from the lines of a file, such as ``deviceIterations(4)``; they are parsed, never executed."""
        for call in calls_of_file(filepath):
            call.apply(self)
        return self
