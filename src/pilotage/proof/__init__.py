"""Proof that two scripts train the same: both run watched, then what they did is compared."""
