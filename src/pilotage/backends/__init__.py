"""One kind of device each: compile a program, run its schedule."""
