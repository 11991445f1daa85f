"""Machine code for a program: compiled in a separate process, kept in a cache, loaded without a compiler."""
