"""Programs and tensors as files, and the fingerprint that is made of their text."""
