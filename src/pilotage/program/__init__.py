"""From a module to an immutable captured computation, and the schedule of its steps."""
