"""The command line `pilotage`: one folder per command."""
