"""What the instances of a job agree on while they train."""
