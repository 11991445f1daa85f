"""What the data part refuses, in one clear line each."""

from __future__ import annotations


class DataError(Exception):
    """A file, an entry or a request that cannot be served: says which, what is wrong and what to do."""
