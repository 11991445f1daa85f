"""What training is made of: loss, metrics, schedule, optimizer, precision, and the loop over steps."""
