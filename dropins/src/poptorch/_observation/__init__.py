"""What a program shows to its user: tensors, times, profiles, progress."""
