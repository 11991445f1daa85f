"""Rules that take device code out of a script: the wrapped model chooses and uses the device."""
