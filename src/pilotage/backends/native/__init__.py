"""Native code for a program: compiled in a process of its own, kept in a cache, loaded without a compiler."""
