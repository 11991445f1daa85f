"""Which devices this machine has, and which processes run programs on them."""
