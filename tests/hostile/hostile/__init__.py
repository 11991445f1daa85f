"""Files that somebody has altered, and a sandbox in which to open them."""
