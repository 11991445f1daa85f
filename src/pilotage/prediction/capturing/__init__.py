"""From a module to the program that a device would run, without values and without the device."""
