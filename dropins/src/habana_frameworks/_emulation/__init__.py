"""The device ``hpu`` without the card: the host's kernels on the host's memory, under the name of the device."""
