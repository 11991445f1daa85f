"""Starting the instances of a job, here or on other hosts, and ending them together."""
