"""What a program lets its user see: tensors, times, profiles, progress."""
