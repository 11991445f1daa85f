"""Running programs: compiled at the first call, attached to a device, kept in sync with the user's module."""
