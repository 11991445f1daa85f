"""Running a script up to its first training step, without values and without a device."""
