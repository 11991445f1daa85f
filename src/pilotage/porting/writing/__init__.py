"""The code that a port writes: the joined module, calls, signatures and imports."""
