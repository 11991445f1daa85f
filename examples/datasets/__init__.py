"""The data sets of the examples: each is found on this machine, downloaded or drawn."""
