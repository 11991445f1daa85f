"""Events on disk and in memory: reading, ordering, loading, generating, writing."""
