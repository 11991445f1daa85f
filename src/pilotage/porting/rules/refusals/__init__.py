"""Rules for what cannot be converted: each says why, and what to do by hand."""
