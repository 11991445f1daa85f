"""What `pilotage` does on the command line: one module or folder for each command."""
