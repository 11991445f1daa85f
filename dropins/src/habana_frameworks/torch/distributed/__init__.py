"""Several cards, one process for each."""
