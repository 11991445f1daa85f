"""Programs that live: compiled at the first call, attached to a device, in step with the user's module."""
