"""The single operations that `calibrate` measures, one file for each kind."""
