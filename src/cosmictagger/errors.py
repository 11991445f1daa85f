"""Errors that the command reports in one line."""

from __future__ import annotations


class CosmicTaggerError(Exception):
    """An error that the user can fix; its one-line message says how.

    CosmicTaggerError
    ├── ConfigurationError   an invalid option or combination of options
    ├── CheckpointError      missing or damaged weights, or weights of another network
    ├── DataError            a file, an event or a request for events that cannot be served
    └── DeviceError          something the device cannot do
    """


class ConfigurationError(CosmicTaggerError):
    """An invalid option or combination of options."""


class CheckpointError(CosmicTaggerError):
    """Missing or damaged weights, or weights of another network."""


class DataError(CosmicTaggerError):
    """A file, an event or a request for events that cannot be served."""


class DeviceError(CosmicTaggerError):
    """Something the device cannot do."""
