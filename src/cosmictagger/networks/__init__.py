"""UResNet in two and three dimensions, computed with all planes in one batch."""
