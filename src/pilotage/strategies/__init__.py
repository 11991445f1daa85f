"""Where a program runs, and how it is spread over devices and processes."""
