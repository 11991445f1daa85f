"""Start the instances of a job, here or on other hosts, and stop them together."""
