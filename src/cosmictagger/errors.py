"""What can go wrong before and during a run, each said in one line."""

from __future__ import annotations


class CosmicTaggerError(Exception):
    """Anything that the user can mend; its text is one line that says how.

    CosmicTaggerError
    ├── ConfigurationError   an option, or a combination of options, that cannot be
    ├── CheckpointError      weights that are missing, damaged or of another network
    ├── DataError            a file, an event or a request for events that cannot be served
    └── DeviceError          the device cannot do what it was asked for
    """


class ConfigurationError(CosmicTaggerError):
    """An option, or a combination of options, that cannot be."""


class CheckpointError(CosmicTaggerError):
    """Weights that are missing, damaged or of another network."""


class DataError(CosmicTaggerError):
    """A file, an event or a request for events that cannot be served."""


class DeviceError(CosmicTaggerError):
    """The device cannot do what it was asked for."""
