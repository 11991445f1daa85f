"""What devices, compiler and strategies share: state on a device, random streams, the walk over a schedule."""
