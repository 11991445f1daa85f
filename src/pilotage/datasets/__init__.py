"""Data sets that Pilotage can find, fetch or draw by itself."""
