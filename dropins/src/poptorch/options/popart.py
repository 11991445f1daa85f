"""Options that are passed to the backend unchanged."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from poptorch._errors import require
from poptorch._options.popart import PopartSettings
from poptorch._options_impl import Freezable, canonical, merged, similar_option


class _PopartOptions(Freezable):
    """Names and values for the layer below: stored as given, checked when the model is wrapped and compiled."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {
            "instrumentWithHardwareCycleCounter": False,
            "rearrangeAnchorsOnHost": False,
        }

    @property
    def settings(self) -> PopartSettings:
        """The options that have a meaning here, checked."""
        return PopartSettings.read(self.options)

    def set(self, key: str, value: Any) -> Self:
        """Set one option by the name that the layer below gives it."""
        self.checkIsFrozen(key)
        self.options[key] = value
        return self

    def setEngineOptions(self, engine_options: dict[str, str]) -> Self:
        """Add options of the engine."""
        require(isinstance(engine_options, dict), f"Engine options must be a dictionary, not {engine_options!r}.")
        return self.merge("engineOptions", engine_options)

    def setPatterns(self, patterns: dict[str, bool], level: int = 2) -> Self:
        """Switch the rewriting patterns of the layer below on or off, over a level of defaults."""
        require(isinstance(patterns, dict), f"Patterns must be a dictionary of names and switches, not {patterns!r}.")
        require(isinstance(level, int), f"The level of patterns must be a whole number, not {level!r}.")
        self.set("patterns", patterns)
        return self.set("patterns_level", level)

    def merge(self, key: str, entries: dict[str, Any]) -> Self:
        """Add entries to an option that is a dictionary."""
        return self.set(key, {**self.options.get(key, {}), **entries})

    def remove(self, key: str) -> Self:
        """Remove an option, so that the layer below decides again."""
        self.checkIsFrozen(key)
        self.options.pop(key, None)
        return self

    def update(self, other: dict[str, Any]) -> dict[str, Any]:
        """Add these options to a dictionary that has none of their names, and return it."""
        return merged(other, self.options)

    def __getattr__(self, name: str) -> NoReturn:
        """Raise, with the name that was probably meant."""
        raise AttributeError(f"Invalid attribute {name}.{similar_option(self, name)}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({canonical(self.options)})"
