"""Programs to read and run from a checkout; none of them is part of a wheel."""
