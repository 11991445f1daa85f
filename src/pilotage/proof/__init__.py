"""Proof that two scripts train the same: both are run and watched, then their records are compared."""
