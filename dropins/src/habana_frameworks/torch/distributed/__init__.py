"""Several cards, one process per card."""
