"""The vendor's profiler with little overhead, whose traces do not exist here."""
