"""Training: loss, metrics, schedule, optimizer, precision and the loop over steps."""
